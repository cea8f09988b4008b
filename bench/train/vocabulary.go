package main

import (
	"cmp"
	"maps"
	"slices"

	"mneme/internal/embed/static/tokens"
	"mneme/internal/text"
)

// vocabulary numbers the tokens that get a vector.
type vocabulary struct {
	words  []string
	counts []int
	ids    map[string]int32
	runs   map[string]bool
	total  int
}

// minCount is how often a token has to come.
const minCount = 4

// learnVocabulary takes the size most frequent tokens of the corpus.
func learnVocabulary(path string, runs map[string]bool, size int) (*vocabulary, error) {
	texts, err := lines(path, 't')
	if err != nil {
		return nil, err
	}
	var parts [2]map[string]int
	half := (len(texts) + 1) / 2
	spread(2, func(part int) {
		parts[part] = countTokens(texts[part*half:min(len(texts), (part+1)*half)], runs)
	})
	counts := parts[0]
	for w, n := range parts[1] {
		counts[w] += n
	}
	v := &vocabulary{ids: map[string]int32{}, runs: map[string]bool{}}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, w := range list {
		if counts[w] < minCount || len(v.words) == size {
			break
		}
		v.ids[w] = int32(len(v.words))
		v.words, v.counts = append(v.words, w), append(v.counts, counts[w])
		v.total += counts[w]
		if runs[w] {
			v.runs[w] = true
		}
	}
	return v, nil
}

func countTokens(texts [][]string, runs map[string]bool) map[string]int {
	counts := map[string]int{}
	for _, fields := range texts {
		tokens.Each(text.NewAnalysis(fields[0]), func(s string) bool { return runs[s] }, func(t tokens.Token) {
			if t.Kind != tokens.Whole && len(t.Text) <= 40 {
				counts[t.Text]++
			}
		})
	}
	return counts
}

// tokenise returns the ids of the tokens of s.
func (v *vocabulary) tokenise(s string) []int32 {
	var ids []int32
	tokens.Each(text.NewAnalysis(s), func(run string) bool { return v.runs[run] }, func(t tokens.Token) {
		if id, ok := v.ids[t.Text]; ok {
			ids = append(ids, id)
		}
	})
	return ids
}
