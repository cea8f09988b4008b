package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/memory"
)

// TestAHookWaitedForWhatOthersLeft: beside its recall a hook sends as many as it spooled, oldest first,
// or one, and leaves the rest to a process that nobody waits for.
func TestAHookWaitedForWhatOthersLeft(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 50 {
		if err := spoolOne(w.disk(), i); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint("text ", i))
	}
	step := func(payload string, sent int) {
		t.Helper()
		e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		r := w.runner(ClaudeCode)
		r.Keep(t.Context(), &e)
		r.Recall(t.Context(), &e)
		if more := r.Send(t.Context()); !more {
			t.Error("nothing more is to be sent")
		}
		w.stored(want[:sent]...)
	}
	step(`{"session_id":"s","prompt":"when do deploys happen?"}`, 1)
	step(`{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`, 2)
	if len(w.node.asked) != 2 {
		t.Errorf("asked for %q", w.node.asked)
	}
	if got := w.drain(ClaudeCode); got != (Drained{Sent: 49}) {
		t.Errorf("%+v", got)
	}
	w.stored(append(want, "Remember that deploys happen on Tuesdays.")...)
}

// TestWhatCannotBeSentIsNotTriedAtEachHook: where the node took nothing of what waits, only something
// new has it tried again within ten seconds.
func TestWhatCannotBeSentIsNotTriedAtEachHook(t *testing.T) {
	w := newWorld(t)
	w.node.barred = map[string]error{"team-a": memory.Errorf(memory.CodeForbidden, "not you")}
	for i := range 3 {
		if err := spoolOne(w.disk(), i); err != nil {
			t.Fatal(err)
		}
	}
	more := func(prompt string) bool {
		e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(toJSON(map[string]string{"session_id": "s", "prompt": prompt})))
		if err != nil {
			t.Fatal(err)
		}
		r := w.runner(ClaudeCode)
		r.Keep(t.Context(), &e)
		return r.Send(t.Context())
	}
	if !more("when do deploys happen?") {
		t.Error("the first hook has nothing sent")
	}
	if got := w.drain(ClaudeCode); got.Waiting != 3 || got.Sent != 0 {
		t.Errorf("%+v", got)
	}
	if more("and when do deploys happen?") {
		t.Error("the next hook has it tried again")
	}
	if !more("Remember that deploys happen on Tuesdays.") {
		t.Error("something new is not sent")
	}
	w.now = w.now.Add(aloneFor)
	if !more("when do deploys happen?") {
		t.Error("a later hook has nothing sent")
	}
}

// lister calls back when it has listed nothing, for the first time.
type lister struct {
	files
	empty func()
}

func (l *lister) names(dir string) ([]string, error) {
	names, err := l.files.names(dir)
	if then := l.empty; len(names) == 0 && then != nil {
		l.empty = nil
		then()
	}
	return names, err
}

// TestNothingIsLeftBehindByHooksAtOnce: a hook that finds another one sending leaves what it spooled to
// that one, which looks again when it is through.
func TestNothingIsLeftBehindByHooksAtOnce(t *testing.T) {
	w := newWorld(t)
	one, err := openDisk(w.dir, &lister{systemFiles{}, func() {
		if err := spoolOne(w.disk(), 1); err != nil {
			t.Error(err)
		}
		if got := w.drain("a"); got != (Drained{Waiting: 1, Busy: true}) {
			t.Errorf("beside another one: %+v", got)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := spoolOne(w.disk(), 0); err != nil {
		t.Fatal(err)
	}
	r := w.runner("a")
	r.Disk = one
	if got := r.Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 2}) {
		t.Errorf("%+v", got)
	}
	w.stored("text 0", "text 1")
}

// TestADrainThatAPersonCallsWaitsForAnother, and sends what that one left.
func TestADrainThatAPersonCallsWaitsForAnother(t *testing.T) {
	w := newWorld(t)
	if err := spoolOne(w.disk(), 0); err != nil {
		t.Fatal(err)
	}
	sending, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan Drained, 1)
	var other sync.WaitGroup
	other.Go(func() {
		_, err := w.disk().drain(context.Background(), round{addrs: []string{testAddr}, note: t.Logf, send: func(context.Context, Entry, func(Entry) error) verdict {
			close(sending)
			<-goOn
			return later
		}})
		if err != nil {
			t.Error(err)
		}
	})
	<-sending
	go func() { ended <- w.runner("a").Drain(context.Background(), DrainOptions{Wait: true}) }()
	select {
	case got := <-ended:
		t.Errorf("it did not wait: %+v", got)
		close(goOn)
	case <-time.After(50 * time.Millisecond):
		close(goOn)
		if got := <-ended; got != (Drained{Sent: 1}) {
			t.Errorf("%+v", got)
		}
	}
	other.Wait()
}

// TestWhatANodeThatIsBackTakesIsNotHeldUp: only what a node that answers did not take waits for ten seconds.
func TestWhatANodeThatIsBackTakesIsNotHeldUp(t *testing.T) {
	w := newWorld(t)
	if err := spoolOne(w.disk(), 0); err != nil {
		t.Fatal(err)
	}
	w.away(true)
	if got := w.drain("a"); !got.Away || got.Waiting != 1 || w.disk().state().held(testAddr, w.now) {
		t.Errorf("away: %+v", got)
	}
	w.away(false)
	_, err := w.disk().drain(t.Context(), round{addrs: []string{testAddr}, note: t.Logf, send: func(context.Context, Entry, func(Entry) error) verdict {
		if got := w.drain("a"); !got.Busy || w.disk().state().held(testAddr, w.now) {
			t.Errorf("beside another one: %+v", got)
		}
		return later
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestWhatIsSaidOfTheNodeIsTrue: that it refused, that it did not answer, or nothing, where it was the
// hook's time that ended.
func TestWhatIsSaidOfTheNodeIsTrue(t *testing.T) {
	prompt := `{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`
	for _, c := range []struct {
		name      string
		node      func(w *world) Node
		own       time.Duration // that the hook has; 0 is enough
		says      string
		outcome   string
		leftAlone bool
	}{
		{"it refuses", func(w *world) Node { w.away(true); return w.node }, 0, "the node takes nothing for now, captures wait: cannot reach a node", "failed: unavailable", false},
		{"it does not answer", func(w *world) Node { return slowNode{w.node} }, 0, "captures wait: the node at " + testAddr + " did not answer within 1s", "failed: timeout", true},
		{"the time of the hook ends", func(w *world) Node { return slowNode{w.node} }, 10 * time.Millisecond, "recall: the hook's own time ended before the node had answered", "out of time", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(prompt))
			if err != nil {
				t.Fatal(err)
			}
			r := w.runner(ClaudeCode)
			r.Node = c.node(w)
			r.Keep(t.Context(), &e)
			short := t.Context()
			if c.own > 0 {
				var cancel context.CancelFunc
				short, cancel = context.WithTimeout(short, c.own)
				defer cancel()
			}
			var sent sync.WaitGroup
			more := false
			sent.Go(func() { more = r.Send(short) })
			_ = r.search(short, &e, r.begun, &Recalled{})
			sent.Wait()
			var made Recalled
			_ = r.search(short, &e, r.begun, &made)
			said := w.notes()
			if !strings.Contains(said, c.says) || made.Outcome != c.outcome {
				t.Errorf("%s, said %q", made.Outcome, said)
			}
			for _, other := range []string{"takes nothing", "did not answer", "own time"} {
				if strings.Contains(said, other) != strings.Contains(c.says, other) && !strings.Contains(c.says, "did not answer") {
					t.Errorf("said %q", said)
				}
			}
			if away := w.disk().state().leftAlone(testAddr, w.now); away != c.leftAlone || more != (c.own > 0) || w.disk().Waiting() != 1 {
				t.Errorf("left alone %v, more %v, %d wait", away, more, w.disk().Waiting())
			}
		})
	}
}

// TestAHookSendsForSomeTimeOnly, also its own: a node that is slow and takes them is no reason to wait for
// all of them.
func TestAHookSendsForSomeTimeOnly(t *testing.T) {
	w := newWorld(t)
	w.node.slow = 2 * sendPatience / 7 // a search and a capture each: a third one would begin too late
	e, err := Normalise(Codex, "UserPromptSubmit", []byte(`{"session_id":"one","turn_id":"1","prompt":"`+strings.Repeat("The weather is nice today. ", 20)+`\n\nI prefer tabs.\n\nI prefer vim over emacs.\n\nI prefer small functions."}`))
	if err != nil {
		t.Fatal(err)
	}
	r := w.runner(Codex)
	r.Keep(t.Context(), &e)
	if r.Disk.Waiting() != 3 {
		t.Fatalf("%d wait", r.Disk.Waiting())
	}
	if more := r.Send(t.Context()); !more || r.Disk.Waiting() == 0 || r.LeftAlone() {
		t.Errorf("more %v, %d wait, away %v: %s", more, r.Disk.Waiting(), r.LeftAlone(), w.notes())
	}
	w.node.slow = 0
	w.drain(Codex)
	w.stored("I prefer tabs.", "I prefer vim over emacs.", "I prefer small functions.")
}

// TestThePassOfTimeIsNoRefusal: what was not sent for want of time is sent by the next one, as it was.
func TestThePassOfTimeIsNoRefusal(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		if err := spoolOne(w.disk(), i); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.node.onSend = func(memory.Capture) { cancel() }
	if got := w.runner("a").Drain(ctx, DrainOptions{}); got != (Drained{Sent: 1, Waiting: 2, Cut: true}) {
		t.Errorf("%+v", got)
	}
	if w.disk().state().held(testAddr, w.now) {
		t.Error("what was not tried is not tried again")
	}
	if got := w.drain("a"); got != (Drained{Sent: 2}) || !slices.Equal(w.node.sent, []string{"text 0", "text 1", "text 2"}) {
		t.Errorf("%+v, sent %q", got, w.node.sent)
	}
}
