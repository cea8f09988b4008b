package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkSnippet fails if a snippet breaks a promise.
func checkSnippet(t *testing.T, s string, terms []string, maxRunes int) {
	t.Helper()
	snippet, start, end := Snippet(s, terms, maxRunes)
	if maxRunes < 1 || maxRunes > MaxSnippet {
		maxRunes = MaxSnippet
	}
	switch {
	case start < 0 || start > end || end > len(s) || s[start:end] != snippet:
		t.Fatalf("snippet of %q: %d..%d %q", s, start, end, snippet)
	case utf8.RuneCountInString(snippet) > maxRunes:
		t.Fatalf("snippet of %q has more than %d characters: %q", s, maxRunes, snippet)
	case utf8.ValidString(s) && !utf8.ValidString(snippet):
		t.Fatalf("snippet of %q cuts a character: %q", s, snippet)
	case snippet == "" && strings.TrimSpace(s) != "":
		t.Fatalf("snippet of %q is empty", s)
	}
}

func TestSnippet(t *testing.T) {
	filler := strings.Repeat("Nothing to see at all. ", 20)
	tests := []struct {
		name, in, query string
		max             int
		want            string
	}{
		{"short text", "  one two  ", "two", 100, "one two"},
		{"no hit", "one two three four", "zebra", 9, "one two"},
		{"begins with the sentence", filler + "We deploy on Tuesdays. " + filler, "deploy tuesday", 30, "We deploy on Tuesdays. Nothing"},
		{"most distinct terms", "cats cats cats " + filler + "cats chase dogs " + filler, "cats dogs", 20, "cats chase dogs"},
		{"cut at words", filler + "extraordinary deployments everywhere", "deployment", 24, "deployments everywhere"},
		{"one long word", strings.Repeat("x", 50), "y", 10, strings.Repeat("x", 10)},
		{"chinese", strings.Repeat("今天天气很好。", 20) + "猫喜欢吃鱼。" + strings.Repeat("今天天气很好。", 20), "猫喜欢", 12, "猫喜欢吃鱼。今天天气很好"},
		{"empty", "", "x", 5, ""},
		{"whole emoji", "👩‍💻👩‍💻👩‍💻 x", "", 4, "👩‍💻"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _, _ := Snippet(test.in, Terms(test.query), test.max)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkSnippet(t, test.in, Terms(test.query), test.max)
		})
	}
}

func TestSnippetIsAtMost700Characters(t *testing.T) {
	s := strings.Repeat("wörd ", 1000)
	for _, maxRunes := range []int{0, -1, 701, 1 << 30} {
		got, _, _ := Snippet(s, nil, maxRunes)
		if n := utf8.RuneCountInString(got); n > MaxSnippet || n < MaxSnippet-5 {
			t.Errorf("max %d: %d characters", maxRunes, n)
		}
	}
}

// TestSnippetFindsAsManyTermsAsBruteForce compares with every window there is.
func TestSnippetFindsAsManyTermsAsBruteForce(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	vocabulary := []string{"cat", "dog", "fish", "bird", "zzz", "qqq", "vvv", "www"}
	query := vocabulary[:4]
	for range 500 {
		var words []string
		for range 60 {
			words = append(words, vocabulary[min(7, r.IntN(20))])
		}
		s, maxRunes := strings.Join(words, " "), 10+r.IntN(60)
		distinct := func(window string) int {
			var seen []string
			for _, term := range Terms(window) {
				if slices.Contains(query, term) && !slices.Contains(seen, term) {
					seen = append(seen, term)
				}
			}
			return len(seen)
		}
		best := 0
		for i := range words {
			for j := i + 1; j <= len(words); j++ {
				if window := strings.Join(words[i:j], " "); len(window) <= maxRunes {
					best = max(best, distinct(window))
				}
			}
		}
		got, _, _ := Snippet(s, query, maxRunes)
		if d := distinct(got); d != best {
			t.Fatalf("seed %d: %q of %q (%d characters) has %d terms, %d are possible", seed, got, s, maxRunes, d, best)
		}
	}
}

func TestLines(t *testing.T) {
	s := "one\ntwo\n\nfour"
	tests := []struct{ start, end, first, last int }{
		{0, 3, 1, 1}, {0, 4, 1, 1}, {0, 5, 1, 2}, {4, 9, 2, 3}, {9, 13, 4, 4}, {0, 99, 1, 4}, {-5, -1, 1, 1}, {99, 0, 4, 4},
	}
	for _, test := range tests {
		if a, b := Lines(s, test.start, test.end); a != test.first || b != test.last {
			t.Errorf("Lines(%d, %d) = %d, %d; want %d, %d", test.start, test.end, a, b, test.first, test.last)
		}
	}
}
