package query

import (
	"strings"
	"testing"

	"mneme/internal/text"
	"mneme/memory"
)

// TestLongTextsOfOneSearchHadNoEnd: each result was analysed as a whole for its
// snippet, and each memory that holds the words of a phrase for the phrase: 40 texts
// of 256 KiB that decompose to eleven times as much took 11 s.
func TestLongTextsOfOneSearchHadNoEnd(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	const docs = 36
	long := "zebra " + strings.Repeat("filler ", 35_000) + "and the needle in the hay. "
	for range docs {
		w.One("team", "ann", long)
	}
	each := openWork + text.Work(long)
	within := func(work int) int { return (work + each - 1) / each }
	if n := within(maxWork); n >= docs || n < 10 {
		t.Fatalf("the budget is for %d of %d texts", n, docs)
	}
	shown := func(q string) (needles, beginnings int) {
		for _, h := range w.search("team", "", memory.SearchRequest{Query: q, Mode: memory.ModeText, Limit: ptr(200)}).Results {
			switch {
			case strings.Contains(h.Snippet, "needle"):
				needles++
			case strings.HasPrefix(h.Snippet, "zebra filler"):
				beginnings++
			default:
				t.Errorf("%s: snippet %q", q, h.Snippet)
			}
		}
		return needles, beginnings
	}
	if a, b := shown("needle"); a != within(maxWork) || a+b != docs {
		t.Errorf("%d texts were searched for the best piece, %d not; the budget is for %d", a, b, within(maxWork))
	}
	// A quarter of the budget is left for what phrases found.
	found := within(maxWork - shownWork)
	if a, b := shown(`"needle in the hay"`); a+b != found || a != within(maxWork-found*each) {
		t.Errorf("%d results of a phrase, %d of them with the best piece; the budget is for %d and %d", a+b, a, found, within(maxWork-found*each))
	}
	// Nothing of the budget goes to the next search, and what does not hold a phrase is no result.
	w.One("team", "bob", "a short one holds no needle at all")
	res := w.search("team", "", memory.SearchRequest{Query: `"no needle"`, Mode: memory.ModeText}).Results
	if len(res) != 1 || res[0].Agent != "bob" {
		t.Errorf("%v", len(res))
	}
}
