package main

import (
	"fmt"

	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
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
		if s.Apart {
			continue
		}
		if by[s.Namespace] == nil {
			names = append(names, s.Namespace)
		}
		by[s.Namespace] = append(by[s.Namespace], s)
	}
	rows := make([]row, len(names))
	for i, name := range names {
		rows[i] = sum(name, by[name])
	}
	return rows
}

// ablationTables print what each part does, and the default by namespace: what
// helps must help in most of them. A set is shown by the measures of its marks.
func ablationTables(results []result) []*report.Table {
	parts := &report.Table{Title: "Ablation", Header: []string{"set", "measure", "variant", "value", "beside default", "95 % interval", "p50 ms"}}
	spaces := &report.Table{Title: "By namespace", Header: []string{"set", "measure", "namespace", "questions"}}
	for _, v := range variants() {
		spaces.Header = append(spaces.Header, v.name)
	}
	for _, r := range results {
		if len(r.Ablation) == 0 {
			continue
		}
		for _, mark := range marks {
			if mark.set != r.Set || mark.category != "" {
				continue
			}
			base := mark.samples(r.Ablation[0].scores)
			for _, m := range r.Ablation {
				got := mark.samples(m.scores)
				low, high := stats.GroupDifference(got, base, seed)
				parts.Rows = append(parts.Rows, []string{r.Set, mark.measure, m.Variant, three(meanOf(got)), signed(meanOf(got) - meanOf(base)), span(low, high), report.Number(m.P50ms)})
			}
			for i, s := range r.Ablation[0].Spaces {
				cells := []string{r.Set, mark.measure, s.Category, fmt.Sprint(s.Measures[mark.measure].Questions)}
				for _, m := range r.Ablation {
					cells = append(cells, three(m.Spaces[i].Measures[mark.measure].Mean))
				}
				spaces.Rows = append(spaces.Rows, cells)
			}
		}
	}
	if len(parts.Rows) == 0 {
		return nil
	}
	return []*report.Table{parts, spaces}
}
