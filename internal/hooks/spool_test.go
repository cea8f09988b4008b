package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/internal/likeness"
	"mneme/memory"
)

func (w *world) away(is bool) {
	w.node.set(func() {
		w.node.err = nil
		if is {
			w.node.err = memory.Errorf(memory.CodeUnavailable, "cannot reach a node")
		}
	})
}

func entry(i int) Entry {
	return Entry{Addr: testAddr, Namespace: "team-a", Item: memory.Capture{ID: fmt.Sprint("id-", i), Agent: "a", Text: fmt.Sprint("text ", i),
		Metadata: likeness.Said{Nonce: fmt.Sprint("n-", i)}.In(nil)}, Nonce: fmt.Sprint("n-", i), At: testNow}
}

func spoolOne(d *Disk, i int) error {
	if err := spoolAll(d, entry(i)); err != nil {
		return err
	}
	return d.Settle()
}

func spoolAll(d *Disk, entries ...Entry) error {
	return d.change(context.Background(), testNow, func(s *state) error {
		_, err := d.spoolLocked(s, entries)
		return err
	})
}

// TestTheSpoolDrainsInOrderAndOnce, also what comes while others wait.
func TestTheSpoolDrainsInOrderAndOnce(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	var want []string
	for i := range 20 {
		text := fmt.Sprintf("Remember that rule number %d holds.", i)
		w.prompt("one", text)
		want = append(want, text)
	}
	if n := w.disk().Waiting(); n != 20 {
		t.Fatalf("%d wait", n)
	}
	w.away(false)
	w.prompt("one", "Remember that rule number 20 holds.")
	w.stored(append(want, "Remember that rule number 20 holds.")...)
	if n := w.disk().Waiting(); n != 0 || len(w.node.sent) != 21 {
		t.Errorf("%d wait, %d were sent", n, len(w.node.sent))
	}
}

// TestWhatWaitsGoesToItsOwnNode: of two nodes one is away. The other one gets nothing of what was
// said to the first, and is not left alone for its sake.
func TestWhatWaitsGoesToItsOwnNode(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	other.dir, other.addr = w.dir, "http://other:8787"
	w.node.set(func() { w.node.err, w.node.slow = memory.Errorf(memory.CodeUnavailable, "cannot reach a node"), 2*slow })
	w.prompt("one", "Remember that Initech pays 4 million.")
	other.now = w.now.Add(time.Second)
	other.atOnce(ClaudeCode, "UserPromptSubmit", `{"session_id":"two","prompt":"Remember that deploys happen on Tuesdays."}`)
	other.stored("Remember that deploys happen on Tuesdays.")
	if w.disk().Waiting(w.addr) != 1 || w.disk().Waiting(other.addr) != 0 || w.disk().Waiting() != 1 {
		t.Error("another number waits")
	}
	if got := w.disk().Elsewhere(other.addr); !slices.Equal(got, []Queue{{w.addr, 1}}) {
		t.Errorf("elsewhere %+v", got)
	}
	w.node.set(func() { w.node.err, w.node.slow = nil, 0 })
	w.hook(ClaudeCode, "Stop", `{"session_id":"one"}`)
	w.stored("Remember that Initech pays 4 million.")
	other.stored("Remember that deploys happen on Tuesdays.")
}

// TestTheSameWordsToTwoNodesAreKeptByBoth: within 30 s of each other.
func TestTheSameWordsToTwoNodesAreKeptByBoth(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	other.dir, other.addr = w.dir, "http://other:8787"
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	other.now = w.now
	other.atOnce(ClaudeCode, "UserPromptSubmit", `{"session_id":"one","prompt":"Remember that deploys happen on Tuesdays."}`)
	w.stored("Remember that deploys happen on Tuesdays.")
	other.stored("Remember that deploys happen on Tuesdays.")
}

// TestASpoolOfAnEarlierVersionIsSent: its entries name no node, neither in the file nor in what
// it is called. They go to the node of the first call, and it is said which that is.
func TestASpoolOfAnEarlierVersionIsSent(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	e := entry(0)
	e.Addr = ""
	if err := spoolAll(d, e); err != nil {
		t.Fatal(err)
	}
	name := dirNames(t, d)[0]
	if err := os.Rename(d.entryPath(name), d.entryPath(name[:20])); err != nil {
		t.Fatal(err)
	}
	w.hook(ClaudeCode, "Stop", `{"session_id":"one"}`)
	w.stored("text 0")
	if !strings.Contains(w.notes(), "goes to "+w.addr) {
		t.Error(w.notes())
	}
}

// TestANodeThatMovedGetsWhatWaits, where somebody says so.
func TestANodeThatMovedGetsWhatWaits(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.away(false)
	r := w.runner("a")
	r.Addr, r.Was = "http://new:8787", []string{w.addr}
	r.Drain(t.Context(), DrainOptions{})
	w.stored("Remember that deploys happen on Tuesdays.")
}

// TestALostAnswerIsNoRepetition: what is sent again is the same, and counts once.
func TestALostAnswerIsNoRepetition(t *testing.T) {
	w := newWorld(t)
	w.node.lose = 2
	w.prompt("one", "I prefer tabs over spaces.")
	if w.disk().Waiting() != 1 {
		t.Fatal("it does not wait")
	}
	w.prompt("one", "what else is there to do today")
	w.prompt("one", "what else is there to do tomorrow")
	w.stored("I prefer tabs over spaces.")
	if m := likeness.SaidOf(w.node.records[0].Metadata); m.Repeats != 0 || w.disk().Waiting() != 0 {
		t.Errorf("%+v, %d wait", m, w.disk().Waiting())
	}
	if c := w.disk().Counts(); c.Repeated != 0 {
		t.Errorf("%+v", c)
	}
}

// TestALostCountIsNotCountedAgain: a repetition whose revision went through unheard.
func TestALostCountIsNotCountedAgain(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "I prefer tabs over spaces.")
	w.node.deaf = 2
	w.prompt("two", "I prefer tabs over spaces.")
	if w.disk().Waiting() != 1 {
		t.Fatal("it does not wait")
	}
	w.prompt("two", "what else is there to do today")
	if m := likeness.SaidOf(w.node.records[0].Metadata); m.Repeats != 1 || w.disk().Waiting() != 0 {
		t.Errorf("%+v, %d wait", m, w.disk().Waiting())
	}
}

// TestAClockThatWasSetBackChangesNoOrder.
func TestAClockThatWasSetBackChangesNoOrder(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	if err := spoolOne(d, 0); err != nil {
		t.Fatal(err)
	}
	name := dirNames(t, d)[0]
	if err := os.Rename(d.entryPath(name), d.entryPath("0"+strings.Repeat("8", 19)+name[20:])); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 3; i++ {
		if err := spoolOne(d, i); err != nil {
			t.Fatal(err)
		}
	}
	w.runner("a").Drain(t.Context(), DrainOptions{})
	w.stored("text 0", "text 1", "text 2")
}

// TestWhatWaitsForANamespaceHoldsUpNoOther.
func TestWhatWaitsForANamespaceHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.node.missing = "team-b"
	d := w.disk()
	for i, ns := range []string{"team-b", "team-a", "team-b"} {
		e := entry(i)
		e.Namespace = ns
		if i == 2 {
			e.At = testNow.Add(-8 * 24 * time.Hour)
		}
		if err := spoolAll(d, e); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.runner("a").Drain(t.Context(), DrainOptions{}); n.Waiting != 2 {
		t.Errorf("%+v", n)
	}
	w.stored("text 1")
	if !strings.Contains(w.notes(), "memctl namespace create team-b") {
		t.Errorf("nobody is told what to do: %s", w.notes())
	}
	// Alone, the old one is given up.
	if err := os.Remove(filepath.Join(w.dir, spoolDir, first(dirNames(t, d)...))); err != nil {
		t.Fatal(err)
	}
	if n := w.runner("a").Drain(t.Context(), DrainOptions{}); n.Waiting != 0 || n.Refused != 1 || !strings.Contains(w.notes(), "given up") {
		t.Errorf("%+v: %s", n, w.notes())
	}
}

func dirNames(t *testing.T, d *Disk) []string {
	t.Helper()
	names, err := d.spooled()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestARefusalForGoodHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	bad := entry(1)
	bad.Item.Text = "a\x00b"
	for _, e := range []Entry{bad, entry(2)} {
		if err := spoolAll(d, e); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.runner("a").Drain(t.Context(), DrainOptions{}); n != (Drained{Sent: 1, Refused: 1}) {
		t.Errorf("%+v", n)
	}
	w.stored("text 2")
	if !strings.Contains(w.notes(), "refused for good") {
		t.Error(w.notes())
	}
}

// TestARefusalOfOneNamespaceHoldsUpNoOther: captures or searches are switched off in it, or it is
// above its quota. The node is there, and takes what is for others.
func TestARefusalOfOneNamespaceHoldsUpNoOther(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeForbidden, memory.CodeQuota, memory.CodeUnauthenticated, memory.CodeNoSpace, memory.CodeLogDiverged} {
		w := newWorld(t)
		w.node.barred = map[string]error{"closed": memory.Errorf(code, "captures are switched off in namespace %q", "closed")}
		d := w.disk()
		for i, ns := range []string{"closed", "team-a", "closed", "team-a"} {
			e := entry(i)
			e.Namespace = ns
			if err := spoolAll(d, e); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 2, Waiting: 2, Why: w.node.barred["closed"]}) {
			t.Errorf("%s: %+v", code, got)
		}
		w.stored("text 1", "text 3")
		if !strings.Contains(w.notes(), "what was captured for namespace closed waits") || strings.Contains(w.notes(), "node is away") {
			t.Errorf("%s: %s", code, w.notes())
		}
		// What is nobody's to take is given up after a week; what waits for the node is not.
		w.now = w.now.Add(8 * 24 * time.Hour)
		want := Drained{Refused: 2}
		if slices.Contains(unable, code) {
			want = Drained{Waiting: 2, Why: w.node.barred["closed"]}
		}
		if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != want {
			t.Errorf("%s, a week later: %+v", code, got)
		}
	}
}

// TestWhereNothingMayBeSearchedCapturesAreKept: they are not linked.
func TestWhereNothingMayBeSearchedCapturesAreKept(t *testing.T) {
	w := newWorld(t)
	w.node.blind = memory.Errorf(memory.CodeForbidden, "searches are switched off in namespace %q", "team-a")
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.stored("Remember that deploys happen on Tuesdays.")
}

// TestAnEntryThatIsAlwaysRefusedHoldsUpNoOther, not even of its own namespace, and not for ever.
func TestAnEntryThatIsAlwaysRefusedHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.node.choke = "text 0"
	for i := range 3 {
		if err := spoolOne(w.disk(), i); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 2, Waiting: 1, Why: got.Why}) || memory.CodeOf(got.Why) != memory.CodeInternal {
		t.Errorf("%+v", got)
	}
	w.stored("text 1", "text 2")
	w.now = w.now.Add(8 * 24 * time.Hour)
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Refused: 1}) {
		t.Errorf("a week later: %+v", got)
	}
}

// TestWhatIsTooLargeHoldsUpNoOther: the node has a smaller bound than hooks have.
func TestWhatIsTooLargeHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	big := entry(0)
	big.Item.Text = strings.Repeat("x", memory.MaxTextBytes+1)
	if err := spoolAll(w.disk(), big, entry(1)); err != nil {
		t.Fatal(err)
	}
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 1, Refused: 1}) {
		t.Errorf("%+v\n%s", got, w.notes())
	}
	w.stored("text 1")
}

// TestOnlyOneDrains: another one that comes meanwhile sends nothing, and waits for nobody.
func TestOnlyOneDrains(t *testing.T) {
	w := newWorld(t)
	if err := spoolOne(w.disk(), 0); err != nil {
		t.Fatal(err)
	}
	inside := false
	_, err := w.disk().drain(t.Context(), round{addrs: []string{testAddr}, note: t.Logf, send: func(context.Context, Entry, func(Entry) error) verdict {
		inside = true
		if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Waiting: 1, Busy: true}) {
			t.Errorf("beside another one: %+v", got)
		}
		return taken
	}})
	if err != nil || !inside {
		t.Errorf("%v, %v", inside, err)
	}
	w.stored()
}

// TestANodeThatIsAwayIsWaitedFor, for longer than a week.
func TestANodeThatIsAwayIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	for _, code := range []memory.Code{memory.CodeUnavailable, memory.CodeTimeout, memory.CodeOverloaded, memory.CodeOutcomeUnknown} {
		w.node.set(func() { w.node.err = memory.Errorf(code, "not now") })
		w.prompt("one", "Remember that deploys happen on Tuesdays, says "+string(code))
		w.now = w.now.Add(8 * 24 * time.Hour)
	}
	w.hook(ClaudeCode, "Stop", `{"session_id":"one"}`)
	if n := w.disk().Waiting(); n != 4 || len(w.node.sent) > 0 {
		t.Errorf("%d wait\n%s", n, w.notes())
	}
}

// TestWhatCannotBeReadIsNoneThatWasSent: another user's file, or a disk that fails. It waits.
func TestWhatCannotBeReadIsNoneThatWasSent(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	for i := range 2 {
		if err := spoolOne(d, i); err != nil {
			t.Fatal(err)
		}
	}
	path := d.entryPath(dirNames(t, d)[0])
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // no file reads worse
		t.Fatal(err)
	}
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 1, Waiting: 1}) {
		t.Errorf("%+v: %s", got, w.notes())
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 1}) {
		t.Errorf("%+v: %s", got, w.notes())
	}
	w.stored("text 1", "text 0")
}

// TestWhatIsSetAsideIsBounded.
func TestWhatIsSetAsideIsBounded(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	for i := range maxAside + 5 {
		if err := os.WriteFile(d.entryPath(entryName(int64(i), testAddr)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Aside: maxAside + 5}) {
		t.Errorf("%+v", got)
	}
	aside, err := os.ReadDir(filepath.Join(w.dir, asideDir))
	if err != nil || len(aside) != maxAside || aside[0].Name() != entryName(5, testAddr) {
		t.Errorf("%d are kept, %v", len(aside), err)
	}
}

// TestAClockThatWasAheadLeavesHooksOn: a node that failed then is not left alone until then; and
// who drains by hand asks it in any case.
func TestAClockThatWasAheadLeavesHooksOn(t *testing.T) {
	w := newWorld(t)
	w.now = testNow.Add(365 * 24 * time.Hour)
	w.away(true)
	w.node.set(func() { w.node.slow = 2 * slow })
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.away(false)
	w.node.set(func() { w.node.slow = 0 })
	w.now = testNow
	w.prompt("two", "Remember that the walrus feeds at noon.")
	w.stored("Remember that deploys happen on Tuesdays.", "Remember that the walrus feeds at noon.")

	w.away(true)
	w.node.set(func() { w.node.slow = 2 * slow })
	w.prompt("one", "Remember that the otter sleeps at noon.")
	w.away(false)
	w.node.set(func() { w.node.slow = 0 })
	w.atOnce(ClaudeCode, "Stop", `{"session_id":"one"}`)
	if w.disk().Waiting() != 1 {
		t.Error("a node that failed slowly is asked at once")
	}
	if got := w.runner("a").Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 1}) {
		t.Errorf("by hand: %+v", got)
	}
}

// TestAClockThatGoesOn has every look at the clock tell another time, as clocks do: of hooks at once one
// looks first, and comes last.
func TestAClockThatGoesOn(t *testing.T) {
	at := testNow
	tick := func() time.Time { at = at.Add(time.Millisecond); return at }
	r := &Runner{Disk: newWorld(t).disk(), Addr: "http://127.0.0.1:1", Now: tick, Note: t.Logf}
	r.failed(t.Context(), "recall", errors.New("it did not answer"), 2*slow)
	if !r.Disk.state().leftAlone(r.Addr, tick()) {
		t.Error("a node that was slow to fail is asked at once")
	}
	s := r.Disk.state()
	if s.cool("key", testNow) || !s.cool("key", testNow.Add(-lockPatience)) || !s.cool("key", testNow.Add(time.Second)) {
		t.Error("the same event counts again")
	}
	if !s.cool("key", testNow.Add(coolDown-1)) || s.cool("key", testNow.Add(coolDown)) {
		t.Error("it cools down for another time")
	}
}

func TestTheSpoolIsBounded(t *testing.T) {
	w := newWorld(t)
	d := w.disk()
	big := entry(0)
	big.Item.Text = strings.Repeat("x", 1<<20)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = spoolAll(d, big)
	}
	if !errors.Is(err, errFull) || n < 7 || n > 9 {
		t.Errorf("after %d entries of 1 MiB: %v", n, err)
	}
	names, err := d.spooled()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.entryPath(names[0])); err != nil { // the node has it
		t.Fatal(err)
	}
	if err := spoolAll(d, big); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if err := os.Remove(filepath.Join(w.dir, stateName)); err != nil { // where it is counted
		t.Fatal(err)
	}
	if err := spoolAll(d, big); !errors.Is(err, errFull) {
		t.Errorf("without a count: %v", err)
	}
	w.away(true)
	w.prompt("one", "Remember that deploys happen on Tuesdays.") // small enough still
	for i := range maxSpooled {
		if err := os.WriteFile(d.entryPath(fmt.Sprintf("%020d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.prompt("one", "Remember that deploys happen on Fridays.")
	if c := w.disk().Counts(); c.Refused != 1 || !strings.Contains(w.notes(), "spool is full") {
		t.Errorf("%+v: %s", c, w.notes())
	}
}

// TestAFullSpoolWasCountedOnce: of three texts two were refused, and are no news when they are
// said again a moment later and there is room.
func TestAFullSpoolWasCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	d := w.disk()
	for i := range maxSpooled - 1 {
		if err := os.WriteFile(d.entryPath(entryName(int64(i), "http://other:8787")), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	three := `{"session_id":"one","turn_id":"1","prompt":"` + strings.Repeat("The weather is nice today. ", 20) + `\n\nI prefer tabs.\n\nI prefer vim over emacs.\n\nI prefer small functions."}`
	w.atOnce(Codex, "UserPromptSubmit", three)
	if c := w.disk().Counts(); c.Refused != 2 || !strings.Contains(w.notes(), "not kept: 2 captures, neither spooled (the spool is full) nor taken by the node: cannot reach a node") {
		t.Errorf("%+v: %s", c, w.notes())
	}
	for i := range maxSpooled - 1 {
		if err := os.Remove(d.entryPath(entryName(int64(i), "http://other:8787"))); err != nil {
			t.Fatal(err)
		}
	}
	w.away(false)
	w.atOnce(Codex, "UserPromptSubmit", three)
	w.stored("I prefer tabs.", "I prefer vim over emacs.", "I prefer small functions.")
	if c := w.disk().Counts(); c.Refused != 2 || c.Cooled+c.Over != 0 {
		t.Errorf("%+v", c)
	}
}

// TestDamageHoldsUpNothing: files that were cut, changed, or written under another key.
func TestDamageHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	w.away(true)
	w.prompt("one", "Remember that rule number 1 holds.")
	w.prompt("one", "Remember that rule number 2 holds.")
	d := w.disk()
	damage := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b[:len(b)/2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage(d.entryPath(dirNames(t, d)[0]))
	damage(filepath.Join(w.dir, stateName))
	damage(filepath.Join(w.dir, journalName))
	if err := os.WriteFile(d.entryPath(tempPrefix+"1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.away(false)
	w.prompt("one", "Remember that rule number 3 holds.")
	w.stored("Remember that rule number 2 holds.", "Remember that rule number 3 holds.")
	if n := w.disk().Waiting(); n != 1 || !strings.Contains(w.notes(), "they were sealed under another key, or are damaged") {
		t.Errorf("%d wait: %s", n, w.notes())
	}
	if all, err := w.disk().Recalls(); err != nil || len(all) != 1 {
		t.Errorf("%d recalls, %v", len(all), err)
	}
}

func TestAnEntryOfOnePurposeIsNoneOfAnother(t *testing.T) {
	d := newWorld(t).disk()
	sealed := d.seal("a", []byte("x"))
	if _, err := d.open("b", sealed); err == nil {
		t.Error("it opens")
	}
	if b, err := d.open("a", sealed); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	for n := range sealed {
		if _, err := d.open("a", sealed[:n]); err == nil {
			t.Errorf("%d of %d bytes open", n, len(sealed))
		}
	}
}

// TestTwoAtOnce: hooks that run at the same time keep all, in one exchange, once.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			// The same event in twos, of four conversations.
			e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(toJSON(map[string]string{"session_id": fmt.Sprint(i / 2), "prompt": fmt.Sprintf("Remember that rule number %d holds.", i/2)})))
			if err != nil {
				t.Error(err)
				return
			}
			r := w.runner(ClaudeCode)
			r.Keep(t.Context(), &e)
			r.Recall(t.Context(), &e)
			r.Send(t.Context())
		})
	}
	wg.Wait()
	w.runner(ClaudeCode).Drain(t.Context(), DrainOptions{})
	got := w.node.texts()
	slices.Sort(got)
	if want := []string{"Remember that rule number 0 holds.", "Remember that rule number 1 holds.", "Remember that rule number 2 holds.", "Remember that rule number 3 holds."}; !slices.Equal(got, want) {
		t.Errorf("%q\n%s", got, w.notes())
	}
	if c := w.disk().Counts(); c.Repeated+c.Linked != 0 {
		t.Errorf("%+v", c)
	}
	if n := len(w.node.sent); n != 4 {
		t.Errorf("%d were sent", n)
	}
}

const crashVariable = "MNEME_HOOKS_CRASH"

// TestSpoolChild is the process that TestKilledMidway kills: it spools and says so, for ever.
func TestSpoolChild(t *testing.T) {
	dir := os.Getenv(crashVariable)
	if dir == "" {
		t.Skip("runs as the child of TestKilledMidway")
	}
	d, err := OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		if err := spoolOne(d, i); err != nil {
			t.Fatal(err)
		}
		fmt.Println("spooled", i)
	}
}

// TestKilledMidway: whatever a process said it had spooled is there when it was killed, in
// order, and is sent once, even by two that drain and are killed in turn.
func TestKilledMidway(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSpoolChild$")
	cmd.Env = append(os.Environ(), crashVariable+"="+dir)
	said := &counter{want: []byte("spooled 24\n"), reached: make(chan struct{})}
	cmd.Stdout = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-said.reached:
	case <-time.After(time.Minute):
		t.Error("the child does not spool")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	last := bytes.Count(said.b, []byte("\n"))

	w := newWorld(t)
	w.dir = dir
	// An answer is lost now and then, as if the one that drains was killed before it heard it.
	for i := 0; w.disk().Waiting() > 0 && i < 1000; i++ {
		w.node.set(func() { w.node.lose = i % 2 })
		w.now = w.now.Add(time.Minute)
		w.runner("a").Drain(t.Context(), DrainOptions{})
	}
	got := w.node.texts()
	if len(got) < last || len(got) > last+1 {
		t.Errorf("%d said, %d stored", last, len(got))
	}
	for i, text := range got {
		if text != fmt.Sprint("text ", i) {
			t.Fatalf("entry %d is %q", i, text)
		}
	}
	if c := w.disk().Counts(); c.Repeated != 0 {
		t.Errorf("%+v", c)
	}
}

// counter waits for a line.
type counter struct {
	b, want []byte
	once    sync.Once
	reached chan struct{}
}

func (c *counter) Write(p []byte) (int, error) {
	c.b = append(c.b, p...)
	if bytes.Contains(c.b, c.want) {
		c.once.Do(func() { close(c.reached) })
	}
	return len(p), nil
}

// TestOneDrainsAtATime: what one hook is sending, no other one sends.
func TestOneDrainsAtATime(t *testing.T) {
	w := newWorld(t)
	w.node.err = memory.Errorf(memory.CodeUnavailable, "no node")
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	if w.disk().Waiting() != 1 {
		t.Fatal("nothing waits")
	}
	sending, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan Drained, 1)
	go func() {
		done, err := w.disk().drain(context.Background(), round{addrs: []string{testAddr}, note: w.runner(ClaudeCode).Note, send: func(context.Context, Entry, func(Entry) error) verdict {
			close(sending)
			<-goOn
			return taken
		}})
		if err != nil {
			t.Error(err)
		}
		ended <- done
	}()
	<-sending
	sent := 0
	done, err := w.disk().drain(t.Context(), round{addrs: []string{testAddr}, note: w.runner(ClaudeCode).Note, send: func(context.Context, Entry, func(Entry) error) verdict {
		sent++
		return later
	}})
	close(goOn)
	if err != nil || sent != 0 || done.Sent != 0 {
		t.Errorf("the other one sent %d, %+v, %v", sent, done, err)
	}
	if done := <-ended; done.Sent != 1 || w.disk().Waiting() != 0 {
		t.Errorf("%+v, and %d wait", done, w.disk().Waiting())
	}
}

// TestATextThatIsTooLargeHoldsNothingUp: no later try makes it smaller.
func TestATextThatIsTooLargeHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	w.node.barred = map[string]error{"team-a": memory.Errorf(memory.CodeTooLarge, "it is too large")}
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	if w.disk().Waiting() != 0 || !strings.Contains(w.notes(), "refused for good") {
		t.Errorf("%d wait: %s", w.disk().Waiting(), w.notes())
	}
}

// TestWhatIsBeingWrittenIsLeftAlone: only what a killed hook left long ago goes.
func TestWhatIsBeingWrittenIsLeftAlone(t *testing.T) {
	d := newWorld(t).disk()
	fresh, old := filepath.Join(d.dir, spoolDir, tempPrefix+"1"), filepath.Join(d.dir, spoolDir, tempPrefix+"2")
	for _, path := range []string{fresh, old} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if d.Waiting() != 0 {
		t.Error("half an entry waits")
	}
	_, isFresh := os.Stat(fresh)
	if _, isOld := os.Stat(old); isFresh != nil || !errors.Is(isOld, fs.ErrNotExist) {
		t.Errorf("the fresh one: %v, the old one: %v", isFresh, isOld)
	}
}

// TestAKeyThatOthersMayReadIsShut.
func TestAKeyThatOthersMayReadIsShut(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.disk().dir, "key")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	w.disk()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
