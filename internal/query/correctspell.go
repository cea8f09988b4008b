package query

import (
	"cmp"
	"slices"
	"strings"

	"mneme/internal/query/rank"
	"mneme/internal/text"
	"mneme/memory"
)

// toldNear is a correction by a word that is near to one of the query.
type toldNear struct {
	at         int // in search.corrections
	word, term string
	found      bool // it counts in a hit
}

// foundNear marks the near words that count in a hit.
func (s *search) foundNear(c *rank.Candidate) {
	if len(s.near) == 0 {
		return
	}
	for _, t := range s.ranking.Explain(c).Terms {
		for i := range s.near {
			if n := &s.near[i]; n.word == t.Term && n.term == t.ReadAs {
				n.found = true
			}
		}
	}
}

// dropNear drops the corrections by near words that count in no hit, as what lies below the
// floor was not found, and those of a word that are too many.
func (s *search) dropNear() {
	dropped, told, word := 0, 0, ""
	for _, n := range s.near { // in the order of corrections
		if n.word != word {
			told, word = 0, n.word
		}
		if n.found && told < s.maxTold() {
			told++
			continue
		}
		at := n.at - dropped
		s.corrections = slices.Delete(s.corrections, at, at+1)
		dropped++
	}
}

// maxTold is how many corrections of a word an answer lists.
func (s *search) maxTold() int {
	if s.req.Budget != nil {
		return 1
	}
	return maxTold
}

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
