package query

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	known "mneme/internal/index/words"
	"mneme/internal/text"
)

// A vocabulary has stems, and a word with a slip in its ending keeps the ending: "deploymnet" is
// five edits from "deploy". Such a word is mended by the ending that it was meant to have, and the
// stem of what that gives is looked up.

// wordEndings are what English words end with whose stem is shorter: each stands for a slip
// anywhere within it, so there is one for every letter behind a usual stem.
var wordEndings = strings.Fields(`
s es ed er ers ing ings e y ies ied ying ly ily
ion ions ioned ioning ioner ation ations ition itions ution utions ction ctions sion sions ssion ssions tional tionally ational ationally ization izations isation isations ication ications
ment ments ement ements mental ness nesses less lessness ful fully fulness
able ably ability abilities ible ibly ibility ibilities
ance ances ence ences ancy ancies ency encies ant ants ent ents antly ently ential entially ental
ate ates ated ating ator ators ative atively ating icate icates icated icating icator icators
alize alizes alized alizing alization alizations
ize izes ized izing izer izers ise ises ised ising iser isers
al als ally ality alities ial ially ual ually ical ically ic ics icity icities ism isms
ive ives ively iveness ivity ivities ous ously ousness ious iously
ity ities arity ility ilities edly ingly
`)

// leastStem is how long what an ending is taken off is at least, in characters; three are enough
// of a word that is long: "logging".
const (
	leastStem      = leastEdit
	leastShortStem = 3
	leastLong      = 7
)

// forms are what stands for a word in a vocabulary: its stem, and itself.
func (w *queried) forms() []string {
	if w.Folded == w.Term || utf8.RuneCountInString(w.Folded) < leastEdit {
		return []string{w.Term}
	}
	return []string{w.Term, w.Folded}
}

// heads are what else a word may be without its ending, the longest first: a slip may keep the
// stemmer from it. "orchestrator" is "orchestr", and "orchstrator" is "orchstrat".
func (w *queried) heads() (out []string) {
	for _, ending := range wordEndings {
		if head, ok := strings.CutSuffix(w.Folded, ending); ok && len(ending) >= leastTaken && utf8.RuneCountInString(head) >= leastStem {
			out = append(out, head)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out[:min(len(out), maxHeads)]
}

const (
	leastTaken = 2 // letters of an ending
	maxHeads   = 4
)

// withinEnding lists the known terms of the words that one edit within or right before the ending
// makes of a word.
func (c *corrector) withinEnding(w *queried) (all []meaning) {
	if w.Kind != text.KindWord || len(w.Folded) > known.MaxNear || strings.Trim(w.Folded, lowerLetters) != "" {
		return nil
	}
	eachMended(w.Folded, func(word string) {
		term := termOf(word)
		if len(term) < leastShortStem || len(term) < leastStem && len(word) < leastLong || len(term) >= len(word) || term == w.Term {
			return
		}
		if w.docs == 0 && strings.HasPrefix(word, w.Folded) && strings.HasPrefix(w.Folded, term) {
			return // it is a beginning, see stems
		}
		if slices.ContainsFunc(c.vocabularies, func(v *known.Vocabulary) bool { return v.Has(term) }) {
			all = append(all, meaning{term: term, edits: 1, strange: known.Strangeness(w.Folded, word), written: word})
		}
	})
	return all
}

const lowerLetters = "abcdefghijklmnopqrstuvwxyz"

// eachMended visits the words that one edit makes of a word of lower letters by the ending that
// they get: a letter is inserted, left out or replaced within it, or two are swapped, one of
// which may stand right before it. Some are visited twice.
func eachMended(word string, visit func(mended string)) {
	for _, ending := range wordEndings {
		for n := len(ending) - 1; n <= len(ending)+1; n++ {
			at := len(word) - n
			if at < leastHead {
				break
			}
			if isOneEdit(word[at:], ending) {
				visit(word[:at] + ending)
			}
		}
		if at := len(word) - len(ending) - 1; at >= leastHead && word[at] == ending[0] && word[at+1] != ending[0] && word[at+2:] == ending[1:] {
			visit(word[:at] + word[at+1:at+2] + ending)
		}
	}
}

// leastHead is how many letters stand before an ending.
const leastHead = 2

// isOneEdit reports whether exactly one edit leads from a to b: a byte more, less or another one, or
// two neighbours swapped.
func isOneEdit(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a)+len(b) > 0 && len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
