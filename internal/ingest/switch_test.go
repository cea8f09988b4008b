package ingest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestSwitch(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 3*batchVersions)
	b := w.stepped(m, f)
	w.capture("team-a", memory.Capture{Text: "captured meanwhile"})
	b.round()
	set, _, count := w.spaces()
	if n := count(m.space); set.Next != m.space || n != batchVersions {
		t.Errorf("%d records after one round, %+v", n, set)
	}
	if st, ok := b.Status(w.id()); !ok || st.Phase != memory.PhaseFilling || st.Space != m.space || st.Rate <= 0 || st.Err != "" {
		t.Errorf("%+v %v", st, ok)
	}
	turn(t, b, 10, w.switchedTo(m.space))
	set, info, count := w.spaces()
	if n := count(m.space); n != info.Records || info.Pending != 0 || f.calls.Load() != 1 {
		t.Errorf("%d of %d records, %d pending, %d comparisons", n, info.Records, info.Pending, f.calls.Load())
	}
	if c := set.Compared; c == nil || c.Recall != 1 || c.NewVectors != info.Records || c.OldVectors != info.Records || c.To.Space != m.space.ID() {
		t.Errorf("%+v", c)
	}
	if set.Raw[settings.EmbedderProvider] != m.space.Provider || len(set.Kept) != 1 {
		t.Errorf("%+v", set)
	}
	b.round()
	if _, ok := b.Status(w.id()); ok {
		t.Error("the job is still there")
	}
	// A capture now waits for its vector, as any other.
	w.capture("team-a", memory.Capture{Text: "afterwards"})
	if w.pending() != 1 {
		t.Errorf("%d pending", w.pending())
	}
	if b.round(); w.pending() != 0 {
		t.Errorf("%v, %d pending", b.errors(), w.pending())
	}
	w.refold()
}

func TestBuildSpaceRefusals(t *testing.T) {
	m := newModel()
	w := switching(t, m, 1)
	w.build(m.space, false) // on its way already
	local, _, _ := w.spaces()
	another := m.space
	another.Model = "another"
	_, err := w.writer.BuildSpace(context.Background(), "team-a", another)
	if e := wantCode(t, err, memory.CodeConflict); !strings.Contains(e.Message, "fake") || !strings.Contains(e.Hint, "cancel") {
		t.Error(e, e.Hint)
	}
	_, err = w.writer.BuildSpace(context.Background(), "team-a", local.Space)
	wantCode(t, err, memory.CodeConflict)
	_, err = w.writer.BuildSpace(context.Background(), "team-a", embed.Space{})
	wantCode(t, err, memory.CodeInvalid)
	_, err = w.writer.BuildSpace(context.Background(), "nobody", another)
	wantCode(t, err, memory.CodeNotFound)
	wantCode(t, w.writer.CancelSpace(context.Background(), "nobody"), memory.CodeNotFound)
	if err := w.writer.CancelSpace(context.Background(), "team-a"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.writer.CancelSpace(context.Background(), "team-a"), memory.CodeConflict)
	w.build(local.Space, false) // what it has
	// Two at once: one begins, the other is told so or finds it done.
	var wg sync.WaitGroup
	var began, conflicts atomic.Int64
	for _, s := range []embed.Space{m.space, another} {
		wg.Go(func() {
			ok, err := w.writer.BuildSpace(context.Background(), "team-a", s)
			switch {
			case err == nil && ok:
				began.Add(1)
			case memory.CodeOf(err) == memory.CodeConflict:
				conflicts.Add(1)
			}
		})
	}
	wg.Wait()
	if began.Load() != 1 || conflicts.Load() != 1 {
		t.Errorf("%d began, %d conflicts", began.Load(), conflicts.Load())
	}
	w.refold()
}

// TestPoorRecallIsNoSwitch: the namespace stays with what it has until a search
// of the new space finds what is near.
func TestPoorRecallIsNoSwitch(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 3)
	b := w.stepped(m, f)
	f.recall.Store(50)
	at := time.Now()
	w.now = func() time.Time { return at }
	b.round()
	st, _ := b.Status(w.id())
	if set, _, _ := w.spaces(); set.Next != m.space || st.Phase != memory.PhaseWaiting || !strings.Contains(st.Err, "memctl namespace set team-a embedder.min_recall=0.50") {
		t.Errorf("%+v %+v", set, st)
	}
	less := "0.5"
	if _, err := w.writer.ChangeNamespace(context.Background(), "team-a", memory.PatchNamespace{Settings: map[string]*string{settings.MinRecall: &less}}); err != nil {
		t.Fatal(err)
	}
	f.err = errors.New("the sets are closed")
	at = at.Add(time.Hour)
	b.round()
	if st, _ := b.Status(w.id()); !strings.Contains(st.Err, "compare the spaces: the sets are closed") {
		t.Errorf("%+v", st)
	}
	f.err = nil
	at = at.Add(time.Hour)
	turn(t, b, 3, w.switchedTo(m.space))
}

// TestKeptSpaceIsDropped: by an event, when its time has come.
func TestKeptSpaceIsDropped(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 3)
	keep := "2h"
	if _, err := w.writer.ChangeNamespace(context.Background(), "team-a", memory.PatchNamespace{Settings: map[string]*string{settings.KeepOld: &keep}}); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	w.now = func() time.Time { return at }
	b := w.stepped(m, f)
	turn(t, b, 3, w.switchedTo(m.space))
	old, _, count := w.spaces()
	at = at.Add(2*time.Hour - time.Second)
	if wait := w.writer.dropKept(context.Background()); wait > 2*time.Second || count(old.Kept[0].Space) != 3 {
		t.Errorf("wait of %s, %d records", wait, count(old.Kept[0].Space))
	}
	at = at.Add(time.Second + time.Millisecond)
	refuse := true
	w.refuse = func() *memory.Error {
		if refuse {
			return memory.Errorf(memory.CodeNoSpace, "the disk is full")
		}
		return nil
	}
	w.stop()
	w.mustStart()
	w.writer.dropKept(context.Background())
	if set, _, _ := w.spaces(); len(set.Kept) != 1 {
		t.Error("it was dropped on a full disk")
	}
	refuse = false
	stop := w.work(m, f)
	await(t, "it to be dropped", func() bool { set, _, _ := w.spaces(); return len(set.Kept) == 0 })
	stop()
	if n := count(old.Kept[0].Space); n != 0 {
		t.Errorf("%d of its vectors are left", n)
	}
	w.refold()
}

// TestBackWithinTheTime: what the old space has is not made again, and a model
// of this process is not asked for what derivation gives.
func TestBackWithinTheTime(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 10)
	b := w.stepped(m, f)
	old, _, count := w.spaces()
	turn(t, b, 3, w.switchedTo(m.space))
	w.capture("team-a", memory.Capture{Text: "while the model outside was in use"})
	attached := w.attached()
	m.down.Store(true) // nobody needs it any more
	w.build(old.Space, true)
	w.capture("team-a", memory.Capture{Text: "on the way back"})
	turn(t, b, 3, w.switchedTo(old.Space))
	_, info, _ := w.spaces()
	if n := w.attached() - attached; n != 1 || count(old.Space) != info.Records || info.Pending != 0 {
		t.Errorf("%d vectors attached, %d of %d, %d pending", n, count(old.Space), info.Records, info.Pending)
	}
	w.refold()
}

// TestGoneMidway: a namespace that is deleted, and a change that is cancelled,
// end the job.
func TestGoneMidway(t *testing.T) {
	for _, how := range []string{"deleted", "cancelled"} {
		t.Run(how, func(t *testing.T) {
			m, f := newModel(), good()
			w := switching(t, m, batchVersions+1)
			b := w.stepped(m, f)
			b.round()
			id := w.id()
			var err error
			if how == "deleted" {
				_, _, err = w.writer.DeleteNamespace(context.Background(), "team-a")
			} else {
				err = w.writer.CancelSpace(context.Background(), "team-a")
			}
			if err != nil {
				t.Fatal(err)
			}
			b.round()
			if _, ok := b.Status(id); ok || f.calls.Load() != 0 {
				t.Errorf("the job goes on: %v, %d comparisons", ok, f.calls.Load())
			}
			if how == "cancelled" {
				if _, _, count := w.spaces(); count(m.space) != 0 {
					t.Error("vectors are left")
				}
			}
			w.refold()
		})
	}
}

// TestSpaceEventThatWasNotWritten: what derivation knows of spaces is what the
// log says, also where an append failed.
func TestSpaceEventThatWasNotWritten(t *testing.T) {
	for _, fault := range []eventlogtest.Fault{eventlogtest.FaultRefuse, eventlogtest.FaultUnknownLost, eventlogtest.FaultUnknownStored, eventlogtest.FaultLate,
		eventlogtest.FaultSecondWriter, eventlogtest.FaultNoSpace, eventlogtest.FaultTwice, eventlogtest.FaultWrongAck, eventlogtest.FaultBlind} {
		t.Run(string(fault), func(t *testing.T) {
			stream := eventlogtest.NewFake()
			stream.SecondWriter(func(uint64) []byte { return []byte("not a frame") })
			w := started(t, stream)
			local, _, count := w.spaces()
			outside := newModel().space
			for _, typ := range []events.Type{events.TypeSpaceBuilding, events.TypeSpaceSwitched, events.TypeSpaceDropped} {
				space := outside
				if typ == events.TypeSpaceDropped {
					space = local.Space
				}
				stream.Inject(fault)
				_, err := w.writer.spaceEvent(context.Background(), typ, w.id(), space, nil)
				before := count(local.Space)
				w.capture("team-a", memory.Capture{Text: "after " + typ.String()})
				set, _, _ := w.spaces()
				if derived := count(local.Space) - before; (derived == 1) != (set.Space == local.Space) {
					t.Errorf("%s: %v, the current space is %s, and %d derived", typ, err, set.Space, derived)
				}
				w.refold()
				// What was refused is said again.
				if _, err := w.writer.spaceEvent(context.Background(), typ, w.id(), space, nil); err != nil {
					t.Errorf("%s again: %v", typ, err)
				}
				w.refold()
			}
			if set, _, _ := w.spaces(); set.Space != outside || set.IsBuilding() || len(set.Kept) != 0 {
				t.Errorf("%+v", set)
			}
		})
	}
}
