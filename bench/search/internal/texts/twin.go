package texts

import (
	"math"
	"slices"
	"strings"
)

// The constants of BM25, for all.
const k1, b = 1.2, 0.75

// twin answers queries by looking at every document: BM25 with k1 1.2, b 0.75 and
// idf ln(1 + (N-n+0.5)/(n+0.5)).
type twin struct {
	docs [][]string
	avg  float64
}

func newTwin(docs documents) *twin {
	t := &twin{docs: make([][]string, len(docs.lines))}
	all := 0
	for i, line := range docs.lines {
		t.docs[i] = strings.Fields(line)
		all += len(t.docs[i])
	}
	t.avg = float64(all) / float64(len(t.docs))
	return t
}

func (t *twin) search(terms []string, k int) []hit {
	place := map[string]int{}
	for i, term := range terms {
		place[term] = i
	}
	n := make([]float64, len(terms))
	type match struct {
		doc uint32
		tf  []float64
	}
	var matches []match
	for id, words := range t.docs {
		var tf []float64
		for _, w := range words {
			if i, ok := place[w]; ok {
				if tf == nil {
					tf = make([]float64, len(terms))
				}
				tf[i]++
			}
		}
		for i := range tf {
			if tf[i] > 0 {
				n[i]++
			}
		}
		if tf != nil {
			matches = append(matches, match{doc: uint32(id), tf: tf})
		}
	}
	var hits []hit
	for _, m := range matches {
		h := hit{doc: m.doc}
		norm := 1 - b + b*float64(len(t.docs[m.doc]))/t.avg
		for i, tf := range m.tf {
			idf := math.Log(1 + (float64(len(t.docs))-n[i]+0.5)/(n[i]+0.5))
			h.score += idf * tf * (k1 + 1) / (tf + k1*norm)
		}
		hits = append(hits, h)
	}
	slices.SortFunc(hits, func(a, b hit) int {
		switch {
		case a.score > b.score || a.score == b.score && a.doc < b.doc:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	return hits[:min(k, len(hits))]
}

// closeScores is the relative difference under which two scores are a tie whose
// order rounding decides.
const closeScores = 1e-9

// same reports whether got is the ranking want, up to the order of ties.
func same(got, want []hit) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if math.Abs(got[i].score-want[i].score) > closeScores*math.Abs(want[i].score) {
			return false
		}
		if got[i].doc == want[i].doc {
			continue
		}
		// Another document of the same score may stand here.
		j := slices.IndexFunc(want, func(h hit) bool { return h.doc == got[i].doc })
		last := want[len(want)-1].score
		switch {
		case j >= 0 && math.Abs(want[j].score-got[i].score) <= closeScores*math.Abs(got[i].score):
		case j < 0 && math.Abs(last-got[i].score) <= closeScores*math.Abs(last):
		default:
			return false
		}
	}
	return true
}
