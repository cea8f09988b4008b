package query

import (
	"context"
	"maps"
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

// topWords lists the words of a text that are not parts of others.
func topWords(s string) (tops []text.Word) {
	text.AnalyzeWords(s, func(w text.Word) bool {
		switch n := len(tops); {
		case n == 0 || w.Start >= tops[n-1].End:
			tops = append(tops, w)
		case w.Start == tops[n-1].Start && w.End > tops[n-1].End:
			tops[n-1] = w
		}
		return len(tops) < maxTops
	})
	return tops
}

// maxTops bounds the words whose neighbours are looked at.
const maxTops = 1024

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
		for _, other := range others {
			c.call(from, to, other)
		}
	})
}

// related are terms that are near to a word which no memory has, or hardly any: what many have
// is looked for as it stands, and so are the parts of names.
func (w *queried) related() []nearWord {
	if w.docs > rareDocs || w.begins != "" || !w.whole && !text.IsGram(w.Term) {
		return nil
	}
	var near []nearWord
	for _, n := range nearWords()[w.Term] {
		if isForm(w.Folded, n.of) {
			near = append(near, n)
		}
	}
	if len(near) > 0 {
		return near
	}
	for _, spelt := range text.Spellings(w.Folded) {
		for _, n := range nearWords()[spelt] {
			if slices.Contains(text.Spellings(n.of), w.Term) {
				near = append(near, n)
			}
		}
	}
	return near
}

// nearWord is a word that is near to another one, of.
type nearWord struct{ of, word, term string }

// isForm reports whether a word of the query is a word of the list, in the plural or as a verb. A
// stem says too little: a schedule is no scheduler.
func isForm(asked, listed string) bool {
	if base, ok := strings.CutSuffix(listed, "y"); ok && asked == base+"ies" {
		return true
	}
	stem := strings.TrimSuffix(listed, "e")
	rest, ok := strings.CutPrefix(asked, stem)
	return ok && (asked == listed || slices.Contains([]string{"s", "es", "d", "ed", "ing"}, rest))
}

// nearWords has what is near to a word of the trade, by its term.
var nearWords = sync.OnceValue(func() map[string][]nearWord {
	near := map[string][]nearWord{}
	for _, group := range known.Related() {
		for _, a := range group {
			asked := text.Terms(a.Word)[0]
			for _, b := range group {
				if n := (nearWord{a.Word, b.Word, text.Terms(b.Word)[0]}); !b.AskedOnly && asked != n.term && !slices.Contains(near[asked], n) {
					near[asked] = append(near[asked], n)
				}
			}
		}
	}
	maps.DeleteFunc(near, func(_ string, others []nearWord) bool { return termsOf(others) > maxNear })
	return near
})

// termsOf is how many terms there are among near words.
func termsOf(near []nearWord) int {
	terms := map[string]bool{}
	for _, n := range near {
		terms[n.term] = true
	}
	return len(terms)
}

// maxNear is how many terms are near to one at most: a word that is near to more says little
// by them.
const maxNear = 24

func (w *queried) weightRelated() float64 {
	if w.docs > 0 {
		return weightRelatedToo
	}
	return weightRelated
}

// Bounds of the definitions that a query looks for.
const (
	maxDefining = 16  // that explain one name
	maxDefined  = 128 // of all names of the query
)

// defined is a name in the query and what a memory says that it stands for.
type defined struct {
	from, to int // in corrector.tops
	other    string
}

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
	var all []defined
	q := index.Query{FieldWeights: c.s.plan.Words.FieldWeights, K: 1}
	for from := range c.tops {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, v := range c.vocabularies {
			name := c.tops[from].Term
			for to := from + 1; len(all) < maxDefined; to++ {
				listed, _ := v.Beginnings(nil, text.DefinitionPrefix(name), maxDefining)
				for _, term := range listed {
					if _, other, ok := text.ParseDefinition(term); ok && len(all) < maxDefined {
						all = append(all, defined{from, to, other})
						q.Terms = append(q.Terms, index.QueryTerm{Text: term, Weight: 1, Concept: len(q.Terms)})
					}
				}
				if to == len(c.tops) || !v.Any(text.LongerPrefix(name)) {
					break
				}
				name += " " + c.tops[to].Term
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	found, err := c.s.words(ctx, q)
	if err != nil {
		return err
	}
	defer found.close()
	for i, d := range all {
		if docsOf(found, i) > 0 {
			c.call(d.from, d.to, d.other)
		}
	}
	return nil
}

// call adds another name to the words tops[from:to].
func (c *corrector) call(from, to int, other string) {
	for _, w := range c.tops[from:to] {
		if q := c.seen[w.Term]; q != nil && w.Kind != text.KindStop && !slices.Contains(q.aliases, other) {
			q.aliases = append(q.aliases, other)
		}
	}
}
