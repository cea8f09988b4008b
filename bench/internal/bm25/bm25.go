// Package bm25 ranks texts by BM25 and nothing else: what a search has to be better than.
//
// Its job: words in lower case without stems or stop words, Chinese by characters, or any other cut; k1 1.2, b 0.75
// and idf ln(1 + (N-n+0.5)/(n+0.5)), as in Robertson and Zaragoza, "The Probabilistic Relevance
// Framework: BM25 and Beyond" (2009), with the idf that Lucene takes.
//
// Not its job: to be fast.
package bm25

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

const k1, b = 1.2, 0.75

// Index holds texts by their number, which is their place in the order of Add. The zero value is
// empty. It is for one goroutine.
type Index struct {
	Cut      func(string) []string // the words of a text or query; nil = plain words
	lengths  []int
	words    int
	postings map[string][]posting
}

type posting struct{ doc, tf int }

// Hit is a text by its number.
type Hit struct {
	Doc   int
	Score float64
}

// Len is how many texts there are.
func (x *Index) Len() int { return len(x.lengths) }

// Add adds a text.
func (x *Index) Add(text string) {
	if x.postings == nil {
		x.postings = map[string][]posting{}
	}
	words, doc := x.cut(text), len(x.lengths)
	for _, w := range words {
		if p := x.postings[w]; len(p) > 0 && p[len(p)-1].doc == doc {
			p[len(p)-1].tf++
			continue
		}
		x.postings[w] = append(x.postings[w], posting{doc, 1})
	}
	x.lengths = append(x.lengths, len(words))
	x.words += len(words)
}

// Search returns up to limit texts that share a word with the query and that keep takes, best
// first, equal ones by number. A word that the query has twice counts twice.
func (x *Index) Search(query string, limit int, keep func(doc int) bool) []Hit {
	scores := map[int]float64{}
	n, mean := float64(len(x.lengths)), float64(x.words)/float64(len(x.lengths))
	for _, w := range x.cut(query) {
		found := x.postings[w]
		df := float64(len(found))
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		for _, p := range found {
			tf := float64(p.tf)
			scores[p.doc] += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(x.lengths[p.doc])/mean))
		}
	}
	var hits []Hit
	for doc, score := range scores {
		if keep(doc) {
			hits = append(hits, Hit{doc, score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Doc, b.Doc)) })
	return hits[:min(limit, len(hits))]
}

func (x *Index) cut(s string) []string {
	if x.Cut != nil {
		return x.Cut(s)
	}
	return split(s)
}

// split returns the runs of letters and digits, in lower case, and each Han character.
func split(text string) []string {
	var words []string
	for _, run := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
		start := 0
		for i, r := range run {
			if !unicode.Is(unicode.Han, r) {
				continue
			}
			if i > start {
				words = append(words, run[start:i])
			}
			start = i + len(string(r))
			words = append(words, run[i:start])
		}
		if start < len(run) {
			words = append(words, run[start:])
		}
	}
	return words
}
