package query

import (
	"context"
	"slices"
	"strings"
	"sync"

	index "mneme/internal/index/text"
	known "mneme/internal/index/words"
	"mneme/internal/text"
	"mneme/memory"
)

// names finds other names of the same thing: groups by name, each name as its folded
// words with spaces between them.
type names struct {
	groups  [][]string
	of      map[string][]int
	longest int // words of a name
}

// trade is the names of the trade, which every namespace has.
var trade = sync.OnceValue(func() *names { return newNames(known.Aliases()) })

func newNames(groups [][]string) *names {
	n := &names{groups: groups, of: map[string][]int{}}
	for i, group := range groups {
		for _, name := range group {
			words := topWords(name)
			key := nameOf(words)
			n.of[key] = append(n.of[key], i)
			n.longest = max(n.longest, len(words))
		}
	}
	return n
}

func nameOf(words []text.Word) string {
	folded := make([]string, len(words))
	for i := range words {
		folded[i] = words[i].Folded
	}
	return strings.Join(folded, " ")
}

// each visits the names among the words of a text with the other names of the same.
func (n *names) each(tops []text.Word, visit func(from, to int, others []string)) {
	for from := range tops {
		for to := from + 1; to <= len(tops) && to-from <= n.longest; to++ {
			name := nameOf(tops[from:to])
			for _, g := range n.of[name] {
				var others []string
				for _, other := range n.groups[g] {
					if nameOf(topWords(other)) != name {
						others = append(others, other)
					}
				}
				visit(from, to, others)
			}
		}
	}
}

// allNames are those of the trade and those of namespaces.
type allNames []*names

func (a allNames) each(tops []text.Word, visit func(from, to int, others []string)) {
	for _, n := range a {
		n.each(tops, visit)
	}
}

// names are those that the namespaces of the search know.
func (s *search) names() allNames {
	all := allNames{trade()}
	for i := range s.namespaces {
		if own := s.namespaces[i].view.Settings.Aliases; len(own) > 0 {
			all = append(all, newNames(own))
		}
	}
	return all
}

// called adds to the words of the query other names of what they call.
func (c *corrector) called(all allNames) {
	all.each(c.tops, func(from, to int, others []string) {
		for _, w := range c.tops[from:to] {
			if q := c.seen[w.Term]; q != nil && w.Kind != text.KindStop {
				for _, other := range others {
					if !slices.Contains(q.aliases, other) {
						q.aliases = append(q.aliases, other)
					}
				}
			}
		}
	})
}

// Bounds of the definitions that a query looks for.
const (
	maxDefined  = 32 // words of the query
	maxDefining = 64 // definitions that begin with one of them
)

// define adds the names that living memories of the reader explain themselves: "service
// level objective (SLO)". They are terms of the vocabulary, and are not looked for where it
// is not there yet.
func (c *corrector) define(ctx context.Context) error {
	if !c.s.plan.Parts[memory.PartVocabulary] {
		return nil
	}
	if err := c.openAll(); err != nil {
		return err
	}
	var listed []string
	for i := range c.tops[:min(len(c.tops), maxDefined)] {
		for _, v := range c.vocabularies {
			listed, _ = v.Beginnings(listed, text.DefinitionPrefix(c.tops[i].Folded), maxDefining)
		}
	}
	if len(listed) == 0 {
		return nil
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	var groups [][]string
	q := index.Query{FieldWeights: c.s.plan.Words.FieldWeights, K: 1}
	for _, term := range listed {
		name, other, ok := text.ParseDefinition(term)
		if !ok || !c.says(name) {
			continue
		}
		groups = append(groups, []string{name, other})
		q.Terms = append(q.Terms, index.QueryTerm{Text: term, Weight: 1, Concept: len(q.Terms)})
	}
	if len(groups) == 0 {
		return nil
	}
	found, err := c.s.words(ctx, q)
	if err != nil {
		return err
	}
	defer found.close()
	living := groups[:0]
	for i, g := range groups {
		if docsOf(found, i) > 0 {
			living = append(living, g)
		}
	}
	c.called(allNames{newNames(living)})
	return nil
}

// says reports whether a name stands in the query.
func (c *corrector) says(name string) bool {
	n := strings.Count(name, " ") + 1
	for i := 0; i+n <= len(c.tops); i++ {
		if nameOf(c.tops[i:i+n]) == name {
			return true
		}
	}
	return false
}
