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
	"mneme/memory"
)

// look finds what a word may mean.
func (c *corrector) look(w *queried) error {
	if w.begins != "" {
		err := c.begun(w)
		if err != nil || len(w.meanings) > 0 || w.many || w.apart || !c.s.plan.Parts[memory.PartVocabulary] {
			return err
		}
	}
	for _, name := range w.aliases {
		c.alias(w, name)
	}
	for _, near := range w.related() {
		if c.seen[near.term] == nil { // the query says it, too
			w.add(meaning{term: near.term, kind: kindRelated, weight: w.weightRelated(), written: near.word})
		}
	}
	if !w.chosen {
		return nil
	}
	if w.docs > 0 {
		if w.docs <= rareDocs && c.misspelt(w, leastEdit) {
			c.near(w, 1)
		}
		return nil
	}
	if !w.readable() {
		return nil
	}
	if w.Kind == text.KindNumber {
		c.begins(w, w.Term+".", maxListed, weightBeginning)
		return nil
	}
	c.glued(w)
	c.beginnings(w)
	if utf8.RuneCountInString(w.Term) >= leastPart {
		c.list(w, kindPart, weightPart, maxListed, func(v *known.Vocabulary, dst []string) ([]string, bool) {
			return v.Endings(dst, w.Term, maxListed)
		})
	}
	if c.misspelt(w, leastEdit) {
		c.near(w, 1)
	}
	if w.Kind == text.KindWord && !embed.Ordinary(w.Term) {
		c.split(w)
	}
	return nil
}

// begun adds the terms that begin as the query asks: of those that are nearest in length the
// most frequent ones. As terms are stems, it adds what a word would be that goes on with an
// ending, too.
func (c *corrector) begun(w *queried) error {
	var all []string
	take := func(found []string, whole bool) bool {
		if all = found; len(all) > maxBegun {
			slices.Sort(all)
			all = slices.Compact(all)
		}
		w.many = !whole || len(all) > maxBegun
		return !w.many
	}
	for _, form := range beginningForms(w.begins) {
		for _, v := range c.vocabularies {
			if !take(v.Beginnings(all, form, maxBegun)) {
				return nil
			}
		}
		for _, p := range c.unread {
			found, whole, err := p.in.view.Beginnings(all, p.Partition, form, maxBegun)
			if err != nil || !take(found, whole) {
				return err
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return known.CompareLikeness(w.begins, a, b) })
	all = slices.Compact(all)
	w.many = len(all) > maxBegunLooked
	for _, term := range all[:min(len(all), maxBegunLooked)] {
		w.add(meaning{term: term, kind: kindBegins, weight: 1, exact: isCoded(w.begins)})
	}
	c.stems(w, kindBegins, weightBeginning, leastBeginning, len(c.unread) > 0)
	return nil
}

// stems adds what a word would be that goes on with an ending, of at least so many characters
// without it; with unseen set also what is not in the vocabularies.
func (c *corrector) stems(w *queried, kind rank.Kind, weight float64, least int, unseen bool) {
	for _, term := range stemsOf(w.Folded, least) {
		if unseen || slices.ContainsFunc(c.vocabularies, func(v *known.Vocabulary) bool { return v.Has(term) }) {
			w.add(meaning{term: term, kind: kind, weight: weight})
		}
	}
}

// beginningForms are the beginnings of terms that a beginning stands for: Мёд is also written
// мед, and Müll muell.
func beginningForms(b string) []string {
	folded := text.Fold(b)
	out := []string{folded}
	text.Index(b, func(t text.Token) bool {
		if t.Start == 0 && utf8.RuneCountInString(t.Term) >= utf8.RuneCountInString(folded) && !slices.Contains(out, t.Term) {
			out = append(out, t.Term)
		}
		return true
	})
	return out
}

// stemsOf are the terms of the words that one of the endings makes of a word which was cut
// within it: "deploy" of "deploym". Without the ending they have at least so many characters.
func stemsOf(word string, least int) (out []string) {
	if len(word) > known.MaxNear {
		return nil
	}
	for _, ending := range wordEndings {
		for n := range ending {
			base, ok := strings.CutSuffix(word, ending[:n])
			if n == 0 || !ok || utf8.RuneCountInString(base) < least {
				continue
			}
			if term := termOf(base + ending); len(term) < len(word) && strings.HasPrefix(word, term) && !slices.Contains(out, term) {
				out = append(out, term)
			}
		}
	}
	return out
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
	if slices.Contains(text.Spellings(w.Folded), termOf(name)) {
		return // both are one word already
	}
	var terms []string
	for _, t := range topWords(name) {
		if t.Kind != text.KindStop && !slices.Contains(terms, t.Term) {
			terms = append(terms, t.Term)
		}
	}
	// Of a known word a name of several words would make concepts that the query lacks.
	if len(terms) == 1 || len(terms) > 1 && w.docs == 0 {
		w.add(meaning{term: terms[0], also: terms[1:], kind: kindAlias, weight: weight, written: name})
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

// beginnings adds the terms that begin with a word, and where it is no ordinary one those of words
// that begin so and have a shorter stem.
func (c *corrector) beginnings(w *queried) {
	least, most, weight := leastBeginning, maxListed, weightBeginning
	if strings.ContainsAny(w.Term, "0123456789") && w.Kind == text.KindWord {
		if least = leastCoded; utf8.RuneCountInString(w.Term) < leastSure {
			most = maxCoded
		}
	}
	ordinary := embed.Ordinary(w.Term)
	if ordinary {
		weight = weightOrdinary
	}
	if w.Kind == text.KindWord && (!ordinary || strings.HasSuffix(w.Folded, "i")) { // a term in i is a word in y
		c.stems(w, kindBeginning, weightCut, leastEdit, false)
	}
	for _, word := range []string{w.Folded, w.Term} { // the stem, if the whole word begins nothing
		if utf8.RuneCountInString(word) >= least && c.begins(w, word, most, weight) {
			return
		}
	}
}

// isCoded reports whether a beginning is one of a name, an address or a number, and of no word.
func isCoded(beginning string) bool {
	return strings.ContainsAny(beginning, "0123456789"+nameSigns)
}

// nameSigns stand between the parts of names.
const nameSigns = "_-./:@"

// goesOn reports whether a name has what is written and a sign behind it: 10.42.7 in 10.42.7.19.
func goesOn(written, name string) bool {
	return isCoded(written) && len(name) > len(written) && strings.HasPrefix(name, written) && strings.IndexByte(nameSigns, name[len(written)]) >= 0
}

// begins adds the terms that begin so if they are so many at most, and reports whether there are any.
func (c *corrector) begins(w *queried, beginning string, most int, weight float64) bool {
	return c.list(w, kindBeginning, weight, most, func(v *known.Vocabulary, dst []string) ([]string, bool) {
		return v.Beginnings(dst, beginning, most)
	})
}

// list adds the terms that are nearest in length of those that find lists in the
// vocabularies, and reports whether there are any. More than most say nothing.
func (c *corrector) list(w *queried, kind rank.Kind, weight float64, most int, find func(v *known.Vocabulary, dst []string) ([]string, bool)) bool {
	var all []string
	for _, v := range c.vocabularies {
		few := false
		if all, few = find(v, all); !few {
			return false
		}
	}
	slices.SortFunc(all, func(a, b string) int { return known.CompareLikeness(w.Folded, a, b) })
	if all = slices.Compact(all); len(all) > most {
		return false
	}
	for _, term := range all[:min(len(all), maxLooked)] {
		w.add(meaning{term: term, kind: kind, weight: weight, exact: kind == kindBeginning && goesOn(w.Folded, term)})
	}
	return len(all) > 0
}

// near adds the terms that edits lead to: from a form of the word, or, with one edit, to a word by
// its ending. Only where that gives nothing is more taken for its ending.
func (c *corrector) near(w *queried, edits int) {
	forms := w.forms()
	if edits > 1 {
		forms = forms[:1] // two edits take ten times the work
	}
	all := c.nearForms(w, edits, forms)
	if edits == 1 {
		all = append(all, c.withinEnding(w)...)
		for _, head := range w.heads() {
			if len(all) > 0 {
				break
			}
			all = c.nearHead(w, head)
		}
	}
	slices.SortFunc(all, func(a, b meaning) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.strange, b.strange), known.CompareLikeness(w.Term, a.term, b.term),
			known.CompareLikeness(w.Folded, a.written, b.written))
	})
	n := 0
	for i, m := range all {
		if i > 0 && all[i-1].term == m.term || n == maxLooked {
			continue
		}
		n++
		m.kind, m.weight = kindEdit, weightEdit
		switch {
		case w.docs > 0:
			m.kind, m.weight = kindCommon, weightCommon
		case m.edits > 1:
			m.weight = weightTwoEdits
		}
		w.add(m)
	}
}

// nearHead lists the terms that are what an edit makes of the word without its ending, and are the
// stem of the word with it.
func (c *corrector) nearHead(w *queried, head string) (all []meaning) {
	for _, m := range c.nearForms(w, 1, []string{head}) {
		m.written = m.term + w.Folded[len(head):]
		if termOf(m.written) == m.term {
			m.strange = known.Strangeness(w.Folded, m.written)
			all = append(all, m)
		}
	}
	return all
}

// nearForms lists the terms that edits lead to from a form of the word.
func (c *corrector) nearForms(w *queried, edits int, forms []string) (all []meaning) {
	var matches []known.Match
	for _, form := range forms {
		c.pattern.Set(form, edits)
		for _, v := range c.vocabularies {
			matches = v.Near(matches, &c.pattern, &c.work)
		}
	}
	for _, m := range matches {
		all = append(all, meaning{term: m.Term, edits: m.Edits, strange: known.Strangeness(w.Term, m.Term)})
	}
	return all
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
