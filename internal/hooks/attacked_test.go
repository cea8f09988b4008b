package hooks

import (
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// proxied is an error that a proxy answered, and no memnode.
func proxied(code memory.Code) error {
	return memory.Errorf(code, "http://node:8787 answered 400 Bad Request").WithHint("is that a memnode?").WithCause(client.ErrForeign)
}

// TestAProxysAnswerDeletedWhatWaits: whatever a proxy in between answers, to whichever call, for however long.
func TestAProxysAnswerDeletedWhatWaits(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeInvalid, memory.CodeConflict, memory.CodeGone, memory.CodeTooLarge, memory.CodeNotFound, memory.CodeForbidden,
		memory.CodeUnauthenticated, memory.CodeInternal} {
		w := newWorld(t)
		w.node.err = proxied(code)
		for i := range 3 {
			if err := spoolOne(w.disk(), i); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := w.drain("a"); got != (Drained{Waiting: 3, Away: true, Why: w.node.err}) {
				t.Errorf("%s: %+v\n%s", code, got, w.notes())
			}
			w.now = w.now.Add(8 * 24 * time.Hour)
		}
		if !strings.Contains(w.notes(), "it was no memnode that answered, captures wait: http://node:8787 answered 400 Bad Request (is that a memnode?)") {
			t.Errorf("%s: %s", code, w.notes())
		}
		w.node.set(func() { w.node.err = nil })
		if got := w.drain("a"); got != (Drained{Sent: 3}) {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

// TestAProxysAnswerToACountDeletedACapture: it is read, and revised, where the same was said before.
func TestAProxysAnswerToACountDeletedACapture(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeConflict, memory.CodeGone, memory.CodeNotFound} {
		w := newWorld(t)
		w.prompt("one", "I prefer tabs over spaces.")
		w.node.unread = proxied(code)
		w.prompt("two", "I prefer tabs over spaces.")
		if n := w.disk().Waiting(); n != 1 {
			t.Errorf("%s: %d wait\n%s", code, n, w.notes())
		}
	}
}

// TestWhatAProxyRefusesHoldsUpNoOther: of one text it says that it is too large, and passes the others.
func TestWhatAProxyRefusesHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.node.choke, w.node.choked = "text 0", proxied(memory.CodeTooLarge)
	for i := range 3 {
		if err := spoolOne(w.disk(), i); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if got := w.drain("a"); got.Waiting != 1 || got.Refused != 0 || got.Away {
			t.Errorf("%+v\n%s", got, w.notes())
		}
		w.now = w.now.Add(8 * 24 * time.Hour)
	}
	w.stored("text 1", "text 2")
}
