package query

import (
	"context"
	"strings"
	"testing"

	"mneme/memory"
)

// TestTextsFitAWindow: one hit of 256 KiB took the whole window of an agent.
func TestTextsFitAWindow(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ctx := context.Background()
	long := strings.Repeat("部署 needle ", 1000)
	id := w.One("team", "ann", long)
	w.One("team", "ann", "a short needle")
	r := w.reader("team", "")
	for _, c := range []struct {
		fit   memory.Fit
		runes int
	}{{memory.Fit{}, memory.DefaultMaxText}, {memory.Fit{MaxText: ptr(7)}, 7}, {memory.Fit{MaxText: ptr(0)}, 0}, {memory.Fit{MaxText: ptr(memory.MaxTextBytes)}, len([]rune(long))}} {
		want := string([]rune(long)[:c.runes])
		check := func(what, id2, text string, truncated bool) {
			t.Helper()
			if id2 == id && (text != want || truncated != (want != long)) {
				t.Errorf("%s, %d runes: %d bytes, truncated %v", what, c.runes, len(text), truncated)
			}
			if id2 != id && c.runes > 20 && (text != "a short needle" || truncated) {
				t.Errorf("%s: %q, truncated %v", what, text, truncated)
			}
		}
		res, err := r.Search(ctx, memory.SearchRequest{Query: "needle", Fit: c.fit})
		w.OK(err)
		list, err := r.List(ctx, memory.ListRequest{Fit: c.fit})
		w.OK(err)
		line, err := r.Timeline(ctx, memory.TimelineRequest{ID: id, Fit: c.fit})
		w.OK(err)
		if len(res.Results) != 2 || len(list.Records) != 2 || len(line.After) != 1 {
			t.Fatalf("%d hits, %d records, %d after", len(res.Results), len(list.Records), len(line.After))
		}
		for _, h := range res.Results {
			check("search", h.ID, h.Text, h.Truncated)
		}
		for _, rec := range append(list.Records, line.Anchor, line.After[0]) {
			check("list and timeline", rec.RecordID, rec.Text, rec.Truncated)
		}
	}
	// One memory alone is whole.
	rec, err := r.Get(ctx, id, 0)
	w.OK(err)
	h, err := r.History(ctx, id)
	w.OK(err)
	if rec.Text != long || rec.Truncated || h.Versions[0].Text != long {
		t.Errorf("%d bytes", len(rec.Text))
	}
}
