package main

import (
	"fmt"
	"slices"
	"strings"

	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/memory"
)

// marks are what a search is to find: at 10 our own, else what plain BM25 (k1
// 1.2, b 0.75, light stemming, stop words removed) finds in the same sets.
var marks = map[string][]struct {
	k      int
	recall float64
}{
	"locomo":   {{5, 0.565}, {10, 0.80}, {20, 0.701}},
	"memdaily": {{5, 0.384}, {10, 0.55}},
	"beam":     {{5, 0.471}, {10, 0.62}},
}

// summarise makes one row of every question that counts, then one of each
// category, those apart last.
func summarise(scores []score) []row {
	byCategory := map[string][]score{}
	var counted []score
	var categories []string
	for _, s := range scores {
		if !s.apart {
			counted = append(counted, s)
		}
		if byCategory[s.category] == nil {
			categories = append(categories, s.category)
		}
		byCategory[s.category] = append(byCategory[s.category], s)
	}
	slices.Sort(categories)
	slices.SortStableFunc(categories, func(a, b string) int { return order(byCategory[a]) - order(byCategory[b]) })
	rows := []row{mean("all", counted)}
	for _, c := range categories {
		rows = append(rows, mean(c, byCategory[c]))
	}
	return rows
}

func order(s []score) int {
	if s[0].apart {
		return 1
	}
	return 0
}

func mean(category string, scores []score) row {
	pick := func(f func(score) float64) float64 {
		values := make([]float64, len(scores))
		for i, s := range scores {
			values[i] = f(s)
		}
		return stats.Mean(values)
	}
	return row{Category: category, Apart: len(scores) > 0 && scores[0].apart, Questions: len(scores),
		R5: pick(func(s score) float64 { return s.r5 }), R10: pick(func(s score) float64 { return s.r10 }),
		R20: pick(func(s score) float64 { return s.r20 }), RecallAll10: pick(func(s score) float64 { return s.all }),
		MRR: pick(func(s score) float64 { return s.rr })}
}

// tables prints the comparison with plain BM25 and then every category.
func tables(results []result, missing []string) []*report.Table {
	targets := report.NewTargets("Retrieval beside plain BM25, through REST")
	detail := &report.Table{Title: "Retrieval by category", Header: []string{"set", "mode", "category", "questions",
		"R@5", "R@10", "R@20", "recall_all@10", "MRR@20"}}
	for _, r := range results {
		for _, m := range r.Modes {
			all := m.Rows[0]
			at := map[int]float64{5: all.R5, 10: all.R10, 20: all.R20}
			for _, mark := range marks[r.Set] {
				if m.Mode != memory.ModeHybrid || m.Variant != "" {
					continue // the default mode is what is promised; the others explain it
				}
				targets.AtLeast(fmt.Sprintf("%s, %s: R@%d", r.Set, m.Mode, mark.k), mark.recall, at[mark.k], "", "")
			}
			targets.Info(fmt.Sprintf("%s, %s: search p50", r.Set, strings.TrimSpace(string(m.Mode)+" "+m.Variant)), m.P50ms, "ms", fmt.Sprintf("p99 %s ms", report.Number(m.P99ms)))
			for _, row := range m.Rows {
				detail.Rows = append(detail.Rows, cells(r.Set, m, row))
			}
		}
		c := r.Counts
		detail.Note("%s: %d namespaces, %d captures, %d questions; %d without evidence are not scored; evidence: %d entries malformed (what can be read of them counts), "+
			"%d ids missing (they weigh on recall); memories: %d not read, %d cut at the limit of a capture", r.Set, r.Namespaces, c.Captures, c.Questions,
			c.NoEvidence, c.Malformed, c.Missing, c.Unread, c.Cut)
	}
	detail.Note("R@k: share of a question's evidence among the first k results, mean over questions; \"apart\" categories ask for what the memories do not hold and are not part of \"all\"")
	for _, m := range missing {
		detail.Note("left out: %s", m)
	}
	out := []*report.Table{targets, detail, reliability(results)}
	return append(out, ablationTables(results)...)
}

func cells(set string, m modeResult, r row) []string {
	mode := strings.TrimSpace(string(m.Mode) + " " + m.Variant)
	if m.Served != m.Mode {
		mode += " (served as " + string(m.Served) + ")"
	}
	category := r.Category
	if r.Apart {
		category += " (apart)"
	}
	out := []string{set, mode, category, fmt.Sprint(r.Questions)}
	for _, v := range []float64{r.R5, r.R10, r.R20, r.RecallAll10, r.MRR} {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%.3f", v)))
	}
	return out
}
