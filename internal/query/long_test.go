package query

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mneme/memory"
)

// thick is a text that is six times as long in JSON, which is 1.5 MB.
func thick(word string) string { return word + " " + strings.Repeat("\x01", 250_000) }

// tooLong reports an answer that is longer than a page and the record that ends it.
func tooLong(t *testing.T, what string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > maxAnswer+2<<20 {
		t.Errorf("%s: %d bytes", what, len(b))
	}
}

// TestPageOfLongRecordsWasUnbounded: 80 memories of control characters made a page
// of 120 MB.
func TestPageOfLongRecordsWasUnbounded(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ctx := context.Background()
	ids := map[string]bool{}
	var last string
	for range 14 {
		last = w.Capture("team", memory.Capture{Agent: "ann", Text: thick("needle"), Conversation: "talk"})[0]
		ids[last] = true
	}
	r := w.reader("team", "")
	whole := memory.Fit{MaxText: ptr(memory.MaxTextBytes)}
	req, pages := memory.ListRequest{Limit: memory.MaxLimit, Fit: whole}, 0
	for {
		page, err := r.List(ctx, req)
		w.OK(err)
		tooLong(t, "a page", page)
		for _, rec := range page.Records {
			if !ids[rec.RecordID] {
				t.Errorf("%s comes twice", rec.RecordID)
			}
			delete(ids, rec.RecordID)
		}
		pages++
		if req.Cursor = page.Cursor; req.Cursor == "" {
			break
		}
	}
	if len(ids) > 0 || pages != 3 {
		t.Errorf("%d pages, %d records are in none", pages, len(ids))
	}
	line, err := r.Timeline(ctx, memory.TimelineRequest{ID: last, Before: ptr(memory.MaxLimit), Fit: whole})
	w.OK(err)
	tooLong(t, "a timeline", line)
	if n := len(line.Before); n == 0 || line.Before[n-1].RecordID >= last {
		t.Errorf("%d records before it, which are not those next to it", n)
	}
	found, err := r.Search(ctx, memory.SearchRequest{Query: "needle", Mode: memory.ModeText, Limit: ptr(20), Fit: whole})
	w.OK(err)
	tooLong(t, "a search", found)
	if n := len(found.Results); n != 14 || found.Results[0].Truncated || !found.Results[n-1].Truncated || found.Results[n-1].Text != found.Results[n-1].Snippet {
		t.Errorf("%d hits", n)
	}
}

// TestHistoryOfLongVersionsWasUnbounded: a record may have any number of versions.
func TestHistoryOfLongVersionsWasUnbounded(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	const all = 12
	id := w.One("team", "ann", thick("first"))
	for v := range uint32(all - 1) {
		w.Revise("team", id, v+1, memory.Capture{Agent: "ann", Text: thick("later")})
	}
	r := w.reader("team", "")
	h, err := r.History(context.Background(), id)
	w.OK(err)
	tooLong(t, "a history", h)
	n := len(h.Versions)
	if n == 0 || h.Omitted+n != all || h.Versions[n-1].Version != all || h.Versions[0].Version != h.Omitted+1 || len(h.Events) != n {
		t.Errorf("%d versions, %d events, %d omitted", n, len(h.Events), h.Omitted)
	}
	_, err = r.Get(context.Background(), id, h.Omitted)
	w.OK(err)
}

// TestEventsOfLongRecordsWereHeldTogether: 256 events of a megabyte each were
// opened for one reader before it took the first.
func TestEventsOfLongRecordsWereHeldTogether(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for range 5 {
		w.One("team", "ann", thick("heavy"))
	}
	r := w.reader("team", "")
	f := follower{s: r.s, capability: r.view.Capability}
	batch, more, err := f.next(context.Background())
	w.OK(err)
	if len(batch) > 2 || !more {
		t.Errorf("%d events at once, more %v", len(batch), more)
	}
	seen := 0
	w.OK(r.s.Events(context.Background(), "team", "", "", false, func(memory.Event) error { seen++; return nil }))
	if seen != 6 { // the namespace's creation is one
		t.Errorf("%d events", seen)
	}
}
