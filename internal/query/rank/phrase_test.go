package rank

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mneme/internal/query/parse"
	"mneme/internal/text"
)

// must lists the words that the index has to hold of a phrase, in one namespace.
func must(phrase string) (p *Plan, groups [][]string) {
	ph, ok := parse.NewPhrase(phrase)
	if !ok {
		return nil, nil
	}
	p = NewPlan(Question{Query: phrase, Phrases: []parse.Phrase{ph}, ByText: true})
	for _, group := range p.Words.Must {
		var terms []string
		for _, at := range group {
			terms = append(terms, p.Words.Terms[at].Text)
		}
		groups = append(groups, terms)
	}
	return p, groups
}

// TestWordsOfPhrases lists what is required of the index, so that a phrase of code is not
// looked for in every text that holds any word of the question.
func TestWordsOfPhrases(t *testing.T) {
	for phrase, want := range map[string]string{
		"harbour crane":      "[[harbour] [crane]]",
		"%s.MethodName":      "[[s s.methodname] [methodnam s.methodname]]",
		"%3.*[4]d":           "[[d]]",
		"holds %v, not err":  "[[hold] [v] [err]]",
		"DATABASE.TABLE.col": "[[databas database.table.col] [tabl database.table.col table.col] [col database.table.col table.col]]",
		"data.js":            "[[data data.js] [js data.js]]",
		"don't // +build":    "[[build]]",
		"v2alpha 10 x1.y":    "[[y x1.y]]",
		"to be or not":       "[]",
	} {
		if _, got := must(phrase); fmt.Sprint(got) != want {
			t.Errorf("%q requires %v, want %s", phrase, got, want)
		}
	}
}

// TestWhatPhrasesRequireIsIndexed: a text that holds a phrase has all of its words in the
// index, whatever joins them and whatever stands around.
func TestWhatPhrasesRequireIsIndexed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	words := []string{"Harbour", "crane", "getName", "x", "v2", "42", "3.5", "don't", "ÉTÉ", "http", "go", "b3f9c0de", "IT", "the", "数据", "straße"}
	joints := []string{" ", " ", ".", "_", "-", "/", "::", "://", "(", "[4]", "%", "\"", "\\", "@", ",", ", ", "'", "’", "．", "＿", "․", "…", "­", "=", "#", "++", "：", "\n"}
	some := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[rng.IntN(len(words))] + joints[rng.IntN(len(joints))])
		}
		return b.String()
	}
	held, required := 0, 0
	for range 20000 {
		phrase := some(1 + rng.IntN(3))
		p, groups := must(phrase)
		if p == nil {
			continue
		}
		s := some(rng.IntN(3)) + []string{" ", "(", "/", ".", "-"}[rng.IntN(5)] + phrase + []string{" ", ")", "/", ".", "-"}[rng.IntN(5)] + some(rng.IntN(3))
		if !p.Takes(s) {
			continue
		}
		held++
		terms := text.IndexTerms(s)
		for _, group := range groups {
			required++
			if !slices.ContainsFunc(group, func(term string) bool { return slices.Contains(terms, term) }) {
				t.Fatalf("seed %d: %q holds %q and none of %v: %v", seed, s, phrase, group, terms)
			}
		}
	}
	if held < 1000 || required < 1000 {
		t.Errorf("%d texts held their phrases, of which %d words are required", held, required)
	}
}
