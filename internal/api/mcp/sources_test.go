package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mneme/client"
	"mneme/internal/likeness"
	"mneme/memory"
)

// sources stores so many memories, and returns their ids.
func (w *world) sources(n int) []string {
	w.t.Helper()
	items := make([]memory.Capture, n)
	for i := range items {
		items[i] = memory.Capture{Agent: "ann", Text: fmt.Sprintf("Source %d of the harbour's history.", i)}
	}
	resp, err := w.api.CaptureBatch(w.t.Context(), "team", items, client.CaptureOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	ids := make([]string, n)
	for i, r := range resp.Results {
		ids[i] = r.RecordID
	}
	return ids
}

// TestMoreSourcesThanAMemoryMayHave are refused with what to do where one call gives them. Where they are
// too many together with those that are there, a memory of its own has those that were given.
func TestMoreSourcesThanAMemoryMayHave(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	ids := w.sources(2*memory.MaxDerivedFrom + 1)
	most, rest := ids[:memory.MaxDerivedFrom], ids[memory.MaxDerivedFrom:]
	const said = "The harbour was built in 1820."
	text, failed := call(t, s, "memory_store", map[string]any{"text": said, "derived_from": ids[:len(most)+1]}, nil)
	if !failed || !strings.HasPrefix(text, "invalid: derived_from has 65 ids, at most 64 are allowed. ") || !strings.Contains(text, "name") {
		t.Errorf("65: %s", text)
	}
	first, _ := storing(t, s, map[string]any{"text": said, "derived_from": slices.Concat(most[:60], most[:60])})
	if rec := w.record(first.ID, "ann"); !slices.Equal(rec.DerivedFrom, most[:60]) {
		t.Errorf("named twice: %d", len(rec.DerivedFrom))
	}
	if again, text := storing(t, s, map[string]any{"text": said, "derived_from": most[:64]}); again.ID != first.ID || again.Times != 2 || len(w.record(first.ID, "ann").DerivedFrom) != 64 {
		t.Errorf("64 together: %+v, %s", again, text)
	}
	if text, failed := call(t, s, "memory_store", map[string]any{"text": said, "derived_from": ids[:len(most)+1]}, nil); !failed || !strings.HasPrefix(text, "invalid: derived_from has 65 ids") {
		t.Errorf("65, and it is there: %s", text)
	}
	more, text := storing(t, s, map[string]any{"text": said, "derived_from": rest[:3]})
	if rec := w.record(more.ID, "ann"); more.Status != "created" || more.Like == nil || more.Like.ID != first.ID || !more.Like.Linked || !slices.Equal(rec.DerivedFrom, append(slices.Clone(rest[:3]), first.ID)) {
		t.Errorf("67 together: %+v, %s\n%+v", more, text, rec)
	}
	if again, text := storing(t, s, map[string]any{"text": said, "derived_from": rest[:4]}); again.ID != more.ID || again.Status != "duplicate" {
		t.Errorf("once more: %+v, %s", again, text)
	}
	if rec := w.record(more.ID, "ann"); !slices.Contains(rec.DerivedFrom, rest[3]) {
		t.Errorf("%q", rec.DerivedFrom)
	}

	// With as many as it may have it names the one that it is like in its metadata alone, and says so.
	full, text := storing(t, s, map[string]any{"text": "the harbour was built in 1820", "derived_from": rest[:64]})
	rec := w.record(full.ID, "ann")
	if full.Like == nil || full.Like.Linked || strings.Contains(text, "names it") || !slices.Equal(rec.DerivedFrom, rest[:64]) || likeness.SaidOf(rec.Metadata).Near != full.Like.ID {
		t.Errorf("full: %+v, %s\n%+v", full, text, rec)
	}
}

// TestASourceThatWasForgottenRefusedOthers: a memory whose source is there no more took none that its
// agent gave it later, and the error spoke of one that the agent had not named.
func TestASourceThatWasForgottenRefusedOthers(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	ids := w.sources(2)
	const said = "The harbour was built in 1820."
	first, _ := storing(t, s, map[string]any{"text": said, "derived_from": ids[:1]})
	if text, failed := call(t, s, "memory_forget", map[string]any{"id": ids[0]}, nil); failed {
		t.Fatal(text)
	}
	if again, _ := storing(t, s, map[string]any{"text": said}); again.ID != first.ID || again.Times != 2 {
		t.Errorf("without a source: %+v", again)
	}
	for i := range 2 {
		more, text := storing(t, s, map[string]any{"text": said, "derived_from": ids[1:]})
		if rec := w.record(more.ID, "ann"); more.ID == first.ID || (more.Status == "created") != (i == 0) || !slices.Contains(rec.DerivedFrom, ids[1]) {
			t.Errorf("%+v, %s\n%+v", more, text, rec)
		}
	}
	for _, bad := range []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "x"} {
		if text, failed := call(t, s, "memory_store", map[string]any{"text": said, "derived_from": []string{bad}}, nil); !failed || !strings.HasPrefix(text, "invalid: derived_from: ") || !strings.Contains(text, bad) {
			t.Errorf("%s is no source: %s", bad, text)
		}
	}
}
