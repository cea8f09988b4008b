package rank

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mneme/internal/text"
)

func phrasePlan(t *testing.T, query string) *Plan {
	t.Helper()
	p, err := NewPlan(Question{Query: query, ByText: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPhrasesTookTimeForEachOfTheirWords: a phrase of 8,000 words was compared from
// each word of a text of 131,000 that begins as the phrase does, which took 1.9 s.
func TestPhrasesTookTimeForEachOfTheirWords(t *testing.T) {
	const long = 8000
	p := phrasePlan(t, `"`+strings.Repeat("x ", long-2)+`y x"`)
	for _, words := range []int{1000, 20_000} {
		s := strings.Repeat("x ", words-1) + "y"
		m := []phraseMatcher{{Phrase: &p.Phrases[0]}}
		if p.findAll(m, s) {
			t.Error("found what is not there")
		}
		if m[0].compared > 2*words {
			t.Errorf("%d words were compared %d times", words, m[0].compared)
		}
	}
	if !p.HasPhrases(strings.Repeat("x ", 2*long) + "y x") {
		t.Error("not found where it is")
	}
}

// TestPhraseMatcherTwin compares with a look at each place of a text.
func TestPhraseMatcherTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	words := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = []string{"red", "green", "the"}[r.IntN(3)]
		}
		return strings.Join(out, " ")
	}
	folded := func(s string) (out []string) {
		text.AnalyzeWords(s, func(w text.Word) bool {
			out = append(out, w.Folded)
			return true
		})
		return out
	}
	stands := func(phrase, s string) bool {
		ph, all := folded(phrase), folded(s)
		for i := 0; i+len(ph) <= len(all); i++ {
			if slices.Equal(all[i:i+len(ph)], ph) {
				return true
			}
		}
		return false
	}
	found := 0
	for range 3000 {
		a, b, s := words(1+r.IntN(5)), words(1+r.IntN(8)), words(r.IntN(60))
		want := stands(a, s) && stands(b, s)
		if got := phrasePlan(t, `"`+a+`" "`+b+`"`).HasPhrases(s); got != want {
			t.Fatalf("seed %d: %q and %q in %q: %v, want %v", seed, a, b, s, got, want)
		}
		if want {
			found++
		}
	}
	if found < 300 {
		t.Errorf("seed %d: only %d were found", seed, found)
	}
}
