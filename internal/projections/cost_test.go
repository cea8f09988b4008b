package projections_test

import (
	"fmt"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
)

// TestCommitCostsWhatItTouched: a commit once looked at every namespace. What it
// writes must not depend on how many others there are.
func TestCommitCostsWhatItTouched(t *testing.T) {
	cost := func(namespaces int) (written, published int) {
		w := newWorld(t, 11)
		ns := w.created("team", embed.Space{})
		w.frame(ns)
		for i := range namespaces - 1 {
			w.frame(w.created(fmt.Sprint("other-", i), embed.Space{}))
		}
		w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: "ann"}, events.Content{Text: "first"}))
		s := openState(t, t.TempDir())
		defer s.Close()
		fold(t, w.keys, s, w.log, 100)
		w.frame(w.content(events.Header{Namespace: ns.Namespace, Agent: "ann"}, events.Content{Text: "second"}))
		r, _ := rangeOf(t, deriver(t, w.keys, s), s.Cursor(), w.log[s.Cursor().Seq:])
		written, published, err := projections.ApplyCounting(s, r)
		must(t, err)
		return written, published
	}
	rows, values := cost(1)
	manyRows, manyValues := cost(1000)
	if rows != manyRows || values != manyValues {
		t.Errorf("one capture writes %d rows and publishes %d values beside 999 other namespaces, %d and %d alone", manyRows, manyValues, rows, values)
	}
	if rows < 8 || values != 3 { // the namespace's sum and home, and the partition
		t.Errorf("a capture writes %d rows and publishes %d values", rows, values)
	}
}
