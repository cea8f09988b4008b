package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// found is what a comparison answers.
type found struct {
	recall atomic.Int64 // in hundredths
	calls  atomic.Int64
	err    error
	poor   events.ID // the namespace in which nothing is found
}

func (f *found) compare(_ context.Context, ns events.ID, _, _ embed.Space) (memory.SpaceComparison, error) {
	f.calls.Add(1)
	if ns == f.poor {
		return memory.SpaceComparison{Sample: 5}, f.err
	}
	return memory.SpaceComparison{Sample: 5, Recall: float64(f.recall.Load()) / 100, Agreement: 0.5}, f.err
}

func good() *found {
	f := &found{}
	f.recall.Store(100)
	return f
}

// switching is a world whose namespace has n records and is on its way from
// the built-in model to m's.
func switching(t *testing.T, m *model, n int) *world {
	t.Helper()
	w := newWorld(t, eventlogtest.NewFake())
	w.mustStart()
	w.namespace("team-a")
	for i := range n {
		w.capture("team-a", memory.Capture{Text: fmt.Sprintf("memory %d", i), ID: fmt.Sprint(i)})
	}
	w.build(m.space, true)
	return w
}

func (w *world) build(space embed.Space, begins bool) {
	w.t.Helper()
	if began, err := w.writer.BuildSpace(context.Background(), "team-a", space); err != nil || began != begins {
		w.t.Fatalf("began %v, %v", began, err)
	}
}

func (w *world) spaces() (*settings.Effective, projections.Totals, func(embed.Space) uint64) {
	w.t.Helper()
	return w.spacesOf("team-a")
}

// spacesOf is what a namespace's settings and rows say.
func (w *world) spacesOf(namespace string) (*settings.Effective, projections.Totals, func(embed.Space) uint64) {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	info, ok := v.Namespace(namespace)
	if !ok {
		w.t.Fatal("the namespace is gone")
	}
	set, err := settings.NewCache(w.keys).Of(v, info)
	if err != nil {
		w.t.Fatal(err)
	}
	return set, v.NamespaceTotals(info.ID), func(s embed.Space) uint64 {
		v := w.state.View()
		defer v.Close()
		n, err := v.SpaceRecords(info.ID, settings.KeyOf(s))
		if err != nil {
			w.t.Fatal(err)
		}
		return n
	}
}

// turn makes rounds until cond holds.
func turn(t *testing.T, b *stepped, rounds int, cond func() bool) {
	t.Helper()
	for range rounds {
		if cond() {
			return
		}
		b.round()
	}
	if !cond() {
		t.Fatalf("%d rounds did not do: %v", rounds, b.errors())
	}
}

func (w *world) switchedTo(space embed.Space) func() bool { return w.switched("team-a", space) }

func (w *world) switched(namespace string, space embed.Space) func() bool {
	return func() bool { set, _, _ := w.spacesOf(namespace); return set.Space == space }
}

func TestSwitch(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 3*batchVersions)
	w.capture("team-a", memory.Capture{Text: "captured meanwhile"})
	b := w.stepped(m, f)
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

func (w *world) id() events.ID { return w.idOf("team-a") }

func (w *world) idOf(namespace string) events.ID {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	info, ok := v.Namespace(namespace)
	if !ok {
		w.t.Fatal("the namespace is gone")
	}
	return info.ID
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

// TestProviderDiesMidway: it is told what and when, tried again, and goes on
// where it stopped, also on the next leader.
func TestProviderDiesMidway(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 2*batchVersions+5)
	b := w.stepped(m, f)
	b.round()
	m.down.Store(true)
	at := time.Now()
	w.now = func() time.Time { return at }
	b.round()
	st, _ := b.Status(w.id())
	if st.Phase != memory.PhaseWaiting || !strings.Contains(st.Err, "refused") || !st.ErrAt.Equal(at) || !st.RetryAt.Equal(at.Add(retrySoon)) {
		t.Errorf("%+v", st)
	}
	calls := m.calls.Load()
	b.round() // before its time
	if m.calls.Load() != calls {
		t.Error("it was tried again at once")
	}
	for i := range 10 {
		at = at.Add(time.Hour)
		b.round()
		if st, _ := b.Status(w.id()); !st.RetryAt.Equal(at.Add(min(retrySoon<<(i+1), retryLate))) {
			t.Errorf("try %d: next after %s", i, st.RetryAt.Sub(at))
		}
	}
	w.capture("team-a", memory.Capture{Text: "captures go on"})
	_, _, count := w.spaces()
	if n := count(m.space); n != batchVersions {
		t.Errorf("%d records", n)
	}
	m.down.Store(false)
	m.away.Store(true) // not even opened, by another leader
	w.stop()
	w.mustStart()
	b = w.stepped(m, f)
	b.round()
	if st, _ := b.Status(w.id()); st.Phase != memory.PhaseWaiting {
		t.Errorf("%+v", st)
	}
	m.away.Store(false)
	before := m.calls.Load()
	at = at.Add(time.Hour)
	turn(t, b, 10, w.switchedTo(m.space))
	if got := m.calls.Load() - before; got > 3 { // two batches and what came meanwhile
		t.Errorf("%d requests for the rest", got)
	}
	if _, info, _ := w.spaces(); count(m.space) != info.Records {
		t.Errorf("%d of %d", count(m.space), info.Records)
	}
	w.refold()
}

// TestNothingToEmbed: versions without a vector hold nobody up, and are counted.
func TestNothingToEmbed(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 3)
	w.capture("team-a", memory.Capture{Text: "a bad one"})
	secret := w.capture("team-a", memory.Capture{Text: "private", Subject: "eve"})
	v := w.state.View()
	h, _ := w.find(v, secret.RecordID)
	doc, _, _ := v.Doc(h.Partition, h.Doc)
	env, _, _ := v.Envelope(doc.At)
	v.Close()
	if err := w.keys.Destroy(env.Key); err != nil {
		t.Fatal(err)
	}
	b := w.stepped(m, f)
	turn(t, b, 5, w.switchedTo(m.space))
	set, info, count := w.spaces()
	if count(m.space) != 3 || info.Records != 5 || set.Compared.NewVectors != 3 {
		t.Errorf("%d of %d, %+v", count(m.space), info.Records, set.Compared)
	}
}

// TestLongTextsMakeSmallBatches: a batch is bounded by its text, too, and none
// is left out at its end.
func TestLongTextsMakeSmallBatches(t *testing.T) {
	m, f := newModel(), good()
	w := newWorld(t, eventlogtest.NewFake())
	w.mustStart()
	w.namespace("team-a")
	for i := range 9 {
		w.capture("team-a", memory.Capture{Text: fmt.Sprint(i, strings.Repeat(" words and more", batchBytes/3/15))})
	}
	w.build(m.space, true)
	b := w.stepped(m, f)
	_, _, count := w.spaces()
	for round, want := range []uint64{4, 8} { // each text is a little less than a third
		b.round()
		if got := count(m.space); got != want {
			t.Errorf("round %d: %d records, want %d", round, got, want)
		}
	}
	turn(t, b, 2, w.switchedTo(m.space))
	if got := count(m.space); got != 9 {
		t.Errorf("%d records", got)
	}
	w.refold()
}

// TestPoorRecallIsNoSwitch: the namespace stays with what it has until a search
// of the new space finds what is near.
func TestPoorRecallIsNoSwitch(t *testing.T) {
	m, f := newModel(), good()
	w := switching(t, m, 3)
	f.recall.Store(50)
	b := w.stepped(m, f)
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

// attached counts the namespace's vectors.attached events.
func (w *world) attached() (n int) {
	for _, row := range w.audit("team-a") {
		if row.Type == events.TypeVectorsAttached {
			n++
		}
	}
	return n
}

// TestAttachedVectorsAreTheDerivedOnes: a built-in space is the same whether
// filled afterwards or derived at once.
func TestAttachedVectorsAreTheDerivedOnes(t *testing.T) {
	m, f := newModel(), good()
	w := external(t, m)
	local := settings.Resolve(map[string]string{settings.EmbedderSpace: builtinSpace(t)}).Space
	w.capture("team-a", memory.Capture{Text: "the same words"})
	w.build(local, true)
	w.capture("team-a", memory.Capture{Text: "the same words"})
	turn(t, w.stepped(m, f), 3, w.switchedTo(local))
	v := w.state.View()
	defer v.Close()
	var plain []string
	err := v.Vectors(0, settings.KeyOf(local), 0, func(_ uint32, r projections.VectorRow) error {
		plain = append(plain, string(r.Numbers))
		return nil
	})
	if err != nil || len(plain) != 2 || plain[0] != plain[1] {
		t.Errorf("%d vectors, %v, the same %v", len(plain), err, len(plain) == 2 && plain[0] == plain[1])
	}
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
				_, err = w.writer.DeleteNamespace(context.Background(), "team-a")
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

// TestTwoNamespacesSwitchAtATime: one provider that dies midway, and one space that
// is not found good enough, are the trouble of their namespace alone.
func TestTwoNamespacesSwitchAtATime(t *testing.T) {
	for _, how := range []string{"a provider dies", "a comparison fails"} {
		t.Run(how, func(t *testing.T) {
			first, second := named("first"), named("second")
			if how == "a comparison fails" {
				second = first // the same embedder for both
			}
			w := switching(t, first, batchVersions+5)
			w.namespace("team-b")
			for i := range batchVersions + 5 {
				w.capture("team-b", memory.Capture{Text: fmt.Sprintf("memory %d", i)})
			}
			if began, err := w.writer.BuildSpace(context.Background(), "team-b", second.space); err != nil || !began {
				t.Fatal(began, err)
			}
			at := time.Now()
			w.now = func() time.Time { return at }
			f := good()
			b := w.stepped(models{first, second}, f)
			b.round()
			for _, ns := range []string{"team-a", "team-b"} {
				_, _, count := w.spacesOf(ns)
				if st, ok := b.Status(w.idOf(ns)); !ok || st.Phase != memory.PhaseFilling || count(st.Space) != batchVersions {
					t.Errorf("%s: %+v", ns, st)
				}
			}
			if how == "a provider dies" {
				first.down.Store(true)
			} else {
				f.poor = w.id()
			}
			turn(t, b, 3, w.switched("team-b", second.space))
			if st, ok := b.Status(w.id()); !ok || st.Phase != memory.PhaseWaiting || st.Space != first.space || !st.RetryAt.After(at) {
				t.Errorf("%+v %v", st, ok)
			}
			first.down.Store(false)
			f.poor = events.ID{}
			at = at.Add(retryLate)
			turn(t, b, 3, w.switchedTo(first.space))
			for _, ns := range []string{"team-a", "team-b"} {
				if set, totals, count := w.spacesOf(ns); count(set.Space) != totals.Records || totals.Pending != 0 {
					t.Errorf("%s: %+v", ns, totals)
				}
			}
			w.refold()
		})
	}
}

// TestBuildingLeavesRoomForWriters: it rests as long as it worked, longer while
// writers queue, and never long. Records that are waited for have no rest.
func TestBuildingLeavesRoomForWriters(t *testing.T) {
	m := newModel()
	w := switching(t, m, 1)
	s := &spaceWork{target: target{building: true}, writer: w.writer}
	check := func(what string, took, want time.Duration) {
		t.Helper()
		if got := s.rest(took); got != want {
			t.Errorf("%s: a rest of %s after %s, want %s", what, got, took, want)
		}
	}
	check("idle", 100*time.Millisecond, 100*time.Millisecond)
	check("at once", 0, restMin)
	check("long", time.Minute, restMax)
	resume, err := w.writer.Pause(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() { _, _ = w.try("team-a", memory.Capture{Text: "one"}) })
	await(t, "it to be queued", func() bool { n, _ := w.writer.QueueDepth(); return n == 1 })
	check("busy", 100*time.Millisecond, 400*time.Millisecond)
	s.building = false
	check("the current space", 100*time.Millisecond, 0)
	resume()
	writing.Wait()
}

// TestSpaceEventThatWasNotWritten: what derivation knows of spaces is what the
// log says, also where an append failed.
func TestSpaceEventThatWasNotWritten(t *testing.T) {
	for _, fault := range []eventlogtest.Fault{eventlogtest.FaultRefuse, eventlogtest.FaultUnknownLost, eventlogtest.FaultUnknownStored, eventlogtest.FaultLate,
		eventlogtest.FaultSecondWriter, eventlogtest.FaultNoSpace, eventlogtest.FaultTwice, eventlogtest.FaultWrongAck, eventlogtest.FaultBlind} {
		t.Run(string(fault), func(t *testing.T) {
			stream := eventlogtest.NewFake()
			stream.SecondWriter(func(uint64) []byte { return []byte("not a frame") })
			w := newWorld(t, stream)
			w.mustStart()
			w.namespace("team-a")
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

// TestSwitchesBesideWriters: writers, revisions and forgets go on while spaces
// change under random faults of the log; afterwards nobody lacks a vector.
func TestSwitchesBesideWriters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m, f := newModel(), good()
	stream := eventlogtest.NewFake()
	w := newWorld(t, stream)
	w.mustStart()
	w.namespace("team-a")
	local, _, count := w.spaces()
	end := w.work(m, f)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var failed atomic.Int64
	for g := range 3 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			var ids []string
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r, err := w.try("team-a", memory.Capture{Agent: "agent-1", Text: fmt.Sprintf("memory %d of %d", i, g), ID: fmt.Sprintf("%d-%d", g, i)})
				if err != nil {
					failed.Add(1)
					continue
				}
				ids = append(ids, r.RecordID)
				id := ids[rnd.IntN(len(ids))]
				switch rnd.IntN(6) {
				case 0:
					text := fmt.Sprintf("revised %d", i)
					_, _ = w.writer.Revise(context.Background(), "team-a", "agent-1", id, memory.Revision{Text: &text}, 0, "")
				case 1:
					_, _ = w.writer.Forget(context.Background(), "team-a", "agent-1", id, 0)
				}
			}
		})
	}
	for i, space := range []embed.Space{m.space, local.Space, m.space, local.Space} {
		stream.Random(rand.New(rand.NewPCG(seed, 100+uint64(i))), 0.02)
		await(t, "a switch to begin", func() bool {
			began, err := w.writer.BuildSpace(context.Background(), "team-a", space)
			set, _, _ := w.spaces()
			return err == nil && began || set.Next == space || set.Space == space
		})
		stream.Random(nil, 0)
		await(t, "the switch to "+space.String(), w.switchedTo(space))
	}
	close(stop)
	wg.Wait()
	await(t, "the last vectors", func() bool { return w.pending() == 0 })
	end()
	_, info, _ := w.spaces()
	if count(local.Space) != info.Records {
		t.Errorf("%d of %d records have vectors", count(local.Space), info.Records)
	}
	t.Logf("%d records, %d requests failed", info.Records, failed.Load())
	w.refold()
}
