package projections_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
)

// scopedRows gives all rows with what they end with: a namespace, or the zero id
// for the shard.
func scopedRows(t *testing.T, s *projections.State) map[string]projections.ScopedRow {
	t.Helper()
	out := map[string]projections.ScopedRow{}
	view(t, s, func(v *projections.View) {
		must(t, projections.ScopedRows(v, func(key []byte, row projections.ScopedRow) {
			if row.Scope == "" {
				t.Errorf("row %x lies below no declared prefix", key)
			}
			if row.Scope != "shard" && row.Namespace == (events.ID{}) {
				t.Errorf("row %x ends with its %s, which is nowhere", key, row.Scope)
			}
			out[string(key)] = row
		}))
	})
	return out
}

// TestDroppingTouchesNoOther: after a namespace was deleted no row is left that
// ends with it or with one of its partitions, and every row that ends with
// another one is what it was.
func TestDroppingTouchesNoOther(t *testing.T) {
	eachSeed(t, 250, func(t *testing.T, h *history, rnd *rand.Rand) {
		s := openState(t, t.TempDir())
		defer s.Close()
		fillTails(h)
		for _, ns := range h.ns {
			h.frame(h.madeOf(ns, "person-0"), h.endOf(ns, "person-0"))
		}
		fold(t, h.keys, s, h.log, 1+rnd.IntN(30))
		dropped := 0
		for _, ns := range h.ns {
			before := scopedRows(t, s)
			h.frame(h.deleted(ns))
			fold(t, h.keys, s, h.log, 1)
			after := scopedRows(t, s)
			for key, row := range before {
				now, left := after[key]
				switch {
				case row.Scope == "shard":
				case row.Namespace == ns:
					dropped++
					if left {
						t.Errorf("row %s of the deleted namespace is left", hex.EncodeToString([]byte(key)))
					}
				case !left || !bytes.Equal(now.Value, row.Value):
					t.Errorf("row %s of another namespace: %x became %x", hex.EncodeToString([]byte(key)), row.Value, now.Value)
				}
			}
			for key, row := range after {
				if _, was := before[key]; !was && row.Scope != "shard" {
					t.Errorf("the deletion wrote row %x", key)
				}
			}
		}
		if dropped < 500 {
			t.Errorf("only %d rows were dropped: the history is too tame", dropped)
		}
		kinds := map[byte]bool{}
		for _, p := range projections.PrefixesThatEnd() {
			kinds[p] = true
		}
		for key := range scopedRows(t, foldedAgain(t, h)) {
			delete(kinds, key[0])
		}
		if len(kinds) > 0 {
			t.Errorf("the history wrote no row below %v", kinds)
		}
	})
}

// fillTails captures so much in one more namespace that the text index writes
// postings.
func fillTails(h *history) {
	ns := h.made("full", embed.Space{})
	h.frame(ns)
	for range 3 {
		var evs []events.Envelope
		for range 100 {
			evs = append(evs, h.content(events.Header{Namespace: ns.Namespace, Agent: "ann"}, events.Content{Text: h.words(2)}))
		}
		h.frame(evs...)
	}
}

// foldedAgain folds what a history was before its namespaces were deleted.
func foldedAgain(t *testing.T, h *history) *projections.State {
	s := openState(t, t.TempDir())
	t.Cleanup(func() { _ = s.Close() })
	fold(t, h.keys, s, h.log[:len(h.log)-len(h.ns)], 7)
	return s
}
