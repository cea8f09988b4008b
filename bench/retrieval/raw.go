package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/memory"
)

// seed of the intervals, so that one run always prints the same.
const seed = 9

// writeRaw writes what each question got, a line of JSON each, if the file's name is
// not empty.
func writeRaw(file string, results []result) (err error) {
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write answers: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	for _, r := range results {
		for _, m := range append(append([]modeResult{}, r.Modes...), r.Ablation...) {
			for _, s := range m.scores {
				if err := lines.Encode(s); err != nil {
					return fmt.Errorf("write answers: %w", err)
				}
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write answers: %w", err)
	}
	return nil
}

// readRaw reads what writeRaw wrote.
func readRaw(file string) ([]score, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	defer f.Close()
	var out []score
	for lines := json.NewDecoder(bufio.NewReader(f)); ; {
		var s score
		if err := lines.Decode(&s); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read answers %s, line %d: %w", file, len(out)+1, err)
		}
		out = append(out, s)
	}
}

// question names a question of a run in one mode.
type question struct {
	set, variant, namespace string
	mode                    memory.Mode
	number                  int
}

// way is the question without what differs among those of one way to ask a set.
func (s score) way() question { return question{set: s.Set, variant: s.Variant, mode: s.Mode} }

func (s score) question() question {
	return question{s.Set, s.Variant, s.Namespace, s.Mode, s.Question}
}

// samples are what a mark's measure is the mean of.
func (m mark) samples(scores []score) []stats.Sample {
	var out []stats.Sample
	for _, s := range scores {
		v, ok := s.Measures[m.measure]
		if counts := m.category == s.Category || m.category == "" && !s.Apart; ok && counts {
			out = append(out, stats.Sample{Group: s.Group, Value: v})
		}
	}
	return out
}

// comparison prints each set beside another run, question by question. Questions
// that one of the runs did not ask are left out of both.
func comparison(results []result, file string, before []score) *report.Table {
	t := &report.Table{Title: "Beside " + file, Header: []string{"set", "mode", "measure", "questions", "before", "now", "difference", "95 % interval", ""}}
	known := map[question]score{}
	asked := map[question]int{} // how many of a way to ask, whose questions have no number
	for _, s := range before {
		known[s.question()] = s
		asked[s.way()]++
	}
	alone := 0
	for _, r := range results {
		for _, m := range append(append([]modeResult{}, r.Modes...), r.Ablation...) {
			var now, then []score
			for _, s := range m.scores {
				if b, ok := known[s.question()]; ok {
					b.Group, b.Category, b.Apart = s.Group, s.Category, s.Apart
					now, then = append(now, s), append(then, b)
				}
			}
			if len(m.scores) > 0 {
				alone += len(m.scores) + asked[m.scores[0].way()] - 2*len(now)
			}
			for _, mark := range marks {
				after, before := mark.samples(now), mark.samples(then)
				if mark.set != r.Set || len(after) == 0 && len(before) == 0 {
					continue
				}
				low, high := stats.GroupDifference(after, before, seed)
				t.Rows = append(t.Rows, []string{mark.name(), m.name(), mark.measure, fmt.Sprint(max(len(after), len(before))), three(meanOf(before)), three(meanOf(after)),
					signed(meanOf(after) - meanOf(before)), span(low, high), verdict(low, high)})
			}
		}
	}
	if alone > 0 {
		t.Note("%d answers have none in the other run to be compared with", alone)
	}
	return t
}

// verdict says whether a difference is outside of the noise.
func verdict(low, high float64) string {
	switch {
	case low > 0:
		return "better"
	case high < 0:
		return "worse"
	}
	return ""
}

func meanOf(samples []stats.Sample) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.Value
	}
	return stats.Mean(values)
}

func three(v float64) string { return fmt.Sprintf("%.3f", v) }

func signed(v float64) string { return fmt.Sprintf("%+.3f", v) }

func span(low, high float64) string { return signed(low) + " to " + signed(high) }
