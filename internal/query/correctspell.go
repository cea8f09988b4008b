package query

import (
	"cmp"
	"slices"
	"strings"

	"mneme/internal/text"
	"mneme/memory"
)

// spellCorrections shows what was found in place of terms, which are stems: as the first
// of the hits writes it.
func (s *search) spellCorrections(hits []memory.Hit) {
	missing := map[string]bool{}
	for _, c := range s.corrections {
		if c.Kind == string(kindPhrase) {
			continue // it has words
		}
		for term := range strings.FieldsSeq(c.ReadAs) {
			missing[term], missing[termOf(term)] = true, true // a stem, or a word of a list
		}
	}
	written := map[string]string{}
	for i := range hits {
		if len(missing) == 0 {
			break
		}
		text.Index(hits[i].Snippet, func(t text.Token) bool {
			if missing[t.Term] {
				delete(missing, t.Term)
				written[t.Term] = strings.ToLower(hits[i].Snippet[t.Start:t.End])
			}
			return len(missing) > 0
		})
	}
	for i := range s.corrections {
		if s.corrections[i].Kind == string(kindPhrase) {
			continue
		}
		terms := strings.Fields(s.corrections[i].ReadAs)
		for k, term := range terms {
			if as := cmp.Or(written[term], written[termOf(term)]); as != "" {
				terms[k] = as
			}
		}
		s.corrections[i].ReadAs = strings.Join(terms, " ")
	}
	s.corrections = slices.CompactFunc(s.corrections, func(a, b memory.Correction) bool { // forms of one word
		return a.Word == b.Word && a.Kind == b.Kind && a.ReadAs == b.ReadAs
	})
}
