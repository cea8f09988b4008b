// Command import measures how fast memctl imports into a local node: JSON lines and a
// folder of Markdown, the first time and again, when all of it is there. Both programs
// run as processes, as people run them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
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
	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/memory"
)

// leastRate is how many records a second are wanted.
const leastRate = 5000

// sections is how many a Markdown file has.
const sections = 10

type options struct {
	records, runs int
	seed          uint64
	dir           string
	output        program.Output
}

func main() { program.Main("import", time.Hour, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	fs := opt.output.Flags("import", stderr)
	opt.output.JSON(fs)
	fs.IntVar(&opt.records, "records", 50_000, "memories of each format")
	fs.IntVar(&opt.runs, "runs", 3, "imports of each kind, each into a namespace of its own; the median counts")
	fs.Uint64Var(&opt.seed, "seed", 1, "seed of the order of texts")
	fs.StringVar(&opt.dir, "dir", "", "where the temporary folder goes (default: the system's)")
	fs.BoolVar(&quick, "quick", false, "a tenth of the memories, one run")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	if quick {
		opt.records, opt.runs = opt.records/10, 1
	}
	if opt.records < sections || opt.runs < 1 {
		return opt, fmt.Errorf("at least %d records and one run are needed", sections)
	}
	return opt, nil
}

// bench is a node and the program that imports into it.
type bench struct {
	opt    options
	node   *proc.Node
	memctl string
	home   string
	table  *report.Table
	stderr io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(opt.dir, "mneme-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	texts, err := corpus.Load(ctx, corpus.Options{Count: opt.records, Seed: opt.seed})
	if err != nil {
		return err
	}
	lines, folder := filepath.Join(dir, "memories.jsonl"), filepath.Join(dir, "notes")
	if err := errors.Join(writeLines(lines, texts.Texts), writeNotes(folder, texts.Texts)); err != nil {
		return err
	}
	b := &bench{opt: opt, home: filepath.Join(dir, "home"), stderr: stderr, memctl: filepath.Join(dir, "memctl"),
		table: report.NewTargets(fmt.Sprintf("Import of %d memories into a local node", len(texts.Texts)))}
	memnode, err := proc.Build(ctx, dir)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.memctl, "mneme/cmd/memctl").CombinedOutput(); err != nil {
		return fmt.Errorf("build memctl: %w\n%s", err, out)
	}
	write := opt.output.Watch()
	if b.node, err = proc.Start(ctx, memnode, filepath.Join(dir, "data")); err != nil {
		return err
	}
	err = errors.Join(b.measure(ctx, "JSON lines", lines, "j"), b.measure(ctx, "Markdown", folder, "m"))
	if err = errors.Join(err, b.node.Stop()); err != nil {
		return err
	}
	b.table.Note("%s; memctl and memnode as processes on this machine, the built-in embedder, each batch synced; medians of %d", texts.From, opt.runs)
	return write(stdout, b.table)
}

// measure imports a path into fresh namespaces, each twice.
func (b *bench) measure(ctx context.Context, what, path, prefix string) error {
	var fresh, again []float64
	for i := range b.opt.runs {
		ns := fmt.Sprintf("%s-%d", prefix, i)
		if _, _, err := b.call(ctx, "namespace", "create", ns); err != nil {
			return err
		}
		for _, rates := range []*[]float64{&fresh, &again} {
			out, took, err := b.call(ctx, "import", "--json", "-n", ns, path)
			if err != nil {
				return err
			}
			var sum struct {
				Namespaces []struct{ Found, Created, Duplicates int }
			}
			if err := json.Unmarshal(out, &sum); err != nil || len(sum.Namespaces) != 1 {
				return fmt.Errorf("import said %s: %w", out, err)
			}
			c := sum.Namespaces[0]
			if want := c.Created; rates == &again && c.Duplicates != c.Found || rates == &fresh && want != c.Found {
				return fmt.Errorf("%s: %d found, %d created, %d duplicates", what, c.Found, c.Created, c.Duplicates)
			}
			*rates = append(*rates, float64(c.Found)/took.Seconds())
		}
	}
	b.table.AtLeast(what+", new", leastRate, median(fresh), "records/s", "")
	b.table.AtLeast(what+", all there already", leastRate, median(again), "records/s", "")
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func (b *bench) call(ctx context.Context, args ...string) ([]byte, time.Duration, error) {
	cmd := exec.CommandContext(ctx, b.memctl, args...)
	cmd.Env = []string{"MNEME_ADDR=" + b.node.HTTP, "MNEME_AGENT=bench", "HOME=" + b.home, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = b.stderr
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("memctl %s: %w", strings.Join(args, " "), err)
	}
	return out, time.Since(began), nil
}

// writeLines writes a capture a line.
func writeLines(path string, texts []string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, text := range texts {
		if err := enc.Encode(memory.Capture{Text: text, Kind: memory.KindFact}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// writeNotes writes files of ten sections, as a folder of notes has them.
func writeNotes(dir string, texts []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i := 0; i < len(texts); i += sections {
		var b strings.Builder
		fmt.Fprintf(&b, "---\ntags: [bench, notes]\n---\n# Note %d\n", i/sections)
		for k, text := range texts[i:min(i+sections, len(texts))] {
			fmt.Fprintf(&b, "\n## Part %d\n\n%s\n", k, strings.ReplaceAll(text, "\n", " "))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("note-%06d.md", i/sections)), []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
