package query

import (
	"context"
	"testing"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/memory"
)

// TestGetReadsFewKeys: opening a reader once read 8 keys, and the record 3.
func TestGetReadsFewKeys(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ids := w.Capture("team", memory.Capture{Text: "named", URI: "mem://team/a/b", Agent: "ann"}, memory.Capture{Text: "private", Agent: "ann", Scope: memory.ScopeAgent})
	w.Revise("team", ids[0], 1, memory.Capture{Text: "named anew", URI: "mem://team/a/b", Agent: "ann"})
	for range 3 {
		w.Began(events.TypeEpochBegan) // a repaired log has epochs
	}
	get := func(as, name string, version int) (text string, reads int64) {
		before := w.Reads.Load()
		r, err := w.svc.Open(context.Background(), "team", as, views.Freshness{})
		w.OK(err)
		rec, err := r.Get(context.Background(), name, version)
		w.OK(err)
		w.OK(r.Close())
		return rec.Text, w.Reads.Load() - before
	}
	get("ann", ids[0], 0) // the settings are opened once
	for _, c := range []struct {
		what, as, name string
		version        int
		text           string
		most           int64
	}{
		{"by id", "", ids[0], 0, "named anew", 4},
		{"by id, as an agent", "ann", ids[0], 0, "named anew", 4},
		{"one's own", "ann", ids[1], 0, "private", 4},
		{"by uri", "ann", "mem://team/a/b", 0, "named anew", 4},
		{"a former version", "ann", ids[0], 1, "named", 4},
	} {
		text, reads := get(c.as, c.name, c.version)
		if text != c.text || reads > c.most || reads == 0 {
			t.Errorf("%s: %q with %d reads, want %q with at most %d", c.what, text, reads, c.text, c.most)
		}
		t.Logf("%s: %d reads", c.what, reads)
	}
}
