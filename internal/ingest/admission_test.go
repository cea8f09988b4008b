package ingest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/memory"
)

func TestClock(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var shift atomic.Int64
	w.now = func() time.Time { return base.Add(time.Duration(shift.Load())) }
	w.mustStart()
	w.namespace("team-a")
	sealed := func() int64 {
		rows := w.audit("team-a")
		return rows[len(rows)-1].SealedAt
	}
	w.capture("team-a", memory.Capture{Text: "a"})
	first := sealed()
	shift.Store(int64(-30 * time.Second))
	w.capture("team-a", memory.Capture{Text: "b"})
	if second := sealed(); second <= first {
		t.Errorf("sealed_at went from %d to %d", first, second)
	}
	shift.Store(int64(-61 * time.Second))
	before := w.last()
	_, err := w.try("team-a", memory.Capture{Text: "c"})
	if e := wantCode(t, err, memory.CodeUnavailable); e.RetryAfter <= 0 || e.Hint == "" {
		t.Errorf("%+v", e)
	}
	if w.last() != before {
		t.Error("something was written")
	}
	shift.Store(int64(-59 * time.Second))
	if r := w.capture("team-a", memory.Capture{Text: "d"}); r.Status != memory.StatusCreated {
		t.Errorf("%+v", r)
	}
	shift.Store(int64(5 * time.Hour))
	w.capture("team-a", memory.Capture{Text: "e"})
	if got := sealed(); got != base.Add(5*time.Hour).UnixNano() {
		t.Errorf("a jump forward is not taken: %v", time.Unix(0, got).UTC())
	}
	last := int64(0)
	for _, r := range w.audit("team-a") {
		if r.SealedAt <= last {
			t.Errorf("sealed_at %d follows %d", r.SealedAt, last)
		}
		last = r.SealedAt
	}
}

// The clock that was found wrong between admission and decision refuses too.
func TestRefusedAtDecision(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	var no atomic.Pointer[memory.Error]
	w.refuse = func() *memory.Error { return no.Load() }
	w.mustStart()
	w.namespace("team-a")
	resume, err := w.writer.Pause(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := w.try("team-a", memory.Capture{Text: "x"})
		wantCode(t, err, memory.CodeNoSpace)
	})
	await(t, "it to be queued", func() bool { n, _ := w.writer.QueueDepth(); return n == 1 })
	no.Store(memory.Errorf(memory.CodeNoSpace, "full"))
	resume()
	wg.Wait()
}

func TestRefuseHook(t *testing.T) {
	f := eventlogtest.NewFake()
	w := newWorld(t, f)
	var no atomic.Pointer[memory.Error]
	w.refuse = func() *memory.Error { return no.Load() }
	w.mustStart()
	w.namespace("team-a")
	r := w.capture("team-a", memory.Capture{Text: "kept"})
	hash, last := w.hash(), w.last()
	no.Store(memory.Errorf(memory.CodeNoSpace, "the disk is full"))
	w.everyWriteFails(r.RecordID, memory.CodeNoSpace)
	if w.hash() != hash || w.last() != last {
		t.Error("something was written")
	}
	if got, _ := w.text(r.RecordID); got != "kept" {
		t.Errorf("reading gives %q", got)
	}
	no.Store(nil)
	// The log itself may be the one without space.
	f.Inject(eventlogtest.FaultNoSpace)
	_, err := w.try("team-a", memory.Capture{Text: "y"})
	if e := wantCode(t, err, memory.CodeNoSpace); e.Hint == "" {
		t.Error("no hint")
	}
	if w.hash() != hash || w.last() != last {
		t.Error("something was written")
	}
	if r := w.capture("team-a", memory.Capture{Text: "z"}); r.Status != memory.StatusCreated {
		t.Errorf("%+v", r)
	}
}

// everyWriteFails tries each kind of write.
func (w *world) everyWriteFails(record string, code memory.Code) {
	w.t.Helper()
	ctx := context.Background()
	text := "changed"
	_, capture := w.try("team-a", memory.Capture{Text: "x"})
	_, revise := w.writer.Revise(ctx, "team-a", "agent-1", record, memory.Revision{Text: &text}, 0, "")
	_, forget := w.writer.Forget(ctx, "team-a", "agent-1", record, 0)
	_, create := w.writer.CreateNamespace(ctx, "team-new", nil, "")
	_, change := w.writer.ChangeNamespace(ctx, "team-a", memory.PatchNamespace{})
	_, _, remove := w.writer.DeleteNamespace(ctx, "team-a")
	for what, err := range map[string]error{"capture": capture, "revise": revise, "forget": forget, "create": create, "change": change, "delete": remove} {
		if err == nil || memory.CodeOf(err) != code {
			w.t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
}

func TestItemsAreRefusedOneByOne(t *testing.T) {
	w := startWorld(t)
	long := make([]byte, 2<<20)
	for i := range long {
		long[i] = 'a'
	}
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	resp := w.batch("team-a",
		memory.Capture{Text: ""},
		memory.Capture{Text: "good", OccurredAt: &when, ID: "g"},
		memory.Capture{Text: string(long)},
		memory.Capture{Text: "bad", DerivedFrom: []string{"?"}},
		memory.Capture{Text: "bad", Metadata: []byte(`[1]`)},
	)
	for i, r := range resp.Results {
		if (r.Status == memory.StatusCreated) != (i == 1) || (r.Error == nil) != (i == 1) {
			t.Errorf("item %d: %+v %+v", i, r, r.Error)
		}
	}
	if resp.Results[1].ID != "g" || resp.Position != resp.Results[1].Position {
		t.Errorf("%+v", resp)
	}
	v := w.state.View()
	h, _ := w.find(v, resp.Results[1].RecordID)
	doc, _, _ := v.Doc(h.Partition, h.Doc)
	v.Close()
	if doc.OccurredAt != when.UnixNano() {
		t.Errorf("occurred_at is %d", doc.OccurredAt)
	}
	none := w.batch("team-a", memory.Capture{Text: ""})
	if none.Position == "" {
		t.Error("a batch of which nothing was written has no position")
	}
	if _, err := w.writer.Capture(context.Background(), "", nil, memory.WaitApplied); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("no namespace: %v", err)
	}
}

// TestTheFirstOfJanuary1970WasNow: a time that was given as 0 was taken for none.
func TestTheFirstOfJanuary1970WasNow(t *testing.T) {
	w := startWorld(t)
	resp := w.batch("team-a", memory.Capture{Text: "the epoch", OccurredAt: new(time.Unix(0, 0))}, memory.Capture{Text: "now"})
	v := w.state.View()
	defer v.Close()
	for i, r := range resp.Results {
		h, _ := w.find(v, r.RecordID)
		doc, _, err := v.Doc(h.Partition, h.Doc)
		if err != nil || (doc.OccurredAt == 0) != (i == 0) {
			t.Errorf("item %d occurred at %d: %v", i, doc.OccurredAt, err)
		}
	}
}

// accepted is answered when the log has the event, before the state has it.
func TestAcceptedDoesNotWaitForTheState(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	hold, entered := make(chan struct{}), make(chan struct{})
	w.mustStart()
	w.namespace("team-a")
	var once sync.Once
	hook := func() { // the applying goroutine stands here
		once.Do(func() { close(entered); <-hold })
	}
	w.wake.Store(&hook)
	resp, err := w.writer.Capture(context.Background(), "team-a", []Item{{Capture: memory.Capture{Agent: "a", Text: "one"}}}, memory.WaitAccepted)
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	r := resp.Results[0]
	if r.Status != memory.StatusCreated || r.RecordID == "" || r.Position == "" {
		t.Errorf("%+v", r)
	}
	second, err := w.writer.Capture(context.Background(), "team-a", []Item{{Capture: memory.Capture{Agent: "a", Text: "two"}}}, memory.WaitAccepted)
	if err != nil {
		t.Fatal(err)
	}
	cursor := w.state.Cursor()
	if c := cursor.Position(); !c.Before(position(t, second.Position)) {
		t.Errorf("the state stands at %v, accepted was %s", c, second.Position)
	}
	close(hold)
	w.stop()
	for i, want := range []memory.CaptureResponse{resp, second} {
		if got, _ := w.text(want.Results[0].RecordID); got != []string{"one", "two"}[i] {
			t.Errorf("the record of %s says %q", want.Position, got)
		}
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	g := newGate()
	w := started(t, g)
	for _, wait := range []memory.Wait{memory.WaitAccepted, memory.WaitApplied, memory.WaitSearchable} {
		entered, let := g.shut()
		ctx, cancel := context.WithCancel(context.Background())
		c := memory.Capture{Agent: "agent-1", ID: string(wait), Text: "it rains"}
		done := make(chan memory.CaptureResponse, 1)
		go func() {
			resp, err := w.writer.Capture(ctx, "team-a", []Item{{Capture: c}}, wait)
			if err != nil {
				t.Error(err)
			}
			done <- resp
		}()
		<-entered
		cancel()
		r := (<-done).Results[0]
		if e := wantCode(t, itemError(&r), memory.CodeOutcomeUnknown); e.Hint == "" {
			t.Error("no hint")
		}
		let()
		again := w.capture("team-a", c)
		if again.Status != memory.StatusDuplicate {
			t.Errorf("%s: sent again: %+v", wait, again)
		}
	}
	if n := w.writer.Counters().Events.Load(); n != 4 {
		t.Errorf("%d events", n)
	}
}

// What is known and past its deadline was reported as unknown at times.
func TestKnownOutcomeBeatsAnEndedContext(t *testing.T) {
	d := newDraft(events.Header{})
	d.finish(d.result, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 {
		if err := d.wait(ctx, memory.WaitApplied); err != nil {
			t.Fatal(err)
		}
	}
	open := newDraft(events.Header{})
	wantCode(t, open.wait(ctx, memory.WaitApplied), memory.CodeOutcomeUnknown)
	late, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	if e := wantCode(t, open.wait(late, memory.WaitAccepted), memory.CodeOutcomeUnknown); e.Message == "" || e.Hint == "" {
		t.Errorf("%+v", e)
	}
}

func TestPauseDuringTraffic(t *testing.T) {
	w := startWorld(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	acked := map[string]string{}
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprintf("writer %d, note %d", g, i)
				r, err := w.try("team-a", memory.Capture{Text: text})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked[r.RecordID] = text
				mu.Unlock()
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(acked) }
	for range 10 {
		n := count()
		await(t, "traffic", func() bool { return count() > n+4 })
		resume, err := w.writer.Pause(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		last := w.last()
		if c := w.state.Cursor(); c.Seq != last {
			t.Fatalf("paused, and the log is at %d, the state at %d", last, c.Seq)
		}
		await(t, "everybody to wait", func() bool { n, _ := w.writer.QueueDepth(); return n == 4 })
		if w.last() != last || w.writer.flight.count() != 0 {
			t.Fatal("a frame was written during a pause")
		}
		resume()
	}
	close(stop)
	wg.Wait()
	for id, text := range acked {
		if got, _ := w.text(id); got != text {
			t.Errorf("%s says %q, not %q", id, got, text)
		}
	}
}

func TestPauseGivesUp(t *testing.T) {
	g := newGate()
	w := started(t, g)
	entered, let := g.shut()
	var wg sync.WaitGroup
	wg.Go(func() { w.capture("team-a", memory.Capture{Text: "x"}) })
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.writer.Pause(ctx); err == nil {
		t.Error("paused with a frame in flight")
	}
	let()
	wg.Wait()
	w.capture("team-a", memory.Capture{Text: "y"})
}

func TestCloseDuringTraffic(t *testing.T) {
	for round := range 5 {
		w := startWorld(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var acked []string
		started := make(chan struct{}, 1000)
		for range 8 {
			wg.Go(func() {
				for {
					r, err := w.try("team-a", memory.Capture{Text: "note"})
					if err != nil {
						wantCode(t, err, memory.CodeUnavailable)
						return
					}
					mu.Lock()
					acked = append(acked, r.RecordID)
					mu.Unlock()
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 10 + round {
			<-started
		}
		if err := w.writer.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		n := 0
		for _, row := range w.audit("team-a") {
			if row.Type == events.TypeCaptured {
				n++
			}
		}
		if n != len(acked) {
			t.Errorf("%d are stored, %d were acknowledged", n, len(acked))
		}
		w.writer = nil
	}
}

// A close whose time is over answers everybody, even while the log hangs.
func TestCloseAtItsDeadline(t *testing.T) {
	g := newGate()
	w := newWorld(t, g)
	w.opt = func(o *Options) { o.MaxFrameBytes = 600 }
	w.mustStart()
	w.namespace("team-a")
	entered, let := g.shut()
	defer let()
	errs := make(chan error, 10)
	for i := range 10 {
		go func() {
			_, err := w.try("team-a", memory.Capture{Text: fmt.Sprint("x", i)})
			errs <- err
		}()
	}
	<-entered
	await(t, "the rest to wait", func() bool {
		n, _ := w.writer.QueueDepth()
		return n+w.writer.flight.count() >= 9
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.writer.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := <-errs; memory.CodeOf(err) != memory.CodeUnavailable && memory.CodeOf(err) != memory.CodeOutcomeUnknown || err == nil {
			t.Errorf("answer %v", err)
		}
	}
	w.writer = nil
}
