package ingest

import (
	"context"
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
	w := started(t, eventlogtest.NewFake())
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

// TestSwitchesBesideWriters: writers, revisions and forgets go on while spaces
// change under random faults of the log; afterwards nobody lacks a vector.
func TestSwitchesBesideWriters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m, f := newModel(), good()
	stream := eventlogtest.NewFake()
	w := started(t, stream)
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
