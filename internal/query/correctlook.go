package query

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"mneme/internal/embed"
	known "mneme/internal/index/words"
	"mneme/internal/query/rank"
	"mneme/internal/text"
)

// look finds what a word may mean.
func (c *corrector) look(w *queried) {
	for _, name := range w.aliases {
		c.alias(w, name)
	}
	if w.docs > 0 {
		if w.docs <= rareDocs && c.misspelt(w, leastEdit) {
			c.near(w, 1)
		}
		return
	}
	if w.Kind != text.KindWord && w.Kind != text.KindWhole {
		return
	}
	c.glued(w)
	c.beginnings(w)
	if utf8.RuneCountInString(w.Term) >= leastPart {
		c.list(w, kindPart, weightPart, func(v *known.Vocabulary, dst []string) []string { return v.Endings(dst, w.Term, maxListed) })
	}
	if c.misspelt(w, leastEdit) {
		c.near(w, 1)
	}
	if w.Kind == text.KindWord && !embed.Ordinary(w.Term) {
		c.split(w)
	}
}

func (w *queried) add(m meaning) {
	if m.term == w.Term || slices.ContainsFunc(w.meanings, func(o meaning) bool { return o.term == m.term && o.weight >= m.weight }) {
		return
	}
	w.meanings = slices.DeleteFunc(w.meanings, func(o meaning) bool { return o.term == m.term })
	w.meanings = append(w.meanings, m)
}

func (c *corrector) alias(w *queried, name string) {
	weight := weightAlias
	if w.docs > 0 {
		weight = weightOther
	}
	var terms []string
	for _, t := range topWords(name) {
		if t.Kind != text.KindStop && !slices.Contains(terms, t.Term) {
			terms = append(terms, t.Term)
		}
	}
	// Of a known word a name of several words would make concepts that the query lacks.
	if len(terms) == 1 || len(terms) > 1 && w.docs == 0 {
		w.add(meaning{term: terms[0], also: terms[1:], kind: kindAlias, weight: weight})
	}
}

// glued adds the terms that a word makes with the one before or after it.
func (c *corrector) glued(w *queried) {
	add := func(joined string) {
		term := termOf(joined)
		for _, v := range c.vocabularies {
			if term != "" && v.Has(term) {
				w.add(meaning{term: term, kind: kindGlued, weight: weightGlued})
			}
		}
	}
	if w.before != nil {
		add(w.before.Folded + w.Folded)
	}
	if w.after != nil {
		add(w.Folded + w.after.Folded)
	}
}

// termOf is the term of a word that is written in one piece; "" if it has none.
func termOf(word string) (term string) {
	text.AnalyzeWords(word, func(w text.Word) bool {
		if w.Kind != text.KindStop && w.Start == 0 && w.End == len(word) {
			term = w.Term
		}
		return false
	})
	return term
}

func (c *corrector) beginnings(w *queried) {
	least, weight := leastBeginning, weightBeginning
	if strings.ContainsAny(w.Term, "0123456789") && w.Kind == text.KindWord {
		least = leastCoded
	}
	if embed.Ordinary(w.Term) {
		weight = weightOrdinary
	}
	for _, word := range []string{w.Folded, w.Term} { // the stem, if the whole word begins nothing
		if utf8.RuneCountInString(word) >= least && c.list(w, kindBeginning, weight, func(v *known.Vocabulary, dst []string) []string { return v.Beginnings(dst, word, maxListed) }) {
			return
		}
	}
}

// list adds the terms that are nearest in length of those that find lists in the
// vocabularies, and reports whether there are any. Too many say nothing.
func (c *corrector) list(w *queried, kind rank.Kind, weight float64, find func(v *known.Vocabulary, dst []string) []string) bool {
	var all []string
	for _, v := range c.vocabularies {
		all = find(v, all)
	}
	slices.SortFunc(all, func(a, b string) int { return known.CompareLikeness(w.Folded, a, b) })
	all = slices.Compact(all)
	for _, term := range all[:min(len(all), maxLooked)] {
		w.add(meaning{term: term, kind: kind, weight: weight})
	}
	return len(all) > 0
}

// near adds the terms that edits lead to from a form of the word.
func (c *corrector) near(w *queried, edits int) {
	var all []known.Match
	forms := w.forms()
	if edits > 1 {
		forms = forms[:1] // an automaton of two edits takes a millisecond to build
	}
	for _, form := range forms {
		for _, v := range c.vocabularies {
			all = v.Near(all, form, edits, &c.work)
		}
	}
	slices.SortFunc(all, func(a, b known.Match) int {
		return cmp.Or(cmp.Compare(a.Edits, b.Edits), cmp.Compare(known.Strangeness(w.Term, a.Term), known.Strangeness(w.Term, b.Term)),
			known.CompareLikeness(w.Term, a.Term, b.Term))
	})
	n := 0
	for i, m := range all {
		if i > 0 && all[i-1].Term == m.Term || n == maxLooked {
			continue
		}
		n++
		kind, weight := kindEdit, weightEdit
		switch {
		case w.docs > 0:
			kind, weight = kindCommon, weightCommon
		case m.Edits > 1:
			weight = weightTwoEdits
		}
		w.add(meaning{term: m.Term, kind: kind, weight: weight, edits: m.Edits, strange: known.Strangeness(w.Term, m.Term)})
	}
}

// endings are those that the stemmer takes off a word, unless the misspelling keeps it
// from that: "orchestrator" is "orchestr", and "orchstrator" is "orchstrat".
var endings = []string{"ations", "ators", "ation", "ator", "ments", "ment", "ings", "ing", "ions", "ion", "able", "ible", "ally", "ness", "ity", "ive",
	"ers", "ed", "er", "es", "al", "ly"}

// forms are what stands for a word in a vocabulary: its stem, itself, and what it is
// without its ending.
func (w *queried) forms() []string {
	out := []string{w.Term}
	add := func(form string) {
		if utf8.RuneCountInString(form) >= leastEdit && !slices.Contains(out, form) {
			out = append(out, form)
		}
	}
	add(w.Folded)
	for _, ending := range endings {
		if form, ok := strings.CutSuffix(w.Folded, ending); ok {
			add(form)
			break
		}
	}
	return out
}

func (c *corrector) split(w *queried) {
	var all []known.Split
	for _, v := range c.vocabularies {
		all = v.Splits(all, w.Folded, termOf)
	}
	slices.SortFunc(all, func(a, b known.Split) int {
		return cmp.Or(strings.Compare(a.First, b.First), strings.Compare(a.Second, b.Second))
	})
	all = slices.Compact(all)
	for _, s := range all[:min(len(all), maxLooked)] {
		w.add(meaning{term: s.First, also: []string{s.Second}, kind: kindSplit, weight: weightSplit})
	}
}
