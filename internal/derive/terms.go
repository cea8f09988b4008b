package derive

import (
	"slices"
	"time"

	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// WhoTerms are the terms of the field for who and when: the agent and its role, and
// the day on which it happened, if the agent told.
func WhoTerms(env *events.Envelope, c *events.Content) []string {
	terms := append(text.IndexTerms(env.Agent), text.IndexTerms(c.Role)...)
	if c.OccurredSet {
		terms = append(terms, text.DateTerms(time.Unix(0, env.OccurredAt).UTC())...)
	}
	return terms
}

// termCounter counts the terms of an event by field.
type termCounter struct {
	terms   []index.Term // each occurrence, until count
	lengths [index.NumFields]uint32
}

func (t *termCounter) add(f index.Field, term string) {
	if !index.ValidTerm(term) {
		return // of a name with zero bytes, which nobody can ask for
	}
	t.lengths[f]++
	t.terms = append(t.terms, index.Term{Field: f, Text: term, TF: 1})
}

// count returns each term once, in the order of rows, so that nobody after this has to
// sort.
func (t *termCounter) count() []index.Term {
	slices.SortFunc(t.terms, index.CompareTerms)
	var out []index.Term
	for _, term := range t.terms {
		if last := len(out) - 1; last >= 0 && index.CompareTerms(out[last], term) == 0 {
			out[last].TF = min(out[last].TF+1, index.MaxTF)
			continue
		}
		if out == nil {
			out = t.terms[:0]
		}
		out = append(out, term)
	}
	return out
}
