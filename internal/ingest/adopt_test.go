package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/memory"
)

func TestOwnFrameIsAdopted(t *testing.T) {
	for _, fault := range []eventlogtest.Fault{eventlogtest.FaultBlind, eventlogtest.FaultUnknownStored, eventlogtest.FaultUnknownLost,
		eventlogtest.FaultLate, eventlogtest.FaultWrongAck, eventlogtest.FaultTwice,
		eventlogtest.FaultFullStored, eventlogtest.FaultFullLost} { // a full disk without an ack is no refusal
		t.Run(string(fault), func(t *testing.T) {
			f := eventlogtest.NewFake()
			w := started(t, f)
			f.Inject(fault)
			first := w.capture("team-a", memory.Capture{ID: "k", Text: "one"})
			if first.Status != memory.StatusCreated {
				t.Fatalf("%+v", first)
			}
			if f.Bit()[fault] != 1 {
				t.Error("the fault did not bite")
			}
			if r := w.capture("team-a", memory.Capture{ID: "k", Text: "one"}); r.Status != memory.StatusDuplicate || r.Position != first.Position {
				t.Errorf("again: %+v, first %+v", r, first)
			}
			if r := w.capture("team-a", memory.Capture{Text: "two"}); r.Status != memory.StatusCreated {
				t.Errorf("%+v", r)
			}
			w.refold()
		})
	}
}

// A write whose first attempt was still under way was answered as refused when
// the second one was, and then arrived after all. It is sent again until it is
// known where it is.
func TestRefusalAfterAnAttemptUnderWay(t *testing.T) {
	for _, second := range []eventlogtest.Fault{eventlogtest.FaultRefuse, eventlogtest.FaultNoSpace} {
		t.Run(string(second), func(t *testing.T) { refusalUnderWay(t, second) })
	}
}

func refusalUnderWay(t *testing.T, second eventlogtest.Fault) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	f.Inject(eventlogtest.FaultLate, second)
	c := memory.Capture{ID: "k", Text: "one"}
	first := w.capture("team-a", c)
	if first.Status != memory.StatusCreated || f.Bit()[second] != 1 {
		t.Fatalf("%+v; the fault bit %d times", first, f.Bit()[second])
	}
	f.Deliver()
	r := w.capture("team-a", c)
	if r.Status != memory.StatusDuplicate || r.Position != first.Position {
		t.Errorf("sent again: %+v", r)
	}
	if got, _ := w.text(r.RecordID); got != "one" {
		t.Errorf("the record says %q", got)
	}
	w.refold()
}

// A write whose first attempt met a full disk was sent again until the caller's
// deadline, and a stop waited for it, though the log's server had said that it
// stores nothing before it is restarted.
func TestServerThatStoppedStoring(t *testing.T) {
	for _, first := range []eventlogtest.Fault{eventlogtest.FaultFullLost, eventlogtest.FaultLate} {
		t.Run(string(first), func(t *testing.T) {
			f := eventlogtest.NewFake()
			w := started(t, f)
			f.Inject(first, eventlogtest.FaultStopped, eventlogtest.FaultStopped)
			items := []Item{{Capture: memory.Capture{Agent: "agent-1", ID: "k", Text: "one"}}}
			for i, want := range []memory.Code{memory.CodeOutcomeUnknown, memory.CodeNoSpace} {
				resp, err := w.writer.Capture(t.Context(), "team-a", items, memory.WaitApplied)
				if err != nil || resp.Results[0].Error == nil || resp.Results[0].Error.Code != want || f.Bit()[eventlogtest.FaultStopped] != i+1 {
					t.Fatalf("attempt %d: %+v %v, want %s; the fault bit %d times", i, resp, err, want, f.Bit()[eventlogtest.FaultStopped])
				}
			}
			f.Deliver()
			want := map[eventlogtest.Fault]memory.ItemStatus{eventlogtest.FaultFullLost: memory.StatusCreated, eventlogtest.FaultLate: memory.StatusDuplicate}
			if r := w.capture("team-a", items[0].Capture); r.Status != want[first] {
				t.Errorf("sent again after a restart: %+v", r)
			}
			w.refold()
		})
	}
}

// A frame that was decided before an adoption was written as it was: a client
// that had sent an id again, and waited for accepted only, was told of a record
// that the fold then took for a duplicate.
func TestFramesDecidedBeforeAnAdoption(t *testing.T) {
	g := newGate()
	w := newWorld(t, g)
	w.opt = func(o *Options) { o.MaxFrameBytes = 600 }
	w.mustStart()
	w.namespace("team-a")
	theirs := w.captured("team-a", "same", "it rains")
	frame := w.another(g.Fake, w.group.Term(), theirs)
	g.SecondWriter(func(uint64) []byte { return frame })
	entered, let := g.shut()
	var wg sync.WaitGroup
	wg.Go(func() { w.capture("team-a", memory.Capture{Text: "first"}) })
	<-entered
	wg.Go(func() {
		resp, err := w.writer.Capture(context.Background(), "team-a",
			[]Item{{Capture: memory.Capture{Agent: "agent-1", ID: "same", Text: "it rains"}}}, memory.WaitAccepted)
		env, _ := events.DecodeEnvelope(theirs)
		if err != nil || resp.Results[0].Status != memory.StatusDuplicate || resp.Results[0].RecordID != env.Record.String() {
			t.Errorf("%+v %v", resp, err)
		}
	})
	await(t, "both to fly", func() bool { return w.writer.flight.count() == 2 })
	g.Inject(eventlogtest.FaultSecondWriter)
	let()
	wg.Wait()
	w.refold()
}

// another makes the frame that another writer would put behind the log's
// present end.
func (w *world) another(f *eventlogtest.Fake, term uint64, evs ...[]byte) []byte {
	var chain events.Chain
	msgs := f.Messages()
	for seq := uint64(1); seq <= uint64(len(msgs)); seq++ {
		chain = events.NextChain(chain, seq, msgs[seq])
	}
	c := w.state.Cursor()
	fr := events.Frame{Feature: events.FeatureLevel, Epoch: c.Epoch, Term: term, Seq: uint64(len(msgs)) + 1, Previous: chain, Events: evs}
	return fr.Encode()
}

// captured makes the sealed event of a capture, as another node's leader would.
func (w *world) captured(ns, id, text string) []byte {
	w.t.Helper()
	a, err := w.writer.admit(ns)
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.view.Close()
	it := Item{Capture: memory.Capture{Agent: "agent-1", ID: id, Text: text}}
	it.Normalise()
	d, err := a.capture(&it)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.writer.loop.round.seq.seal([]*draft{d}).encoded[0]
}

// A deposed writer took over its successor's term and went on writing under it.
// It must stop, own up to what it cannot know, and leave the rest to the next
// one, which finds the first record of an id that is sent again.
func TestSecondWriter(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	term := w.group.Term()
	theirs := w.captured("team-a", "same", "it rains")
	frame := w.another(f, term+5, theirs)
	f.SecondWriter(func(uint64) []byte { return frame })
	f.Inject(eventlogtest.FaultSecondWriter)
	resp := w.batch("team-a", memory.Capture{ID: "same", Text: "it rains"}, memory.Capture{ID: "own", Text: "it snows"})
	for i := range resp.Results {
		wantCode(t, itemError(&resp.Results[i]), memory.CodeOutcomeUnknown)
	}
	<-w.writer.Ended()
	var deposed *DeposedError
	if err := w.writer.Err(); !errors.As(err, &deposed) || deposed.Own != term || deposed.Term != term+5 || deposed.Seq != w.last() {
		t.Errorf("ended with %v", err)
	}
	if f.Bit()[eventlogtest.FaultSecondWriter] != 1 {
		t.Error("the fault did not bite")
	}
	_, err := w.try("team-a", memory.Capture{Text: "and on"})
	wantCode(t, err, memory.CodeUnavailable)
	if got := w.last(); got != deposed.Seq {
		t.Fatalf("the deposed writer wrote on: the log ends at %d", got)
	}
	w.stop()
	if err := w.start(); !errors.As(err, &deposed) {
		t.Fatalf("the same term began again: %v", err)
	}
	w.writer, w.opt = nil, func(o *Options) { o.Term = term + 6 }
	w.mustStart()
	env, _ := events.DecodeEnvelope(theirs)
	if r := w.capture("team-a", memory.Capture{ID: "same", Text: "it rains"}); r.Status != memory.StatusDuplicate || r.RecordID != env.Record.String() {
		t.Errorf("sent again: %+v; theirs is %s", r, env.Record)
	}
	if r := w.capture("team-a", memory.Capture{ID: "own", Text: "it snows"}); r.Status != memory.StatusCreated {
		t.Errorf("sent again: %+v", r)
	}
	if c := w.state.Cursor(); c.Term != term+6 {
		t.Errorf("term is %d", c.Term)
	}
	w.refold()
}

func TestForeignGarbageIsVoid(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	old := f.Messages()[1]
	for i, junk := range [][]byte{[]byte("junk"), {}, old, w.another(f, 0, w.captured("team-a", "", "of an old term"))} {
		f.SecondWriter(func(uint64) []byte { return junk })
		f.Inject(eventlogtest.FaultSecondWriter)
		if r := w.capture("team-a", memory.Capture{Text: fmt.Sprint("note ", i)}); r.Status != memory.StatusCreated {
			t.Fatalf("%+v", r)
		}
	}
	voids := 0
	for _, row := range w.audit("") {
		if row.Outcome == projections.OutcomeVoid {
			voids++
		}
	}
	if voids != 4 {
		t.Errorf("%d void messages are in the audit", voids)
	}
	w.refold()
}

// Drafts that came back from an adoption into a closed queue were never
// answered.
func TestAdoptionDuringClose(t *testing.T) {
	g := newGate()
	w := started(t, g)
	g.SecondWriter(func(uint64) []byte { return []byte("junk") })
	entered, let := g.shut()
	done := make(chan error, 1)
	go func() {
		_, err := w.try("team-a", memory.Capture{Text: "x"})
		done <- err
	}()
	<-entered
	g.Inject(eventlogtest.FaultSecondWriter)
	closed := make(chan error, 1)
	go func() { closed <- w.writer.Close(context.Background()) }()
	await(t, "the queue to be closed", func() bool {
		w.writer.queue.mu.Lock()
		defer w.writer.queue.mu.Unlock()
		return w.writer.queue.closed
	})
	let()
	if err := <-done; err != nil {
		t.Errorf("what was admitted before the close: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	w.writer = nil
}

// The machine is gone: what the log has is an unknown outcome, what comes
// later is refused, and nobody hangs, although the second frame has to be
// adopted behind one that will never be applied.
func TestStateThatDoesNotFollow(t *testing.T) {
	g := newGate()
	w := newWorld(t, g)
	w.opt = func(o *Options) { o.MaxFrameBytes = 600 }
	w.mustStart()
	w.namespace("team-a")
	entered, let := g.shut()
	errs := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := w.try("team-a", memory.Capture{ID: fmt.Sprint(i), Text: "x"})
			errs <- err
		}()
		if i == 0 {
			<-entered
		} else {
			await(t, "both to fly", func() bool { return w.writer.flight.count() == 2 })
		}
	}
	g.Inject(eventlogtest.FaultNone, eventlogtest.FaultBlind)
	if err := w.group.Close(); err != nil {
		t.Fatal(err)
	}
	let()
	for range 2 {
		wantCode(t, <-errs, memory.CodeOutcomeUnknown)
	}
	_, err := w.try("team-a", memory.Capture{Text: "y"})
	if e := wantCode(t, err, memory.CodeUnavailable); e.Hint == "" {
		t.Error("no hint")
	}
	if g.Bit()[eventlogtest.FaultBlind] != 1 {
		t.Error("the fault did not bite")
	}
}

func TestDivergenceAtStart(t *testing.T) {
	for _, c := range []struct {
		kind   string
		damage func(w *world, f *eventlogtest.Fake)
	}{
		{eventlog.KindSuffixLost, func(w *world, f *eventlogtest.Fake) { f.CutSuffix(w.last() - 1) }},
		{eventlog.KindHash, func(w *world, f *eventlogtest.Fake) {
			f.Replace(w.last()-1, []byte("another"))
		}},
		{eventlog.KindGap, func(w *world, f *eventlogtest.Fake) { f.Drop(w.last() - 1) }},
		{eventlog.KindLost, func(_ *world, f *eventlogtest.Fake) { f.ReportLost(2) }},
		{eventlog.KindIdentity, func(w *world, f *eventlogtest.Fake) {
			msgs := f.Messages()
			f.Recreate()
			for seq := uint64(1); seq <= uint64(len(msgs)); seq++ {
				f.Put(msgs[seq])
			}
		}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			f := eventlogtest.NewFake()
			w := started(t, f)
			var last memory.CaptureResult
			for i := range 5 {
				last = w.capture("team-a", memory.Capture{Text: fmt.Sprint("note ", i)})
			}
			w.stop()
			cur := w.state.Cursor()
			if err := w.state.SetOrigin(cur.RaftIndex, cur.RaftTerm, events.StreamRef{Epoch: cur.Epoch, Identity: "fake-1"}); err != nil {
				t.Fatal(err)
			}
			c.damage(w, f)
			before := w.last()
			w.mustStart()
			if d := w.writer.Diverged(); d == nil || d.Kind != c.kind || d.Hint == "" {
				t.Fatalf("diverged is %+v", d)
			}
			if got, _ := w.text(last.RecordID); got != "note 4" {
				t.Errorf("reading gives %q", got)
			}
			w.everyWriteFails(last.RecordID, memory.CodeLogDiverged)
			if w.last() != before {
				t.Error("something was written")
			}
		})
	}
}

// What a writer finds behind its own end after an append that was not clean: less
// than it wrote, a hole, or another stream.
func TestDivergenceWhileRunning(t *testing.T) {
	cut := func(n uint64) func(*world, *eventlogtest.Fake) {
		return func(w *world, f *eventlogtest.Fake) { f.CutSuffix(w.last() - n) }
	}
	for _, c := range []struct {
		name, kind string
		damage     func(w *world, f *eventlogtest.Fake)
	}{
		{"one message lost", eventlog.KindSuffixLost, cut(1)},
		{"two messages lost", eventlog.KindSuffixLost, cut(2)},
		{"lost, and the first look fails", eventlog.KindSuffixLost, func(w *world, f *eventlogtest.Fake) {
			cut(2)(w, f)
			f.Offline(1)
		}},
		{"a hole", eventlog.KindGap, func(w *world, f *eventlogtest.Fake) {
			f.Put([]byte("a"))
			f.Put([]byte("b"))
			f.Drop(w.last() - 1)
		}},
		{"another stream", eventlog.KindIdentity, func(_ *world, f *eventlogtest.Fake) { f.Recreate() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := eventlogtest.NewFake()
			w := newWorld(t, f)
			w.opt = func(o *Options) { o.Ref = events.StreamRef{Epoch: 1, Identity: "fake-1"} }
			w.mustStart()
			w.namespace("team-a")
			r := w.capture("team-a", memory.Capture{Text: "kept"})
			c.damage(w, f)
			_, err := w.try("team-a", memory.Capture{Text: "x"})
			if e := wantCode(t, err, memory.CodeLogDiverged); e.Hint == "" {
				t.Error("no hint")
			}
			if d := w.writer.Diverged(); d == nil || d.Kind != c.kind {
				t.Errorf("diverged is %+v", d)
			}
			w.everyWriteFails(r.RecordID, memory.CodeLogDiverged)
			if got, _ := w.text(r.RecordID); got != "kept" {
				t.Errorf("reading gives %q", got)
			}
		})
	}
}

func TestDivergenceFoundElsewhereStopsWrites(t *testing.T) {
	w := startWorld(t)
	r := w.capture("team-a", memory.Capture{Text: "kept"})
	if err := w.writer.Check(context.Background()); err != nil {
		t.Error(err)
	}
	w.writer.SetDiverged(&eventlog.DivergedError{Kind: eventlog.KindHash, Detail: "found by the scrub", Hint: "repair"})
	w.everyWriteFails(r.RecordID, memory.CodeLogDiverged)
}

func TestBeginTerm(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	first := w.capture("team-a", memory.Capture{ID: "k", Text: "x"})
	w.stop()
	// Behind the state there are another leader's frame and junk.
	w.mustStart()
	frame := w.another(f, w.group.Term(), w.captured("team-a", "theirs", "from before"))
	w.stop()
	f.Put(frame)
	f.Put([]byte("junk"))
	w.opt = func(o *Options) { o.Ref = events.StreamRef{Epoch: 1, Identity: "fake-1"} }
	f.SecondWriter(func(uint64) []byte { return []byte("more junk") })
	f.Inject(eventlogtest.FaultSecondWriter, eventlogtest.FaultUnknownLost, eventlogtest.FaultBlind)
	w.mustStart()
	w.opt = nil
	var types []events.Type
	for _, row := range w.audit("") {
		if row.Type == events.TypeEpochBegan || row.Type == events.TypeLeaderBegan {
			types = append(types, row.Type)
		}
	}
	n := len(types)
	if n < 2 || types[n-1] != events.TypeLeaderBegan || types[n-2] != events.TypeEpochBegan && types[n-3] != events.TypeEpochBegan {
		t.Errorf("control events are %v", types)
	}
	for fault, k := range map[eventlogtest.Fault]int{eventlogtest.FaultSecondWriter: 1, eventlogtest.FaultUnknownLost: 1, eventlogtest.FaultBlind: 1} {
		if f.Bit()[fault] != k {
			t.Errorf("%s did not bite", fault)
		}
	}
	if c := w.state.Cursor(); c.Epoch != 1 {
		t.Fatalf("epoch is %d", c.Epoch)
	}
	r := w.capture("team-a", memory.Capture{Text: "y"})
	if p := position(t, r.Position); p.Epoch != 1 {
		t.Errorf("position is %s", r.Position)
	}
	if r := w.capture("team-a", memory.Capture{ID: "k", Text: "x"}); r.Status != memory.StatusDuplicate || r.RecordID != first.RecordID {
		t.Errorf("%+v", r)
	}
	if r := w.capture("team-a", memory.Capture{ID: "theirs", Text: "from before"}); r.Status != memory.StatusDuplicate {
		t.Errorf("the frame behind the state was not applied: %+v", r)
	}
	w.refold()
}

func TestStartFails(t *testing.T) {
	f := eventlogtest.NewFake()
	w := newWorld(t, f)
	f.Offline(1)
	if err := w.start(); err == nil {
		t.Fatal("started without a log")
	}
	f.Inject(eventlogtest.FaultNoSpace)
	if err := w.start(); err == nil {
		t.Fatal("began a term without space")
	}
	w.writer = nil
	w.mustStart()
	w.namespace("team-a")
}

// A key that is missing and was not destroyed is damage: nothing is made up.
func TestMissingKeyStopsWriting(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	raw := w.captured("team-a", "", "x")
	env, err := events.DecodeEnvelope(raw)
	if err != nil {
		t.Fatal(err)
	}
	env.Key = keyring.KeyID{1, 2, 3}
	frame := w.another(f, w.group.Term(), env.Encode())
	f.SecondWriter(func(uint64) []byte { return frame })
	f.Inject(eventlogtest.FaultSecondWriter)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := w.try("team-a", memory.Capture{Text: "y"})
			if c := memory.CodeOf(err); err == nil || c != memory.CodeOutcomeUnknown && c != memory.CodeUnavailable {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	_, err = w.try("team-a", memory.Capture{Text: "z"})
	wantCode(t, err, memory.CodeUnavailable)
	w.stop()
	if err := w.start(); err == nil {
		t.Error("started with a key missing")
	}
	w.writer = nil
}
