package query

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"mneme/internal/events"
	"mneme/memory"
)

// TestVectorsBehindOrAheadOfTheView: what was forgotten was found by its vector until
// the sets had heard of it; and what was written after a reader had opened took the
// places of what it may see.
func TestVectorsBehindOrAheadOfTheView(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.One("team", "ann", "gulls sit all day on the crane that stands beside the quay of our old harbour")
	gone := w.One("team", "ann", "harbour secrets")
	hear := w.OnApply
	w.OnApply = nil // committed, and the sets have not heard of it yet
	w.Forget("team", gone, "ann", events.ScopeTeam)
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
		got := texts(w.search("team", "", memory.SearchRequest{Query: "harbour secrets", Mode: mode}).Results)
		if slices.Contains(got, "harbour secrets") {
			t.Errorf("%s finds what was forgotten: %v", mode, got)
		}
	}
	w.OnApply = hear
	hear(w.Applied[len(w.Applied)-1])
	old := w.reader("team", "")
	for i := range 300 {
		w.One("team", "ann", fmt.Sprint("harbour harbour ", i%7))
	}
	res, err := old.Search(context.Background(), memory.SearchRequest{Query: "harbour", Mode: memory.ModeVector, All: true})
	w.OK(err)
	if got := texts(res.Results); !slices.Equal(got, []string{"gulls sit all day on the crane that stands beside the quay of our old harbour"}) {
		t.Errorf("a reader of before finds %v", got)
	}
}
