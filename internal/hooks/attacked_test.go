package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"mneme/client"
	"mneme/internal/likeness"
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

// TestWhatAProxyRefusesHoldsUpNoOther: of one text it says that it is too large, or ends each time on it, and passes
// the others.
func TestWhatAProxyRefusesHoldsUpNoOther(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeTooLarge, memory.CodeUnavailable, memory.CodeTimeout, memory.CodeOverloaded, memory.CodeOutcomeUnknown, memory.CodeNoSpace} {
		w := newWorld(t)
		w.node.choke, w.node.choked = "text 0", proxied(code)
		for i := range 3 {
			if err := spoolOne(w.disk(), i); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := w.drain("a"); got.Waiting != 1 || got.Refused != 0 || got.Away {
				t.Errorf("%s: %+v\n%s", code, got, w.notes())
			}
			w.now = w.now.Add(8 * 24 * time.Hour)
		}
		w.stored("text 1", "text 2")
	}
}

// TestAProxysAnswerToTheSearchLeftOutWhatSaysTheSame: what is said again was stored again.
func TestAProxysAnswerToTheSearchLeftOutWhatSaysTheSame(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeForbidden, memory.CodeInvalid, memory.CodeTooLarge} {
		w := newWorld(t)
		w.prompt("one", "I prefer tabs over spaces.")
		w.node.set(func() { w.node.blind = proxied(code) })
		w.prompt("two", "i prefer tabs, over spaces!")
		if w.stored("I prefer tabs over spaces."); w.disk().Waiting() != 1 {
			t.Errorf("%s: %d wait\n%s", code, w.disk().Waiting(), w.notes())
		}
		w.node.set(func() { w.node.blind = nil })
		w.drain("a")
		if w.stored("I prefer tabs over spaces.", "i prefer tabs, over spaces!"); len(w.node.records) == 2 && len(w.node.records[1].DerivedFrom) != 1 {
			t.Errorf("%s: %+v", code, w.node.records[1])
		}
	}
}

// searchProxy answers searches in the place of the node, where barred says so, and counts calls.
type searchProxy struct {
	Node
	barred func(namespace, query string) bool
	calls  int
}

func (p *searchProxy) Search(ctx context.Context, ns string, req memory.SearchRequest) (memory.SearchResponse, error) {
	if p.calls++; p.barred(ns, req.Query) {
		return memory.SearchResponse{}, proxied(memory.CodeForbidden)
	}
	return p.Node.Search(ctx, ns, req)
}

func (p *searchProxy) Get(ctx context.Context, ns, id string, opts client.GetOptions) (memory.Record, error) {
	p.calls++
	return p.Node.Get(ctx, ns, id, opts)
}

// TestAProxyThatForbidsSearchesWasAskedForAll: for each capture that waits, by every hook. It holds up its namespace and no other, and one
// text that it does not let through holds up nothing.
func TestAProxyThatForbidsSearchesWasAskedForAll(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		e := entry(i)
		if i == 29 {
			e.Namespace = "team-b"
		}
		if err := spoolAll(w.disk(), e); err != nil {
			t.Fatal(err)
		}
	}
	drain := func(barred func(ns, query string) bool) (Drained, int) {
		p := &searchProxy{Node: w.node, barred: barred}
		r := w.runner("a")
		r.Node = p
		return r.Drain(t.Context(), DrainOptions{}), p.calls
	}
	got, calls := drain(func(ns, _ string) bool { return ns == "team-a" })
	if got.Sent != 1 || got.Waiting != 29 || got.Away || !errors.Is(got.Why, client.ErrForeign) || calls > 5 { // 3 for the one, 2 for the other
		t.Errorf("%+v after %d calls\n%s", got, calls, w.notes())
	}
	if w.stored("text 29"); !strings.Contains(w.notes(), "whatever is searched for in namespace team-a, it is no memnode that answers") {
		t.Error(w.notes())
	}
	if got, _ = drain(func(_, query string) bool { return query == "text 3" }); got.Sent != 28 || got.Waiting != 1 {
		t.Errorf("%+v\n%s", got, w.notes())
	}
	if got, calls = drain(func(string, string) bool { return false }); got != (Drained{Sent: 1}) {
		t.Errorf("%+v after %d calls\n%s", got, calls, w.notes())
	}
}

// TestANodeThatIsAwayBehindAProxyIsAway: it says so itself, or something else answers whatever is asked.
func TestANodeThatIsAwayBehindAProxyIsAway(t *testing.T) {
	for _, unread := range []error{memory.Errorf(memory.CodeUnavailable, "not now"), proxied(memory.CodeNotFound), proxied(memory.CodeUnavailable)} {
		for _, code := range []memory.Code{memory.CodeTooLarge, memory.CodeUnavailable} {
			w := newWorld(t)
			w.node.choke, w.node.choked, w.node.unread = "text 0", proxied(code), unread
			for i := range 2 {
				if err := spoolOne(w.disk(), i); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.drain("a"); got.Waiting != 2 || !got.Away {
				t.Errorf("%s, %v: %+v\n%s", code, unread, got, w.notes())
			}
		}
	}
}

// TestACaptureWasLostWithTheMemoryThatItWasLinkedTo, which it never named, and which was forgotten while it waited.
// It is sent as it is on disk.
func TestACaptureWasLostWithTheMemoryThatItWasLinkedTo(t *testing.T) {
	for code, lags := range map[memory.Code]bool{memory.CodeInvalid: false, memory.CodeGone: true, "": true} {
		w := newWorld(t)
		w.node.sourceless = code
		w.prompt("one", "I prefer tabs over spaces.")
		w.node.barred = map[string]error{"team-a": memory.Errorf(memory.CodeUnavailable, "not now")}
		e := entry(0)
		e.Item.Text = "i prefer tabs, over spaces!"
		if err := spoolAll(w.disk(), e); err != nil {
			t.Fatal(err)
		}
		w.drain("a")
		d := w.disk()
		if e, err := d.entry(d.entryPath(dirNames(t, d)[0])); err != nil || len(e.Item.DerivedFrom) != 1 {
			t.Fatalf("%+v, %v", e, err)
		}
		w.node.set(func() {
			if w.node.barred = nil; lags {
				w.node.ghosts = w.node.records
			}
			w.node.records = nil
			w.node.onSend = func(item memory.Capture) {
				if e, err := d.entry(d.entryPath(dirNames(t, d)[0])); err != nil || !sameBody(e.Item, item) {
					t.Errorf("sent %+v, on disk is %+v, %v", item, e.Item, err)
				}
			}
		})
		if got := w.drain("a"); got != (Drained{Sent: 1}) {
			t.Errorf("%+v\n%s", got, w.notes())
		}
		w.stored("i prefer tabs, over spaces!")
		if said := likeness.SaidOf(w.node.records[0].Metadata); said != (likeness.Said{Nonce: "n-0"}) || len(w.node.records[0].DerivedFrom) > 0 {
			t.Errorf("%+v", w.node.records[0])
		}
	}
}

// TestAProxysAnswerTookALinkOut: the capture waits as it is, and is stored with its link.
func TestAProxysAnswerTookALinkOut(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeInvalid, memory.CodeGone} {
		w := newWorld(t)
		w.prompt("one", "I prefer tabs over spaces.")
		e := entry(0)
		e.Item.Text = "i prefer tabs, over spaces!"
		if err := spoolAll(w.disk(), e); err != nil {
			t.Fatal(err)
		}
		w.node.set(func() { w.node.choke, w.node.choked = e.Item.Text, proxied(code) })
		if got := w.drain("a"); got.Waiting != 1 {
			t.Fatalf("%+v\n%s", got, w.notes())
		}
		d := w.disk()
		if e, err := d.entry(d.entryPath(dirNames(t, d)[0])); err != nil || len(e.Item.DerivedFrom) != 1 {
			t.Errorf("%s: it waits as %+v, %v", code, e.Item, err)
		}
		w.node.set(func() { w.node.choke = "" })
		if got := w.drain("a"); got != (Drained{Sent: 1}) || len(w.node.records[1].DerivedFrom) != 1 {
			t.Errorf("%s: %+v, %+v\n%s", code, got, w.node.records, w.notes())
		}
	}
}

// TestOnlyAnOwnLinkIsTakenOut: what somebody named stays.
func TestOnlyAnOwnLinkIsTakenOut(t *testing.T) {
	item := memory.Capture{DerivedFrom: []string{"named"}, Metadata: likeness.Said{Nonce: "n"}.In(nil)}
	if unlink(&item) || len(item.DerivedFrom) != 1 {
		t.Errorf("%+v", item)
	}
	(&likeness.Other{ID: "near", Similarity: 1}).Link(&item)
	if !unlink(&item) || len(item.DerivedFrom) != 1 || item.DerivedFrom[0] != "named" || likeness.SaidOf(item.Metadata) != (likeness.Said{Nonce: "n"}) {
		t.Errorf("%+v", item)
	}
}

// TestASearchThatLagsLostACapture: it goes on to show what a memory said before it was revised. What is said
// again is stored once, and counts there from then on.
func TestASearchThatLagsLostACapture(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "I prefer tabs over spaces.")
	w.node.set(func() {
		w.node.ghosts = slices.Clone(w.node.records)
		w.node.records[0].Text = "I prefer spaces."
		w.node.onSend = func(item memory.Capture) { // as it is on disk
			d := w.disk()
			if e, err := d.entry(d.entryPath(dirNames(t, d)[0])); err != nil || !sameBody(e.Item, item) {
				t.Errorf("sent %+v, on disk is %+v, %v", item, e.Item, err)
			}
		}
	})
	w.prompt("two", "I prefer tabs over spaces.")
	w.stored("I prefer spaces.", "I prefer tabs over spaces.")
	w.prompt("three", "I prefer tabs over spaces.")
	w.stored("I prefer spaces.", "I prefer tabs over spaces.")
	if m := likeness.SaidOf(w.node.records[1].Metadata); m.Repeats != 1 || m.Near != "" || w.disk().Waiting() != 0 {
		t.Errorf("%+v, %d wait\n%s", m, w.disk().Waiting(), w.notes())
	}
}

// TestALostAnswerOfAnotherIDIsStoredOnce: the node has it, and somebody revised it, and said nearly the same,
// before it was sent again.
func TestALostAnswerOfAnotherIDIsStoredOnce(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "I prefer tabs over spaces.")
	w.node.set(func() {
		w.node.records[0].Text = "I prefer spaces."
		first := w.node.records[0].ID
		w.node.onSend = func(item memory.Capture) {
			if item.ID != first {
				w.node.lose, w.node.onSend = 1, nil
			}
		}
	})
	w.prompt("two", "I prefer tabs over spaces.")
	if w.disk().Waiting() != 1 {
		t.Fatal("it does not wait")
	}
	w.node.set(func() {
		w.node.records[1].Text, w.node.records[1].Metadata = "I prefer both.", nil
		w.node.records = append(w.node.records, memory.Record{RecordID: "01JC2Y3K5V8Q0T4W6X7Z900000", Text: "i prefer tabs, over spaces!", Scope: memory.ScopeTeam})
	})
	if got := w.drain("a"); got != (Drained{Sent: 1}) {
		t.Errorf("%+v\n%s", got, w.notes())
	}
	w.stored("I prefer spaces.", "I prefer both.", "i prefer tabs, over spaces!")
}

// TestAHookWithoutTheLockKeptNothing: others may hold it for longer than a host waits, whatever they noted of the
// exchange before. What it keeps is in order, settled, and sent once.
func TestAHookWithoutTheLockKeptNothing(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	for i := range maxCaptures {
		w.atOnce(Codex, "UserPromptSubmit", toJSON(map[string]string{"session_id": "one", "turn_id": "1", "prompt": fmt.Sprintf("Remember that rule number %d holds.", i)}))
	}
	lock := flock.New(filepath.Join(w.dir, "lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		e, err := Normalise(Codex, "UserPromptSubmit", []byte(toJSON(map[string]string{"session_id": "one", "turn_id": "2", "prompt": fmt.Sprintf("Remember that rule number %d holds.", maxCaptures+i)})))
		if err != nil {
			t.Fatal(err)
		}
		r := w.runner(Codex)
		r.Keep(t.Context(), &e)
		if len(r.Disk.unsettled) != 1 || !isLone(filepath.Base(r.Disk.unsettled[0])) || r.Disk.Settle() != nil {
			t.Errorf("%q is unsettled\n%s", r.Disk.unsettled, w.notes())
		}
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	w.atOnce(Codex, "UserPromptSubmit", toJSON(map[string]string{"session_id": "one", "turn_id": "3", "prompt": "Remember that rule number 5 holds."}))
	w.away(false)
	if got := w.drain("a"); got != (Drained{Sent: 6}) {
		t.Errorf("%+v\n%s", got, w.notes())
	}
	w.stored("Remember that rule number 0 holds.", "Remember that rule number 1 holds.", "Remember that rule number 2 holds.", "Remember that rule number 3 holds.",
		"Remember that rule number 4 holds.", "Remember that rule number 5 holds.")
}

// TestNamesOfOneMomentDiffer: nobody sees to it where the lock is not held.
func TestNamesOfOneMomentDiffer(t *testing.T) {
	a, b := loneName(7, testAddr), loneName(7, testAddr)
	at, err := entryTime(a)
	if a == b || at != 7 || err != nil || !forNode(a, []string{testAddr}) || forNode(a, []string{"http://other:1"}) || !isLone(a) || isLone(entryName(7, testAddr)) {
		t.Errorf("%s, %s: %d, %v", a, b, at, err)
	}
}

// TestACaptureThatWasNotKeptIsSaid, in the log, and kept when it is said again.
func TestACaptureThatWasNotKeptIsSaid(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	w.prompt("one", "what is there to do today")
	spool := filepath.Join(w.dir, spoolDir)
	e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(`{"session_id":"one","prompt":"Remember that deploys happen on Tuesdays."}`))
	if err != nil {
		t.Fatal(err)
	}
	r := w.runner(ClaudeCode)
	if err := os.Remove(spool); err != nil { // no disk takes less
		t.Fatal(err)
	}
	r.Keep(t.Context(), &e)
	if !strings.Contains(w.notes(), "not kept: 1 capture, neither spooled (") {
		t.Error(w.notes())
	}
	w.atOnce(ClaudeCode, "UserPromptSubmit", `{"session_id":"one","turn_id":"2","prompt":"Remember that deploys happen on Tuesdays."}`)
	if n := w.disk().Waiting(); n != 1 {
		t.Errorf("%d wait\n%s", n, w.notes())
	}
}

// TestWhatWasDeletedOfWhatIsSetAsideIsSaid.
func TestWhatWasDeletedOfWhatIsSetAsideIsSaid(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	for i := range maxAside + 1 {
		if err := os.WriteFile(d.entryPath(entryName(int64(i), testAddr)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.drain("a")
	if !strings.Contains(w.notes(), "of what was set aside the oldest 1 were deleted: 100 are kept in "+filepath.Join(w.dir, asideDir)) {
		t.Error(w.notes())
	}
}
