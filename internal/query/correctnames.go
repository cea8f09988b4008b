package query

import (
	"strings"
	"sync"

	known "mneme/internal/index/words"
	"mneme/internal/text"
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
