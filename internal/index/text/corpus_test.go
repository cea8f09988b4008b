package text

import (
	"math/rand"
	"slices"
)

const (
	benchVocabulary = 200_000
	benchStopWords  = 100 // a query leaves out the most frequent
)

// corpus draws short documents, 8 to 32 tokens, by Zipf's law with a flattened head.
type corpus struct {
	rng  *rand.Rand
	zipf *rand.Zipf
	next uint32
}

func newCorpus(seed int64) *corpus {
	rng := rand.New(rand.NewSource(seed))
	return &corpus{rng: rng, zipf: rand.NewZipf(rng, 1.1, 20, benchVocabulary-1)}
}

func (c *corpus) doc(least, most int) Doc {
	tokens := make([]int, least+c.rng.Intn(most-least+1))
	for j := range tokens {
		tokens[j] = int(c.zipf.Uint64())
	}
	slices.Sort(tokens)
	d := Doc{ID: c.next, Lengths: [NumFields]uint32{uint32(len(tokens)), 1, 0}}
	c.next++
	for j, v := range tokens {
		if j > 0 && tokens[j-1] == v {
			d.Terms[len(d.Terms)-1].TF++
		} else {
			d.Terms = append(d.Terms, Term{Text: termText(v), TF: 1})
		}
	}
	d.Terms = append(d.Terms, Term{Text: termText(c.rng.Intn(50)), Field: FieldTags, TF: 1})
	slices.SortFunc(d.Terms, CompareTerms) // as derive gives them
	return d
}

// query draws a query of so many terms of the vocabulary's ranks from, to.
func (c *corpus) query(terms, from, to int) Query {
	q := Query{K: 10, FieldWeights: [NumFields]float64{1, 1, 1, 1}}
	for len(q.Terms) < terms {
		if v := int(c.zipf.Uint64()); v >= from && v < to {
			q.Terms = append(q.Terms, QueryTerm{Text: termText(v), Weight: 1, Concept: len(q.Terms)})
		}
	}
	return q
}

// benchQueries draws queries of so many terms of the vocabulary's ranks from, to.
func benchQueries(n, terms, from, to int) []Query {
	c := newCorpus(2)
	qs := make([]Query, n)
	for i := range qs {
		qs[i] = c.query(terms, from, to)
	}
	return qs
}
