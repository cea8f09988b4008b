package words

import (
	"slices"
	"strings"
	"testing"

	"mneme/internal/text"
)

// Bounds of the groups of related.txt.
const (
	maxGroup = 7
	maxName  = 32 // bytes
)

func TestRelated(t *testing.T) {
	groups := Related()
	if len(groups) < 1500 {
		t.Errorf("%d groups", len(groups))
	}
	of := map[string][]int{}
	for i, g := range groups {
		line := strings.Join(g, " = ")
		if len(g) < 2 || len(g) > maxGroup || line != strings.ToLower(line) {
			t.Errorf("%q: a group has 2 to %d words, in lower case", line, maxGroup)
		}
		var seen []string
		for _, word := range g {
			terms := text.Terms(word)
			if len(terms) != 1 || len(word) > maxName || strings.ContainsAny(word, " =#:,") {
				t.Errorf("%q: %q is no word by itself: %q", line, word, terms)
				continue
			}
			if slices.Contains(seen, terms[0]) {
				t.Errorf("%q: %q is there already, as %s", line, word, terms[0])
			}
			seen = append(append(seen, terms[0]), text.Spellings(word)...) // those are one word already
			of[word] = append(of[word], i)
		}
	}
	for i, g := range groups {
		for _, j := range of[g[0]] {
			if i != j && !slices.ContainsFunc(g, func(word string) bool { return !slices.Contains(groups[j], word) }) {
				t.Errorf("%q says no more than %q", g, groups[j])
			}
		}
	}
}
