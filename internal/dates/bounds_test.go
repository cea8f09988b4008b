package dates

import (
	"strings"
	"testing"
	"time"
)

// Each "the" in a run of 64,000 was the beginning of a date that might follow, and
// the run was read to its end from each of them.
func TestRunOfFillersIsNotReadFromEachOfThem(t *testing.T) {
	for _, filler := range []string{"the ", "of\n", "的"} {
		p := &parser{tokens: scan(strings.Repeat(filler, 1000)), loc: time.UTC}
		for i := range p.tokens {
			if n := p.skip(i) - i; n > maxFillers {
				t.Fatalf("%q: %d of %d were skipped at %d", filler, n, len(p.tokens), i)
			}
		}
		text := strings.Repeat(filler, 50) + " 5 May 2024"
		if got := Parse(text, time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC)); len(got) != 1 || text[got[0].Start:got[0].End] != "5 May 2024" {
			t.Errorf("%q: behind a run: %+v", filler, got)
		}
	}
}
