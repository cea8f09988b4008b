package main

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"mneme/bench/internal/corpus"
)

// What is asked of words and names out of the comments of the Go tree: another version
// of Go asks other questions.
const (
	nearSeed  = 9
	nearWords = 2000 // the most frequent ones
	nearEach  = 5    // each n-th of them is misspelt
	nearNames = 1000
)

var (
	plainWord = regexp.MustCompile(`\b[a-z]{6,16}\b`)
	leadName  = regexp.MustCompile(`^[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b`)
)

// nearness holds words, misspelt words with the place of the right one, and comments
// with the place of the name that they explain.
type nearness struct {
	words, names []string
	misspelt     []asked
	comments     []asked
}

type asked struct {
	text  string
	right int
}

// loadNearness reads the Go tree of this machine.
func loadNearness(ctx context.Context) (*nearness, error) {
	c, err := corpus.Load(ctx, corpus.Options{Count: 1 << 20, Seed: nearSeed, Sources: []string{"go-std"}})
	if err != nil {
		return nil, err
	}
	return findNearness(c.Texts), nil
}

func findNearness(texts []string) *nearness {
	n, counts, seen := &nearness{}, map[string]int{}, map[string]bool{}
	for _, t := range texts {
		for _, w := range plainWord.FindAllString(t, -1) {
			counts[w]++
		}
		name := leadName.FindString(t)
		if rest := strings.TrimSpace(t[len(name):]); name != "" && len(rest) > 40 && !seen[name] && len(n.names) < nearNames {
			seen[name] = true
			n.comments = append(n.comments, asked{rest, len(n.names)})
			n.names = append(n.names, name)
		}
	}
	n.words = slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	n.words = n.words[:min(len(n.words), nearWords)]
	r := rand.New(rand.NewPCG(nearSeed, 1))
	for i := 0; i < len(n.words); i += nearEach {
		if w := misspell(n.words[i], r); counts[w] == 0 {
			n.misspelt = append(n.misspelt, asked{w, i})
		}
	}
	return n
}

// misspell leaves a letter out, puts two the other way about, or writes one wrong or
// twice.
func misspell(w string, r *rand.Rand) string {
	i := r.IntN(len(w) - 1)
	switch r.IntN(4) {
	case 0:
		return w[:i] + w[i+1:]
	case 1:
		return w[:i] + w[i+1:i+2] + w[i:i+1] + w[i+2:]
	case 2:
		return w[:i] + string(rune('a'+r.IntN(26))) + w[i+1:]
	}
	return w[:i] + w[i:i+1] + w[i:]
}

// found returns the share of the questions whose right text is among the k nearest,
// 0 if there are none.
func found(e embedder, texts []string, questions []asked, k int) float64 {
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		vectors[i] = e.vector(t)
	}
	hits := 0
	for _, q := range questions {
		v := e.vector(q.text)
		own, better := dot(v, vectors[q.right]), 0
		for i := range vectors {
			if i != q.right && dot(v, vectors[i]) >= own {
				better++
			}
		}
		if better < k {
			hits++
		}
	}
	return float64(hits) / float64(max(1, len(questions)))
}
