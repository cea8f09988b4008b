package judged

import (
	"path/filepath"
	"slices"
	"strings"

	"mneme/memory"
)

type belief struct {
	ID      string   `json:"_id"`
	Type    string   `json:"type"`
	Name    string   `json:"canonical_name"`
	Aliases []string `json:"aliases"`
	Content string   `json:"content"`
	Why     string   `json:"why_it_matters"`
	Scope   []string `json:"scope"`
	Pinned  bool     `json:"pinned"`
}

type precisionCase struct {
	Category string   `json:"category"`
	Scope    []string `json:"scope"`
	Query    string   `json:"query"`
	Expect   struct {
		Relevant struct {
			Only []string `json:"shouldOnlyInclude"`
		} `json:"relevantBeliefs"`
	} `json:"expect"`
}

// loadPrecision reads the PrecisionMem set: beliefs about one user, and cases that
// say exactly which of them have to come back. What is pinned would be in every
// prompt; it is taken out of the memories and of what is wanted.
func loadPrecision(dir string) (*Set, error) {
	var beliefs []belief
	var cases []precisionCase
	if err := readJSON(filepath.Join(dir, "beliefs.json"), &beliefs); err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, "cases.json"), &cases); err != nil {
		return nil, err
	}
	set := &Set{Scoring: Exact}
	ns := Namespace{Name: "precision"}
	known, pinned := map[string]bool{}, map[string]bool{}
	for _, b := range beliefs {
		unit := "precision/" + b.ID
		if b.Pinned {
			pinned[unit] = true
			continue
		}
		known[unit] = true
		text := strings.Join([]string{b.Name, strings.Join(b.Aliases, ", "), b.Content, b.Why}, "\n")
		ns.Captures = append(ns.Captures, memory.Capture{ID: unit, Agent: "user", Text: set.fit(text), Tags: append(slices.Clone(b.Scope), b.Type)})
	}
	for _, c := range cases {
		q := Question{Text: c.Query, Category: c.Category}
		if len(c.Scope) > 0 {
			q.Filter = &memory.Filter{Tags: c.Scope[:1]}
		}
		for _, id := range c.Expect.Relevant.Only {
			if unit := "precision/" + id; !pinned[unit] {
				set.addUnit(&q, unit, known)
			}
		}
		q.Nothing = len(q.Evidence) == 0
		set.addQuestion(&ns, q)
	}
	set.Namespaces = []Namespace{ns}
	return set, nil
}
