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
// of them, and each source alone.
func variants() []variant {
	out := []variant{{name: "default"}}
	none := map[memory.Part]bool{}
	for _, p := range memory.Parts {
		none[p] = false
		out = append(out, variant{name: "without " + string(p), req: memory.SearchRequest{Parts: map[memory.Part]bool{p: false}}})
	}
	out = append(out, variant{name: "without all of them", req: memory.SearchRequest{Parts: none}})
	return append(out, variant{name: "mode text", req: memory.SearchRequest{Mode: memory.ModeText}},
		variant{name: "mode vector", req: memory.SearchRequest{Mode: memory.ModeVector}})
}

// ablation prints what each part does to the measures of a set's marks: the default,
// and how far each other way to search is from it.
func ablation(results []result) *report.Table {
	t := &report.Table{Title: "Ablation", Header: []string{"set", "measure"}}
	for _, v := range variants() {
		t.Header = append(t.Header, v.name)
	}
	for _, r := range results {
		if len(r.Ablation) == 0 {
			continue
		}
		for _, mark := range marks {
			base := mark.samples(r.Ablation[0].scores)
			if mark.set != r.Set || len(base) == 0 {
				continue
			}
			cells := []string{mark.name(), mark.measure, three(meanOf(base))}
			for _, m := range r.Ablation[1:] {
				got := mark.samples(m.scores)
				low, high := stats.GroupDifference(got, base, seed)
				cells = append(cells, fmt.Sprintf("%s (%s)", signed(meanOf(got)-meanOf(base)), span(low, high)))
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	t.Note("beside the default: the difference, with its 95 %% interval by paired bootstrap")
	return t
}
