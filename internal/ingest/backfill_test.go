package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestSearchableWaitsForVectors(t *testing.T) {
	m := newModel()
	w := external(t, m)
	w.work(m, good())
	resp, err := w.writer.Capture(context.Background(), "team-a", []Item{
		{Capture: memory.Capture{Agent: "a", Text: "one"}}, {Capture: memory.Capture{Agent: "a", Text: ""}}, {Capture: memory.Capture{Agent: "a", Text: "two"}},
	}, memory.WaitSearchable)
	if err != nil || resp.Vectors != "" || resp.Results[0].Vectors != "" || resp.Results[2].Status != memory.StatusCreated {
		t.Fatalf("%+v %v", resp, err)
	}
	if w.pending() != 0 {
		t.Error("vectors are pending")
	}
	v := w.state.View()
	h, _ := w.find(v, resp.Results[0].RecordID)
	n := 0
	key := settings.Resolve(map[string]string{settings.EmbedderSpace: settings.EncodeSpace(m.space)}).SpaceKey()
	if err := v.Vectors(h.Partition, key, 0, func(uint32, projections.VectorRow) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("%d vectors are stored, %v", n, err)
	}
	v.Close()
	w.refold()
}

func TestEmbedderDown(t *testing.T) {
	m := newModel()
	w := external(t, m)
	m.down.Store(true)
	w.work(m, good())
	// Time enough to be applied, and none would be enough to be searchable.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := w.writer.Capture(ctx, "team-a", []Item{{Capture: memory.Capture{Agent: "a", ID: "k", Text: "one"}}}, memory.WaitSearchable)
	if err != nil || r.Vectors != "pending" || r.Results[0].Status != memory.StatusCreated || r.Results[0].Vectors != "pending" {
		t.Errorf("%+v %v", r, err)
	}
	await(t, "the embedder to be tried", func() bool { return m.calls.Load() > 0 })
	w.capture("team-a", memory.Capture{Text: "captures go on"})
	if w.pending() != 2 {
		t.Errorf("%d pending", w.pending())
	}
	m.down.Store(false)
	resp, err := w.writer.Capture(context.Background(), "team-a", []Item{{Capture: memory.Capture{Agent: "a", ID: "k", Text: "one"}}}, memory.WaitSearchable)
	if err != nil || resp.Vectors != "" || resp.Results[0].Status != memory.StatusDuplicate {
		t.Errorf("%+v %v", resp, err)
	}
	await(t, "the rest to be attached", func() bool { return w.pending() == 0 })
	w.refold()
}

// A batch of texts without a vector in front kept all others from theirs.
func TestBadTextsDoNotBlockOthers(t *testing.T) {
	m := newModel()
	w := external(t, m)
	var items []memory.Capture
	for i := range batchVersions + 10 {
		items = append(items, memory.Capture{Text: fmt.Sprint("bad ", i)})
	}
	for i := range batchVersions + 5 {
		items = append(items, memory.Capture{Text: fmt.Sprint("good ", i)})
	}
	w.batch("team-a", items...)
	b := w.stepped(m, good())
	for rounds := 0; b.round() == 0; rounds++ {
		if rounds > 10 {
			t.Fatal("it spins")
		}
	}
	if n := w.pending(); n != batchVersions+10 {
		t.Errorf("%d pending, want the bad ones: %v", n, b.errors())
	}
	calls := m.calls.Load()
	if rest := b.round(); rest != lookAgain || m.calls.Load() != calls {
		t.Errorf("bad texts are tried again: rest of %s, %v", rest, b.errors())
	}
}

// An embedder that gives nothing made the attacher write for ever. It is an error
// of the embedder now, and vectors that the fold would not have are not made again.
func TestUselessVectorsAreNotTriedForEver(t *testing.T) {
	m := newModel()
	m.short.Store(true)
	w := external(t, m)
	at := time.Now()
	w.now = func() time.Time { return at }
	var items []memory.Capture
	for i := range batchVersions {
		items = append(items, memory.Capture{Text: fmt.Sprint("text ", i)})
	}
	w.batch("team-a", items...)
	b := w.stepped(m, good())
	if rest := b.round(); rest != retrySoon || w.attached() != 0 || !strings.Contains(b.errors()["team-a"], "0 vectors for 64 texts") {
		t.Errorf("rest of %s, %d events, %v", rest, w.attached(), b.errors())
	}
	m.short.Store(false)
	m.wide.Store(true)
	at = at.Add(retrySoon)
	for i := 0; b.round() == 0; i++ {
		if i > 5 {
			t.Fatal("it spins")
		}
	}
	if n := w.pending(); n != batchVersions || w.attached() != batchVersions {
		t.Errorf("%d pending, %d events", n, w.attached())
	}
	if rest := b.round(); rest != lookAgain || w.attached() != batchVersions {
		t.Errorf("they are made again: rest of %s, %d events", rest, w.attached())
	}
}

// What was embedded before the embedder went away is not thrown away.
func TestEmbedderGoesAwayHalfWay(t *testing.T) {
	m := newModel()
	w := external(t, m)
	at := time.Now()
	w.now = func() time.Time { return at }
	// The bad one has each of them asked for alone.
	w.batch("team-a", memory.Capture{Text: "one"}, memory.Capture{Text: "bad two"}, memory.Capture{Text: "three"})
	b := w.stepped(&flakyModel{model: m, left: 3}, good())
	b.round()
	if n := w.pending(); n != 2 || !strings.Contains(b.errors()["team-a"], "refused") {
		t.Errorf("%d pending, %v", n, b.errors())
	}
	m.away.Store(true)
	b.source = m
	at = at.Add(retrySoon)
	if rest := b.round(); rest != 2*retrySoon || len(b.errors()) != 1 {
		t.Errorf("rest of %s, %v", rest, b.errors())
	}
	m.away.Store(false)
	at = at.Add(2 * retrySoon)
	if b.round(); w.pending() != 1 || len(b.errors()) != 0 {
		t.Errorf("%v, %d pending", b.errors(), w.pending())
	}
	w.refold()
}

type flakyModel struct {
	*model
	left int
}

func (f *flakyModel) For(context.Context, embed.Space) (embed.Embedder, error) { return f, nil }

func (f *flakyModel) Embed(ctx context.Context, p embed.Purpose, texts []string) ([][]float32, error) {
	if f.left == 0 {
		return nil, errDown
	}
	f.left--
	return f.model.Embed(ctx, p, texts)
}

func TestWhatChangedMeanwhileIsLeftAlone(t *testing.T) {
	m := newModel()
	w := external(t, m)
	r := w.capture("team-a", memory.Capture{Text: "one"})
	erased := w.capture("team-a", memory.Capture{Text: "about Ada", Subject: "ada"})
	secret := w.capture("team-a", memory.Capture{Agent: "agent-2", Text: "private", Scope: memory.ScopeAgent})
	v := w.state.View()
	h, _ := w.find(v, erased.RecordID)
	doc, _, _ := v.Doc(h.Partition, h.Doc)
	env, _, _ := v.Envelope(doc.At)
	v.Close()
	if err := w.keys.Destroy(env.Key); err != nil {
		t.Fatal(err)
	}
	b := w.stepped(m, good())
	b.plan(w.writer)
	s := b.inOrder()[0]
	j := s.jobs[w.id()]
	if wanted, err := s.begin(j); err != nil || !wanted || j.space() != m.space {
		t.Fatalf("%v %v %s", wanted, err, j.space())
	}
	taken, err := s.collect(j)
	if err != nil || len(taken.versions) != 3 || !taken.end {
		t.Fatalf("%+v %v", taken, err)
	}
	// The record is revised between reading it and writing its vectors.
	text := "two"
	if _, err := w.writer.Revise(context.Background(), "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, 0, ""); err != nil {
		t.Fatal(err)
	}
	drafts, err := s.embed(context.Background(), m.space, taken.versions)
	if err = errors.Join(err, s.write(context.Background(), j, taken.versions, drafts)); err != nil {
		t.Fatal(err)
	}
	if n := w.pending(); n != 2 { // the new version and the erased one
		t.Errorf("%d pending", n)
	}
	if b.round(); w.pending() != 1 || len(b.errors()) != 0 {
		t.Errorf("%v, %d pending", b.errors(), w.pending())
	}
	if got, _ := w.text(secret.RecordID); got != "private" {
		t.Errorf("%q", got)
	}
	if n := w.attached(); n != 2 {
		t.Errorf("%d events were written", n)
	}
}

func TestWorkEndsPromptly(t *testing.T) {
	m := newModel()
	m.hang = make(chan struct{})
	hang := m.hang
	w := external(t, m)
	w.capture("team-a", memory.Capture{Text: "one"})
	stop := w.work(m, good())
	<-hang
	stop()
	// While it waits between tries, too.
	m.down.Store(true)
	calls := m.calls.Load()
	stop = w.work(m, good())
	await(t, "a try", func() bool { return m.calls.Load() > calls })
	stop()
	// And while its event waits in the queue.
	m.down.Store(false)
	resume, err := w.writer.Pause(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	stop = w.work(m, good())
	await(t, "the event to be queued", func() bool { n, _ := w.writer.QueueDepth(); return n == 1 })
	stop()
	resume()
	await(t, "it to be applied", func() bool { return w.pending() == 0 })
}

// TestFailingEmbedderHoldsUpNobodyElse: whether it refuses or never answers, the
// namespaces of other embedders have their vectors.
func TestFailingEmbedderHoldsUpNobodyElse(t *testing.T) {
	broken, sound := named("broken"), named("sound")
	w := external(t, broken)
	w.externally("team-b", sound)
	w.capture("team-a", memory.Capture{Text: "one"})
	w.capture("team-b", memory.Capture{Text: "two"})
	at := time.Now()
	w.now = func() time.Time { return at }
	broken.down.Store(true)
	b := w.stepped(models{broken, sound}, good())
	b.round()
	if a, bb := w.pendingIn("team-a"), w.pendingIn("team-b"); a != 1 || bb != 0 || len(b.errors()) != 1 {
		t.Errorf("%d and %d pending, %v", a, bb, b.errors())
	}
	// The back-off of one is none of the other.
	w.capture("team-b", memory.Capture{Text: "three"})
	calls := broken.calls.Load()
	if b.round(); w.pendingIn("team-b") != 0 || broken.calls.Load() != calls {
		t.Errorf("%d pending, %d calls", w.pendingIn("team-b"), broken.calls.Load()-calls)
	}

	broken.down.Store(false)
	broken.hang = make(chan struct{})
	hang := broken.hang
	w.work(models{broken, sound}, good())
	<-hang
	resp, err := w.writer.Capture(context.Background(), "team-b", []Item{{Capture: memory.Capture{Agent: "a", Text: "four"}}}, memory.WaitSearchable)
	if err != nil || resp.Vectors != "" || w.pendingIn("team-a") != 1 {
		t.Errorf("%+v %v, %d pending", resp, err, w.pendingIn("team-a"))
	}
}

// TestDeadEmbedderIsAskedOnceATime: not once for each of its namespaces.
func TestDeadEmbedderIsAskedOnceATime(t *testing.T) {
	m := newModel()
	w := external(t, m)
	w.externally("team-b", m)
	w.externally("team-c", m)
	for _, ns := range []string{"team-a", "team-b", "team-c"} {
		w.capture(ns, memory.Capture{Text: "one"})
	}
	at := time.Now()
	w.now = func() time.Time { return at }
	m.down.Store(true)
	b := w.stepped(m, good())
	for i, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		rest := b.round()
		if m.calls.Load() != int64(i+1) || rest != pause*time.Second || len(b.errors()) != 3 {
			t.Errorf("try %d: %d calls, next after %s, %v", i, m.calls.Load(), rest, b.errors())
		}
		at = at.Add(rest)
	}
	m.down.Store(false)
	if b.round(); w.pending() != 0 {
		t.Errorf("%d pending, %v", w.pending(), b.errors())
	}
}

// TestTextThatBreaksTheEmbedder: what one namespace sends makes the embedder fail
// each time, and the others that use it are served in between.
func TestTextThatBreaksTheEmbedder(t *testing.T) {
	m := newModel()
	w := external(t, m)
	w.externally("team-b", m)
	at := time.Now()
	w.now = func() time.Time { return at }
	b := w.stepped(m, good())
	w.capture("team-a", memory.Capture{Text: "poison"})
	for i := range 5 {
		w.capture("team-b", memory.Capture{Text: fmt.Sprint("text ", i)})
		for tries := 0; w.pendingIn("team-b") > 0; tries++ {
			at = at.Add(b.round())
			if tries == 3 {
				t.Fatalf("%d: it is not served: %v", i, b.errors())
			}
		}
	}
	if n := w.pendingIn("team-a"); n != 1 {
		t.Errorf("%d pending", n)
	}
}
