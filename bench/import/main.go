// Command import measures how fast memctl imports into a local node: JSON lines, a folder of
// Markdown, the file of the official memory server and an archive of ChatGPT, each the first
// time and again, when all of it is there. Both programs run as processes, as people run them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
)

// leastRate is how many records a second are wanted.
const leastRate = 5000

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
	fs.IntVar(&opt.records, "records", 20_000, "memories of each format")
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
	if opt.records < together || opt.records%together != 0 || opt.runs < 1 {
		return opt, fmt.Errorf("-records must be a multiple of %d, and one run is needed", together)
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
	if len(texts.Texts) < opt.records {
		return fmt.Errorf("this machine has %d texts: give -records %d", len(texts.Texts), len(texts.Texts)/together*together)
	}
	var sources []source
	for _, f := range formats {
		path := filepath.Join(dir, f.file)
		if err := f.write(path, texts.Texts); err != nil {
			return err
		}
		sources = append(sources, source{f, path})
	}
	b := &bench{opt: opt, home: filepath.Join(dir, "home"), stderr: stderr,
		table: report.NewTargets(fmt.Sprintf("Import of %d memories into a local node", len(texts.Texts)))}
	memnode, err := proc.BuildRelease(ctx, dir, "memnode")
	if err != nil {
		return err
	}
	if b.memctl, err = proc.BuildRelease(ctx, dir, "memctl"); err != nil {
		return err
	}
	write := opt.output.Watch()
	if b.node, err = proc.Start(ctx, memnode, filepath.Join(dir, "data")); err != nil {
		return err
	}
	for _, src := range sources {
		if err = b.measure(ctx, src); err != nil {
			break
		}
	}
	if err = errors.Join(err, b.node.Stop()); err != nil {
		return err
	}
	b.table.Note("%s; memctl and memnode as processes on this machine, the built-in embedder, each batch synced; medians of %d", texts.From, opt.runs)
	return write(stdout, b.table)
}

// measure imports a path into fresh namespaces, each twice.
func (b *bench) measure(ctx context.Context, src source) error {
	var fresh, again, cpu []float64
	for i := range b.opt.runs {
		ns := fmt.Sprintf("%s-%d", src.name, i)
		if _, _, _, err := b.call(ctx, "namespace", "create", ns); err != nil {
			return err
		}
		for _, rates := range []*[]float64{&fresh, &again} {
			before, cpuErr := b.node.CPU()
			out, took, own, err := b.call(ctx, "import", "--json", "--format", src.name, "-n", ns, src.path)
			if err != nil {
				return err
			}
			if after, err := b.node.CPU(); err == nil && cpuErr == nil && rates == &fresh {
				cpu = append(cpu, report.Millis(after-before+own)*1000/float64(b.opt.records))
			}
			if err := src.check(out, b.opt.records, rates == &again); err != nil {
				return fmt.Errorf("import of %s said %s: %w", src.about, out, err)
			}
			*rates = append(*rates, float64(b.opt.records)/took.Seconds())
		}
	}
	b.table.AtLeast(src.about+", new", leastRate, stats.Median(fresh), "records/s", src.detail)
	if len(cpu) > 0 {
		b.table.Info("… processor time of memctl and the node", stats.Median(cpu), "ms/1,000", "a core that does nothing else does "+report.Number(1e6/stats.Median(cpu))+" records/s")
	}
	b.table.AtLeast(src.about+", all there already", leastRate, stats.Median(again), "records/s", "")
	return nil
}

// call runs memctl, and returns what it printed, how long it ran, and its processor time.
func (b *bench) call(ctx context.Context, args ...string) (out []byte, took, cpu time.Duration, err error) {
	cmd := exec.CommandContext(ctx, b.memctl, args...)
	cmd.Env = []string{"MNEME_ADDR=" + b.node.HTTP, "MNEME_AGENT=bench", "HOME=" + b.home, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = b.stderr
	began := time.Now()
	if out, err = cmd.Output(); err != nil {
		return nil, 0, 0, fmt.Errorf("memctl %s: %w", strings.Join(args, " "), err)
	}
	return out, time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
