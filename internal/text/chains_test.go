package text

import (
	"strings"
	"testing"
	"time"
)

// TestLongChainIsLookedThroughOnce: a chain of joined words that is no identifier was
// looked through anew from each of its words. 78 KB of "12:" took 6 seconds, 255 KB of
// "a-" minutes, in which nobody's captures were applied, and again at each start. The
// bound is against hanging: the longest text takes some 10 ms.
func TestLongChainIsLookedThroughOnce(t *testing.T) {
	for _, unit := range []string{"12:", "a-", "a:", "a+", "a#", "1%", "a&", "a=", "a?", "a~", "%20", "a-2024-01-02T1=", "a->b#"} {
		const bound = 20 * time.Second
		long := strings.Repeat(unit, 1<<20/len(unit))
		began, words := time.Now(), 0
		AnalyzeWords(long, func(Word) bool {
			words++
			return words%1024 != 0 || time.Since(began) < bound
		})
		if took := time.Since(began); took >= bound {
			t.Errorf("%q, %d bytes: not done after %v, at word %d", unit, len(long), took, words)
		}
	}
}

// TestRestOfAChainIsNoIdentifier: what is remembered of a chain changes no term: each
// rest of it gives the terms that it gives alone.
func TestRestOfAChainIsNoIdentifier(t *testing.T) {
	whole := func(s string) (names []string) {
		AnalyzeWords(s, func(w Word) bool {
			if w.Kind == KindWhole {
				names = append(names, w.Folded)
			}
			return true
		})
		return names
	}
	for _, s := range []string{"a-b-c=d", "12:30:15", "a=b&c=d#e", "x:y,a_b", "a-b then c-1", "a-b c_d-e"} {
		for i := range s {
			if got := whole(s[i:]); len(whole(s)) == 0 && len(got) > 0 {
				t.Errorf("%q has no identifier, %q has %q", s, s[i:], got)
			}
		}
	}
	if got := whole("a=b c-1 d:e f_g"); strings.Join(got, " ") != "c-1 f_g" {
		t.Errorf("identifiers %q", got)
	}
}
