package rank

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"mneme/internal/text"
)

// namesIn returns the agents that a query names.
func namesIn(c *Conversations, query string) []string {
	m := mention{terms: map[string]bool{}, names: map[string]bool{}}
	for _, t := range text.Terms(query) {
		m.terms[t] = true
	}
	var out []string
	for a, name := range c.agents {
		if c.named(&m)[uint32(a+1)] > 0 {
			out = append(out, name)
		}
	}
	return out
}

// letters is a word for a number: one with digits would make a name an identifier,
// which only the whole of it names.
func letters(n int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'k' }, fmt.Sprintf("%04d", n))
}

// TestNamesOfOneWordCostEachSearchThatSaysIt: the names of 100,000 agents that begin
// with "tuesday" were analysed for each search that said the word: 188 ms, for
// everybody.
func TestNamesOfOneWordCostEachSearchThatSaysIt(t *testing.T) {
	c := NewConversations(0)
	const agents = 3000
	for i := range agents {
		c.Describe(uint32(i), "tuesday-"+letters(i), 0)
	}
	c.Describe(agents, "tuesday", 0)
	day := text.Terms("tuesday")[0]
	m := mention{terms: map[string]bool{day: true}, names: map[string]bool{}}
	if len(c.named(&m)) != 1 {
		t.Error("the agent of that name is not named")
	}
	if got := testing.AllocsPerRun(10, func() { c.named(&m) }); got > 10 {
		t.Errorf("%v allocations", got)
	}
	looked := func(words ...string) (n int) {
		for _, w := range words {
			n += len(c.byTerm[w])
		}
		return n
	}
	if n := looked(day); n > maxNamesake {
		t.Errorf("%d of %d names are looked at for one word", n, agents)
	}
	// All pairs of a few words leave no rare one.
	for i := range 300 {
		for j := range 300 {
			c.Describe(uint32(agents+1+300*i+j), letters(i)+"-"+letters(j), 0)
		}
	}
	for i := range 300 {
		if n := looked(text.Terms(letters(i))...); n > maxNamesake {
			t.Errorf("%d names are looked at for one word", n)
		}
	}
}

// TestSpeakersTwin compares with a look at each name.
func TestSpeakersTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	word := func() string { return []string{"ann", "bob", "agent", "the", "7", "8", "red", "deploys"}[r.IntN(8)] }
	c := NewConversations(0)
	for i := range 80 { // fewer than maxNamesake
		name := word()
		for range r.IntN(3) {
			name += []string{"-", "_"}[r.IntN(2)] + word()
		}
		c.Describe(uint32(i), name, 0)
	}
	found := 0
	for range 300 {
		query := word() + " " + word() + " " + word()
		said := map[string]bool{}
		for _, term := range text.Terms(query) {
			said[term] = true
		}
		want := map[string]bool{}
		for _, name := range c.agents {
			terms := text.Terms(name)
			if len(terms) > 0 && subset(terms, said) {
				want[name] = true
			}
		}
		got := map[string]bool{}
		for _, name := range namesIn(c, query) {
			got[name] = true
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: %q names %v, want %v", seed, query, got, want)
		}
		found += len(got)
	}
	if found == 0 {
		t.Errorf("seed %d: nobody was named", seed)
	}
}
