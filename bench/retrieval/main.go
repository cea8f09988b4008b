// Command retrieval measures how well a node finds what answers questions: the
// sets of package judged, sent and asked through REST, each scored as its kind
// of question needs (see metrics.go).
//
// Without -addr it builds memnode and runs it on a temporary folder; the sets
// are read from -data, $MNEME_DATA or shared/data beside the repository. A set
// that is not there is said to be missing and left out.
//
// The texts go in as they are: nothing is tuned to a set, and nobody's
// evidence is looked at before the scoring.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/client"
	"mneme/memory"
)

// timeLimit ends a run that hangs.
const timeLimit = 30 * time.Minute

type options struct {
	data     string
	sets     []string
	modes    []memory.Mode
	addr     string
	prefix   string
	json     bool
	output   program.Output
	limit    int // questions a namespace; 0 means all
	ablate   bool
	minScore float64
	raw      string // file for what each question got
	beside   string // such a file of another run
	split    int    // namespaces that each one of a set is spread over; 0: none
	torn     bool   // message by message
	tokens   int    // of a prompt, which is looked into instead of the ranks; 0: none
}

func main() { program.Main("retrieval", timeLimit, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var sets, modes string
	fs := opt.output.Flags("retrieval", stderr)
	fs.StringVar(&opt.data, "data", "", "folder with the sets (default $MNEME_DATA, then shared/data beside the repository)")
	fs.StringVar(&sets, "set", strings.Join(usual(), ","), "sets to measure, separated by commas; "+judged.Sealed+" only once all is tuned")
	fs.StringVar(&modes, "mode", "text,vector,hybrid,"+string(plainBM25)+","+string(stemsBM25), "search modes to measure, separated by commas; "+string(plainBM25)+" and "+string(stemsBM25)+" ask no node")
	fs.StringVar(&opt.addr, "addr", "", "measure the node at this address instead of one of our own; namespaces are left behind")
	fs.StringVar(&opt.prefix, "prefix", "bench-", "stands before the names of namespaces")
	fs.BoolVar(&opt.json, "json", false, "print one JSON document instead of tables")
	fs.IntVar(&opt.limit, "questions", 0, "ask at most so many questions of a namespace (0: all)")
	fs.BoolVar(&opt.ablate, "ablate", false, "measure what each part of a search does as well")
	fs.Float64Var(&opt.minScore, "min-score", -1, "ask for results with this score or more (default: above the namespace's floor)")
	fs.StringVar(&opt.raw, "raw", "", "write what each question got to this file, a line of JSON each")
	fs.StringVar(&opt.beside, "beside", "", "compare with such a file of another run")
	fs.IntVar(&opt.split, "split", 0, "spread each namespace over so many as well, by conversation, and search them at once")
	fs.BoolVar(&opt.torn, "torn", false, "with -split: message by message, so that conversations are torn apart")
	fs.IntVar(&opt.tokens, "tokens", 0, "measure instead how much of the evidence stands in so many tokens of a prompt: in a recall block, and beside it in full texts")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	opt.sets = strings.Split(sets, ",")
	for _, s := range opt.sets {
		if !slices.Contains(judged.Names(), s) {
			return opt, fmt.Errorf("set %q is unknown; sets are %s", s, strings.Join(judged.Names(), ", "))
		}
	}
	for _, m := range strings.Split(modes, ",") {
		opt.modes = append(opt.modes, memory.Mode(m))
	}
	return opt, nil
}

// usual are the sets that are measured again and again.
func usual() []string {
	return slices.DeleteFunc(judged.Names(), func(name string) bool { return name == judged.Sealed })
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var before []score
	if opt.beside != "" {
		if before, err = readRaw(opt.beside); err != nil {
			return err
		}
	}
	sets, missing, err := loadSets(ctx, opt)
	if err != nil {
		return err
	}
	for _, m := range missing {
		fmt.Fprintln(stderr, "left out:", m)
	}
	if len(sets) == 0 {
		_, err := fmt.Fprintf(stdout, "%s\n\nnothing was measured: %s\n", report.Machine(), strings.Join(missing, "; "))
		return err
	}
	write := opt.output.Watch()
	addr := opt.addr
	if addr == "" {
		node, stop, err := startNode(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		addr = node.HTTP
	}
	c, err := client.New(addr, client.Options{UserAgent: "mneme-bench"})
	if err != nil {
		return err
	}
	defer c.Close()
	var results []result
	for _, set := range sets {
		r, err := measure(ctx, c, set, opt, func(format string, a ...any) { fmt.Fprintf(stderr, format+"\n", a...) })
		if err != nil {
			return fmt.Errorf("measure %s: %w", set.Name, err)
		}
		results = append(results, r)
	}
	if err := writeRaw(opt.raw, results); err != nil {
		return err
	}
	if opt.json {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(document{Machine: report.Machine(), Missing: missing, Sets: results})
	}
	if opt.tokens > 0 {
		return write(stdout, promptTable(results, opt.tokens, missing))
	}
	out := tables(results, missing)
	if opt.beside != "" {
		out = append([]*report.Table{comparison(results, filepath.Base(opt.beside), before)}, out...)
	}
	return write(stdout, out...)
}

// loadSets loads the sets asked for and says what is missing. Some need no data.
func loadSets(ctx context.Context, opt options) (sets []*judged.Set, missing []string, err error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	dir, err := judged.FindData(opt.data, os.Getenv("MNEME_DATA"), wd)
	if errors.Is(err, judged.ErrNoData) {
		missing = append(missing, err.Error()) // some sets need no data
	} else if err != nil {
		return nil, nil, err
	}
	for _, name := range opt.sets {
		set, err := judged.Load(ctx, name, dir)
		switch {
		case errors.Is(err, judged.ErrNoData):
			missing = append(missing, err.Error())
		case err != nil:
			return nil, nil, err
		default:
			sets = append(sets, set)
		}
	}
	return sets, missing, nil
}

// startNode builds and starts a node; stop ends it and removes its folder.
func startNode(ctx context.Context) (*proc.Node, func() error, error) {
	dir, err := os.MkdirTemp("", "mneme-retrieval-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	bin, err := proc.Build(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	node, err := proc.Start(ctx, bin, dir+"/data")
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return node, func() error { return errors.Join(node.Stop(), remove()) }, nil
}
