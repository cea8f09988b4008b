// Command embedders measures what the compiled-in embedders know, without a node:
// Spearman's correlation on the development splits of STS-B, English and Chinese;
// recall at 5, 10 and 20 of LoCoMo, MemDaily and BEAM by vectors alone; the background,
// which searches take off their cosines (package query); how often a misspelt word is
// nearest to the right one, and a comment's name among the ten nearest; texts a second
// on one core.
//
// -weights FILE measures other weights of the static model beside the shipped ones,
// which is how those were chosen.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"mneme/bench/internal/judged"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/internal/embed/builtin"
	"mneme/internal/embed/static"
	"mneme/internal/text"
)

func main() { program.Main("embedders", time.Hour, run) }

// embedder is one model that is measured.
type embedder struct {
	name       string
	dimensions int
	embed      func(dst []int8, texts ...text.Analysis)
}

// vector returns the vector of s with length 1.
func (e embedder) vector(s string) []float32 {
	q, v := make([]int8, e.dimensions), make([]float32, e.dimensions)
	e.embed(q, text.NewAnalysis(s))
	builtin.Float(v, q)
	return v
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var output program.Output
	fs := output.Flags("embedders", stderr)
	data := fs.String("data", "", "folder with the sets (default $MNEME_DATA or shared/data beside the repository)")
	spelling := fs.Bool("spelling", true, "ask for misspelt words and for names as well, from the Go tree of this machine")
	weights := fs.String("weights", "", "file of other weights of the static model")
	if err := program.Parse(fs, args); err != nil {
		return err
	}
	list := []embedder{
		{builtin.Name, builtin.Dimensions, builtin.Embed},
		{static.Name, static.Dimensions, static.Embed},
	}
	if *weights != "" {
		b, err := os.ReadFile(*weights)
		if err != nil {
			return fmt.Errorf("read weights: %w", err)
		}
		m, err := static.Open(b)
		if err != nil {
			return fmt.Errorf("open %s: %w", *weights, err)
		}
		list = append(list, embedder{*weights, static.Dimensions, m.Embed})
	}
	wd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find data: %w", err)
	}
	dir, err := judged.FindData(*data, os.Getenv("MNEME_DATA"), wd)
	if err != nil {
		return err
	}
	write := output.Watch()
	near := &nearness{}
	if *spelling {
		if near, err = loadNearness(ctx); err != nil {
			return err
		}
	}
	table, err := measure(ctx, dir, list, near)
	if err != nil {
		return err
	}
	return write(stdout, table)
}

// measure makes one table of all embedders.
func measure(ctx context.Context, dir string, list []embedder, near *nearness) (*report.Table, error) {
	t := &report.Table{Title: "Compiled-in embedders, vectors alone",
		Header: []string{"model", "STS-B en", "STS-B zh", "LoCoMo R@5/10/20", "MemDaily R@5/10/20", "BEAM R@5/10/20", "background", "misspelt R@1", "names R@10", "texts/s"}}
	for _, e := range list {
		row := []string{e.name}
		for _, lang := range []string{"en", "zh"} {
			rho, err := sts(dir, lang, e)
			if err != nil {
				return nil, err
			}
			row = append(row, fmt.Sprintf("%.4f", rho))
		}
		var mean, deviation float64
		names := []string{"locomo", "memdaily", "beam"}
		for _, name := range names {
			set, err := judged.Load(ctx, name, dir)
			if err != nil {
				return nil, err
			}
			r, err := recall(ctx, set, e)
			if err != nil {
				return nil, err
			}
			row = append(row, fmt.Sprintf("%.3f / %.3f / %.3f", r[0], r[1], r[2]))
			m, d := background(set, e)
			mean, deviation = mean+m/float64(len(names)), deviation+d/float64(len(names))
		}
		row = append(row, fmt.Sprintf("%.3f ± %.3f", mean, deviation))
		row = append(row, fmt.Sprintf("%.3f", found(e, near.words, near.misspelt, 1)), fmt.Sprintf("%.3f", found(e, near.names, near.comments, 10)))
		t.Rows = append(t.Rows, append(row, fmt.Sprintf("%.0f", speed(e))))
	}
	return t, nil
}

// speed returns how many short texts a second e embeds on one core.
func speed(e embedder) float64 {
	texts := []string{
		"Caroline: I went to a LGBTQ support group yesterday and it was so powerful.",
		"我将要参加金融科技精英论坛。", "When do we deploy the new cluster?",
	}
	dst := make([]int8, e.dimensions)
	n, start := 0, time.Now()
	for ; time.Since(start) < time.Second; n++ {
		e.embed(dst, text.NewAnalysis(texts[n%len(texts)]))
	}
	return float64(n) / time.Since(start).Seconds()
}
