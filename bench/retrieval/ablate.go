package main

import (
	"fmt"

	"mneme/bench/internal/report"
	"mneme/memory"
)

// variant is one way to search.
type variant struct {
	name  string
	req   memory.SearchRequest
	split int // the namespaces that each is spread over; 0 = it is searched as it is
}

// variants are the default search, then one without each part, one without all
// of them, the other fusion, and each source alone.
func variants() []variant {
	out := []variant{{name: "default"}}
	none := map[memory.Part]bool{}
	for _, p := range memory.Parts {
		none[p] = false
		out = append(out, variant{name: "without " + string(p), req: memory.SearchRequest{Parts: map[memory.Part]bool{p: false}}})
	}
	out = append(out, variant{name: "without all of them", req: memory.SearchRequest{Parts: none}})
	for _, f := range memory.Fusions[1:] {
		out = append(out, variant{name: "fusion " + string(f), req: memory.SearchRequest{Fusion: f}})
	}
	return append(out, variant{name: "mode text", req: memory.SearchRequest{Mode: memory.ModeText}},
		variant{name: "mode vector", req: memory.SearchRequest{Mode: memory.ModeVector}})
}

// byNamespace is the mean over the questions of each namespace that count.
func byNamespace(scores []score) []row {
	by := map[string][]score{}
	var names []string
	for _, s := range scores {
		if s.apart {
			continue
		}
		if by[s.namespace] == nil {
			names = append(names, s.namespace)
		}
		by[s.namespace] = append(by[s.namespace], s)
	}
	rows := make([]row, len(names))
	for i, name := range names {
		rows[i] = mean(name, by[name])
	}
	return rows
}

// ablationTables print what each part does, and the default by namespace: what
// helps must help in most of them.
func ablationTables(results []result) []*report.Table {
	parts := &report.Table{Title: "Ablation", Header: []string{"set", "variant", "R@5", "R@10", "R@20", "recall_all@10", "MRR@20", "R@10 beside default", "p50 ms"}}
	spaces := &report.Table{Title: "R@10 by namespace", Header: []string{"set", "namespace", "questions"}}
	found := false
	for _, r := range results {
		if len(r.Ablation) == 0 {
			continue
		}
		if !found {
			for _, m := range r.Ablation {
				spaces.Header = append(spaces.Header, m.Variant)
			}
		}
		found = true
		base := r.Ablation[0].Rows[0]
		for _, m := range r.Ablation {
			a := m.Rows[0]
			parts.Rows = append(parts.Rows, []string{r.Set, m.Variant, three(a.R5), three(a.R10), three(a.R20), three(a.RecallAll10), three(a.MRR),
				fmt.Sprintf("%+.3f", a.R10-base.R10), report.Number(m.P50ms)})
		}
		for i, s := range r.Ablation[0].Spaces {
			cells := []string{r.Set, s.Category, fmt.Sprint(s.Questions)}
			for _, m := range r.Ablation {
				cells = append(cells, three(m.Spaces[i].R10))
			}
			spaces.Rows = append(spaces.Rows, cells)
		}
	}
	if !found {
		return nil
	}
	return []*report.Table{parts, spaces}
}

func three(v float64) string { return fmt.Sprintf("%.3f", v) }
