package derive

import (
	"cmp"
	"slices"
	"time"

	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// WhoTerms are the terms of the field for who and when: the agent and its role, and
// the day on which it happened, if the agent told.
func WhoTerms(env *events.Envelope, c *events.Content) []string {
	var terms []string
	words := wordsPool.Get().(*[]text.Word)
	var names text.Analysis
	for _, name := range [...]string{env.Agent, c.Role} {
		if name == "" {
			continue
		}
		names = text.AnalyzeInto(*words, name)
		*words = names.Words
		names.Index(func(t text.Token) bool {
			terms = append(terms, t.Term)
			return true
		})
	}
	giveBack(words, names.Words)
	if c.OccurredSet {
		terms = append(terms, text.DateTerms(time.Unix(0, env.OccurredAt).UTC())...)
	}
	return terms
}

// termCounter counts the terms of an event by field.
type termCounter struct {
	terms   []index.Term // each occurrence, with the number of its passage as TF, until count
	lengths [index.NumFields]uint32
}

// addText adds the terms of a text, and what it says of its own names.
//
// text.PassageWords of a text count together, stop words too. A term of a
// longer text has the frequency that it has in the passage where it is most frequent,
// and the text the length of its longest passage. So a long memory is found as if it
// were one of its passages with the words of all, and neither its length nor what it
// repeats from passage to passage counts.
func (t *termCounter) addText(whole text.Analysis) {
	passage, length := uint32(0), uint32(0)
	start, end := 0, 0
	whole.Index(func(tok text.Token) bool {
		if at := uint32(tok.Pos / text.PassageWords); at != passage {
			passage, length = at, 0
		}
		if !index.ValidTerm(tok.Term) {
			return true
		}
		if tok.Start != start || tok.End != end || length == 0 { // another form makes a text no longer
			length++
		}
		start, end = tok.Start, tok.End
		t.lengths[index.FieldText] = max(t.lengths[index.FieldText], length)
		t.terms = append(t.terms, index.Term{Field: index.FieldText, Text: tok.Term, TF: passage})
		return true
	})
	whole.Definitions(func(short, long string) {
		for _, term := range text.DefinitionTerms(short, long) {
			t.terms = append(t.terms, index.Term{Field: index.FieldText, Text: term})
		}
	})
}

// add adds a term of another field.
func (t *termCounter) add(f index.Field, term string) {
	if !index.ValidTerm(term) {
		return // of a name with zero bytes, which nobody can ask for
	}
	t.lengths[f]++
	t.terms = append(t.terms, index.Term{Field: f, Text: term})
}

// count returns each term once, in the order of rows, so that nobody after this has to
// sort.
func (t *termCounter) count() []index.Term {
	slices.SortFunc(t.terms, func(a, b index.Term) int {
		return cmp.Or(index.CompareTerms(a, b), cmp.Compare(a.TF, b.TF))
	})
	var out []index.Term
	passage, n := uint32(0), uint32(0)
	for _, term := range t.terms {
		last := len(out) - 1
		if last >= 0 && index.CompareTerms(out[last], term) == 0 {
			if term.TF != passage {
				passage, n = term.TF, 0
			}
			n++
			out[last].TF = max(out[last].TF, min(n, index.MaxTF))
			continue
		}
		if out == nil {
			out = t.terms[:0]
		}
		passage, n = term.TF, 1
		term.TF = 1
		out = append(out, term)
	}
	return out
}
