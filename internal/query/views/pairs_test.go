package views

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPairsMissNothing: a text may hold each of its parts, whatever bytes it has, and most others
// it may not.
func TestPairsMissNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	letters := []string{"a", "b", "c", " ", "é", "部", "\x00", "\xff", "-", "0", "1"}
	word := func(n int) string {
		var sb strings.Builder
		for range n {
			sb.WriteString(letters[random.IntN(len(letters))])
		}
		return sb.String()
	}
	for range 2000 {
		text, other := word(random.IntN(80)), word(1)
		p := pairsOf(text, other)
		from := random.IntN(len(text) + 1)
		part := text[from : from+random.IntN(len(text)-from+1)]
		if of := pairsOf(part); !p.may(&of) {
			t.Fatalf("%q holds %q", text, part)
		}
		if of := pairsOf(other); !p.may(&of) {
			t.Fatalf("%q is one of both", other)
		}
	}
	p, wrong := pairsOf("its ticket is ops-00042, and it listens on port 4222 of the gateway"), 0
	for range 1000 {
		if of := pairsOf("billing-" + word(8)); p.may(&of) {
			wrong++
		}
	}
	if wrong > 100 {
		t.Errorf("%d of 1000 other strings may be there", wrong)
	}
}
