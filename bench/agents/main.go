// Command agents measures what an agent's host waits for: a search through memctl mcp, the
// knowledge graph beside the official memory server of the Model Context Protocol, hooks, and
// the start of memctl.
//
// Everything runs as processes, as on a user's machine: memnode, memctl as a release builds it,
// and the official server out of node_modules. What is compared runs in turns.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/client"
)

// timeLimit ends a run that hangs.
const timeLimit = time.Hour

// parts of a run, in order.
var parts = []string{"search", "hooks", "graph", "start"}

type options struct {
	records  int   // of the large namespace
	few      int   // of it, before the others come
	searches int   // at each size
	sizes    []int // entities of the graphs
	calls    int   // of each tool at each size
	writes   int   // of each of two writers
	hooks    int   // of each kind, and starts
	seed     uint64
	only     []string
	sources  []string
	official string
	dir      string
	output   program.Output
}

func main() { program.Main("agents", timeLimit, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	var only, sizes, sources string
	fs := opt.output.Flags("agents", stderr)
	opt.output.JSON(fs)
	fs.IntVar(&opt.records, "records", 100_000, "records of the namespace that is searched")
	fs.IntVar(&opt.few, "few", 1_000, "records that it has when it is searched first")
	fs.IntVar(&opt.searches, "searches", 2_000, "searches at each of both sizes")
	fs.StringVar(&sizes, "sizes", "100,1000,10000", "entities of the graphs, separated by commas")
	fs.IntVar(&opt.calls, "calls", 100, "calls of each tool at each of these sizes")
	fs.IntVar(&opt.writes, "writes", 200, "entities that each of two writers creates")
	fs.IntVar(&opt.hooks, "hooks", 101, "hooks of each kind, and starts of memctl")
	fs.Uint64Var(&opt.seed, "seed", 1, "seed of the order of texts and of queries")
	fs.StringVar(&only, "only", strings.Join(parts, ","), "parts to measure, separated by commas")
	fs.StringVar(&sources, "texts", strings.Join(corpus.Names, ","), "sources of text in order of preference; go-std is Go's own tree alone, without the nearly alike comments of generated code")
	fs.StringVar(&opt.official, "official", filepath.Join("bench", "agents", "node_modules", ".bin", "mcp-server-memory"), "the official memory server, as npm ci in bench/agents installs it")
	fs.StringVar(&opt.dir, "dir", "", "where the temporary folder goes (default: the system's)")
	fs.BoolVar(&quick, "quick", false, "a twentieth of everything")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	var err error
	if opt.sizes, err = program.Numbers(sizes); err != nil {
		return opt, fmt.Errorf("-sizes: %w", err)
	}
	if quick {
		opt.records, opt.few, opt.searches, opt.calls, opt.writes, opt.hooks = opt.records/20, opt.few/20, opt.searches/20, opt.calls/20, opt.writes/20, opt.hooks/20
		for i := range opt.sizes {
			opt.sizes[i] = max(opt.sizes[i]/20, 5)
		}
	}
	if opt.few < 1 || opt.records < opt.few || min(opt.searches, opt.calls, opt.writes, opt.hooks) < 1 {
		return opt, errors.New("sizes must be positive, and -records at least -few")
	}
	opt.only, opt.sources = strings.Split(only, ","), strings.Split(sources, ",")
	for _, p := range opt.only {
		if !slices.Contains(parts, p) {
			return opt, fmt.Errorf("part %q is unknown; parts are %s", p, strings.Join(parts, ", "))
		}
	}
	return opt, nil
}

// bench is what the parts of a run share.
type bench struct {
	opt             options
	dir             string // temporary, removed at the end
	memnode, memctl string // the programs
	node            *proc.Node
	api             *client.Client
	texts           *corpus.Corpus
	table           *report.Table
	stderr          io.Writer
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.stderr, format+"\n", args...) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	b := &bench{opt: opt, stderr: stderr, table: report.NewTargets("Where agents live")}
	if b.dir, err = os.MkdirTemp(opt.dir, "mneme-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.texts, err = corpus.Load(ctx, corpus.Options{Count: opt.records, Seed: opt.seed, Sources: opt.sources}); err != nil {
		return err
	}
	if b.memnode, err = proc.BuildRelease(ctx, b.dir, "memnode"); err != nil {
		return err
	}
	if b.memctl, err = proc.BuildRelease(ctx, b.dir, "memctl"); err != nil {
		return err
	}
	write := opt.output.Watch()
	if b.node, err = proc.Start(ctx, b.memnode, filepath.Join(b.dir, "data")); err != nil {
		return err
	}
	err = b.measure(ctx)
	if err = errors.Join(err, b.node.Stop()); err != nil {
		return err
	}
	b.table.Note("%s; seed %d; memctl and memnode as a release builds them, as processes on this machine", b.texts.From, opt.seed)
	return write(stdout, b.table)
}

func (b *bench) measure(ctx context.Context) error {
	api, done, err := load.NewClient(b.node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	b.api = api
	for _, part := range parts {
		if !slices.Contains(b.opt.only, part) {
			continue
		}
		do := map[string]func(context.Context) error{"search": b.search, "hooks": b.hooks, "graph": b.graph, "start": b.start}[part]
		if err := do(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

// command is memctl, as a user calls it who has nothing configured.
func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.memctl, args...)
	home := filepath.Join(b.dir, "home")
	cmd.Env = []string{"MNEME_ADDR=" + b.node.HTTP, "MNEME_AGENT=" + load.Agent, "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// call runs memctl to its end.
func (b *bench) call(ctx context.Context, args ...string) ([]byte, error) {
	out, err := b.command(ctx, args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("memctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return out, nil
}
