package judged

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"mneme/bench/internal/corpus"
	"mneme/memory"
)

const (
	identifierTexts = 6000
	identifierNames = 300
	identifierSeed  = 9
	commonName      = 5 // a name in more comments is no question: any of them would do
	shortName       = 8 // letters; less of them is too little to leave some out
)

// identifier matches names of two parts or more in camel case.
var identifier = regexp.MustCompile(`\b[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b`)

var namePart = regexp.MustCompile(`^[a-z0-9]+|[A-Z][a-z0-9]+`)

// loadIdentifiers makes a set out of the documentation comments of the Go tree:
// names in camel case, asked for by what people type of them. Another version of
// Go gives another set.
func loadIdentifiers(ctx context.Context, _ string) (*Set, error) {
	c, err := corpus.Load(ctx, corpus.Options{Count: 1 << 20, Seed: identifierSeed, Sources: []string{"go-std"}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoData, err)
	}
	return identifiers(c.Texts[:min(len(c.Texts), identifierTexts)], identifierNames), nil
}

// identifiers asks for names out of the texts, chosen by chance.
func identifiers(texts []string, names int) *Set {
	ns := Namespace{Name: "identifiers"}
	units := map[string][]string{} // by name in lower case
	spelt := map[string]string{}
	for i, text := range texts {
		unit := fmt.Sprintf("identifiers/%d", i)
		ns.Captures = append(ns.Captures, memory.Capture{ID: unit, Agent: "go", Text: text, Kind: memory.KindFact})
		for _, name := range identifier.FindAllString(text, -1) {
			folded := strings.ToLower(name)
			spelt[folded] = name
			if known := units[folded]; len(known) == 0 || known[len(known)-1] != unit {
				units[folded] = append(known, unit)
			}
		}
	}
	var all []string
	for name, in := range units {
		if len(in) <= commonName && len(name) >= shortName {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	rng := rand.New(rand.NewPCG(identifierSeed, 6))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	set := &Set{Scoring: First}
	for _, folded := range all[:min(len(all), names)] {
		parts := namePart.FindAllString(spelt[folded], -1)
		out := 1 + rng.IntN(len(folded)-1) // not the first letter, which people get right
		glued := strings.ToLower(parts[len(parts)-2] + parts[len(parts)-1])
		beginning := folded[:(len(folded)*6+9)/10]
		for _, q := range []struct {
			category, text string
			answers        func(name string) bool
		}{
			{"as written", spelt[folded], func(name string) bool { return name == folded }},
			{"first 60 %", beginning, func(name string) bool { return strings.HasPrefix(name, beginning) }},
			{"one letter missing", folded[:out] + folded[out+1:], func(name string) bool { return name == folded }},
			{"glued", glued, func(name string) bool { return strings.Contains(name, glued) }},
		} {
			question := Question{Text: q.text, Category: q.category, Group: folded}
			for name, in := range units {
				if q.answers(name) {
					question.Evidence = append(question.Evidence, in...)
				}
			}
			slices.Sort(question.Evidence)
			question.Evidence = slices.Compact(question.Evidence)
			set.addQuestion(&ns, question)
		}
	}
	set.Namespaces = []Namespace{ns}
	return set
}
