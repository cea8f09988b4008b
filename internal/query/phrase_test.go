package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/query/rank"
	"mneme/memory"
)

// TestPhrases: a phrase finds the texts that hold it word for word, and all of
// them up to the limit, however good others are.
func TestPhrases(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	var want []string
	for i := range 150 { // better by every other measure
		w.One("team", "ann", fmt.Sprintf("harbour crane crane harbour %d", i))
	}
	for i := range 12 {
		want = append(want, w.One("team", "bob", fmt.Sprintf("%s and then the Harbour  CRANE stood still %d", strings.Repeat("a long story about many other things ", 5), i)))
	}
	w.One("team", "bob", "the crane of the harbour")
	sea := w.One("team", "carl", "今天和邻居一起吃晚饭")
	be := w.One("team", "dora", "to be or not to be is the question")
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText} {
		for _, q := range []string{`"the harbour crane stood"`, `crane “the Harbour crane” harbour`} {
			res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode, Limit: ptr(200), Explain: true}).Results
			var got []string
			for _, h := range res {
				got = append(got, h.ID)
				if err := checkExplain(&h); err != nil {
					t.Error(err)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: %d results, want %d", mode, q, len(got), len(want))
			}
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode, Limit: ptr(5)}).Results; len(res) != 5 {
				t.Errorf("%s %s: %d of 5 results", mode, q, len(res))
			}
		}
		for q, id := range map[string]string{`「邻居一起」`: sea, `question "to be or not to be"`: be} {
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode}).Results; len(res) != 1 || res[0].ID != id {
				t.Errorf("%s %s: %v", mode, q, texts(res))
			}
		}
		for _, q := range []string{`"crane stood harbour"`, `"no such words here"`, `"harbour crane stood" "long crane"`, `「一起邻居」`} {
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode}).Results; len(res) != 0 {
				t.Errorf("%s %s: %v", mode, q, texts(res))
			}
		}
		for _, q := range []string{`"crane`, `where is "the crane stood harbour"?`} {
			if res := w.search("team", "", memory.SearchRequest{Query: q, Mode: mode}).Results; len(res) != memory.DefaultLimit {
				t.Errorf("%s: %s quotes: %v", mode, q, texts(res))
			}
		}
	}
	many := ""
	for i := range 17 {
		many += fmt.Sprintf(`"word%d" `, i)
	}
	_, err := w.reader("team", "").Search(context.Background(), memory.SearchRequest{Query: many})
	wantCode(t, err, memory.CodeInvalid)
}

// TestPhraseTwin compares the phrases of random texts with a look at each text.
func TestPhraseTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 5)), time.Date(2023, 5, 1, 0, 0, 0, 0, time.UTC)}
	w := newWorld(t)
	w.Namespace("team", nil)
	tw := &twin{}
	g.populate(w, tw, 200)
	found := 0
	for range 100 {
		q := g.words(2)
		plan, err := rank.NewPlan(rank.Question{Query: `"` + q + `"`})
		w.OK(err)
		var want []string
		for _, r := range tw.visible("") {
			if plan.HasPhrases(r.c.Text) {
				want = append(want, r.id)
			}
		}
		var got []string
		for _, h := range w.search("team", "", memory.SearchRequest{Query: `"` + q + `"`, Limit: ptr(200)}).Results {
			got = append(got, h.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q: %d results, want %d", seed, q, len(got), len(want))
		}
		found += len(got)
	}
	if found == 0 {
		t.Errorf("seed %d: no phrase was found", seed)
	}
}
