package ingest

import (
	"context"
	"errors"
	"fmt"
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

// model is an external embedder that can be away, refuse texts and hang.
type model struct {
	space embed.Space
	down  atomic.Bool
	away  atomic.Bool // the source itself fails
	short atomic.Bool // gives no vectors at all
	hang  chan struct{}
	calls atomic.Int64
}

var errDown = errors.New("connection refused")

func (m *model) For(context.Context, embed.Space) (embed.Embedder, error) {
	if m.away.Load() {
		return nil, errDown
	}
	return m, nil
}

func (m *model) Space() embed.Space { return m.space }
func (m *model) Close() error       { return nil }

func (m *model) Embed(ctx context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	m.calls.Add(1)
	if m.hang != nil {
		close(m.hang)
		m.hang = nil
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if m.down.Load() {
		return nil, errDown
	}
	var out [][]float32
	for _, t := range texts {
		if strings.Contains(t, "bad") {
			return nil, fmt.Errorf("text: %w", embed.ErrBadInput)
		}
		v := make([]float32, m.space.Dimensions)
		v[len(t)%len(v)] = 1
		out = append(out, v)
	}
	if m.short.Load() {
		return nil, nil
	}
	return out, nil
}

func newModel() *model {
	return &model{space: embed.Space{Provider: embed.ProviderOpenAI, Model: "fake", Dimensions: 8, Normalised: true, Version: 1}}
}

func external(t *testing.T, m *model) *world {
	t.Helper()
	w := newWorld(t, eventlogtest.NewFake())
	w.mustStart()
	if _, err := w.writer.CreateNamespace(context.Background(), "team-a", nil, settings.EncodeSpace(m.space)); err != nil {
		t.Fatal(err)
	}
	return w
}

// stepped is an attacher without its goroutine: the test makes the rounds.
func stepped(w *world, m *model) *Attacher {
	return &Attacher{writer: w.writer, source: m, wake: make(chan struct{}, 1), unembeddable: map[projections.PendingDoc]bool{}, spaces: map[events.ID]embed.Space{}}
}

func (w *world) pending() uint64 {
	v := w.state.View()
	defer v.Close()
	_, n, err := v.Totals()
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestSearchableWaitsForVectors(t *testing.T) {
	m := newModel()
	w := external(t, m)
	a := NewAttacher(w.writer, m)
	defer a.Close()
	wake := func() { a.Wake() }
	w.wake.Store(&wake)
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
	a := NewAttacher(w.writer, m)
	defer a.Close()
	wake := func() { a.Wake() }
	w.wake.Store(&wake)
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
	for i := range attachBatch + 10 {
		items = append(items, memory.Capture{Text: fmt.Sprint("bad ", i)})
	}
	for i := range attachBatch + 5 {
		items = append(items, memory.Capture{Text: fmt.Sprint("good ", i)})
	}
	w.batch("team-a", items...)
	a := stepped(w, m)
	rounds := 0
	for more := true; more; rounds++ {
		var err error
		if more, err = a.round(context.Background()); err != nil {
			t.Fatal(err)
		}
		if rounds > 10 {
			t.Fatal("it spins")
		}
	}
	if n := w.pending(); n != attachBatch+10 {
		t.Errorf("%d pending, want the bad ones", n)
	}
	calls := m.calls.Load()
	if more, err := a.round(context.Background()); more || err != nil || m.calls.Load() != calls {
		t.Errorf("bad texts are tried again: %v %v", more, err)
	}
}

// An embedder that gives nothing made the attacher write for ever.
func TestUselessVectorsAreNotTriedForEver(t *testing.T) {
	m := newModel()
	m.short.Store(true)
	w := external(t, m)
	var items []memory.Capture
	for i := range attachBatch {
		items = append(items, memory.Capture{Text: fmt.Sprint("text ", i)})
	}
	w.batch("team-a", items...)
	a := stepped(w, m)
	for i := 0; ; i++ {
		more, err := a.round(context.Background())
		if err != nil || i > 5 {
			t.Fatal(i, err)
		}
		if !more {
			break
		}
	}
	if n := w.pending(); n != attachBatch {
		t.Errorf("%d pending", n)
	}
}

// What was embedded before the embedder went away is not thrown away.
func TestEmbedderGoesAwayHalfWay(t *testing.T) {
	m := newModel()
	w := external(t, m)
	w.batch("team-a", memory.Capture{Text: "one"}, memory.Capture{Text: "two"}, memory.Capture{Text: "three"})
	a := stepped(w, &model{space: m.space})
	flaky := &flakyModel{model: m, left: 2}
	a.source = flaky
	if _, err := a.round(context.Background()); !errors.Is(err, errDown) {
		t.Fatal(err)
	}
	if n := w.pending(); n != 1 {
		t.Errorf("%d pending", n)
	}
	m.away.Store(true)
	a.source = m
	if _, err := a.round(context.Background()); !errors.Is(err, errDown) {
		t.Error(err)
	}
	m.away.Store(false)
	if _, err := a.round(context.Background()); err != nil || w.pending() != 0 {
		t.Errorf("%v, %d pending", err, w.pending())
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

func TestAttacherLeavesAloneWhatChanged(t *testing.T) {
	m := newModel()
	w := external(t, m)
	r := w.capture("team-a", memory.Capture{Text: "one"})
	erased := w.capture("team-a", memory.Capture{Text: "about Ada", Subject: "ada"})
	secret := w.capture("team-a", memory.Capture{Agent: "agent-2", Text: "private", Scope: memory.ScopeAgent})
	v := w.state.View()
	h, _ := w.find(v, erased.RecordID)
	doc, _, _ := v.Doc(h.Partition, h.Doc)
	env, _, _ := v.Envelope(doc.At)
	ns, _, _ := v.Namespace("team-a")
	v.Close()
	if err := w.keys.Destroy(env.Key); err != nil {
		t.Fatal(err)
	}
	a := stepped(w, m)
	work, space, err := a.collect(ns)
	if err != nil || space != m.space || len(work) != 3 {
		t.Fatalf("%d %v %v", len(work), space, err)
	}
	// The record is revised between reading it and writing its vectors.
	text := "two"
	if _, err := w.writer.Revise(context.Background(), "team-a", "agent-1", r.RecordID, memory.Revision{Text: &text}, 0, ""); err != nil {
		t.Fatal(err)
	}
	var docs []projections.PendingDoc
	var drafts []*draft
	for _, p := range work {
		if d, err := w.writer.embedOne(context.Background(), m, space, p); err == nil {
			docs, drafts = append(docs, p.doc), append(drafts, d)
		}
	}
	if err := a.submit(context.Background(), ns.ID, docs, drafts); err != nil {
		t.Fatal(err)
	}
	if n := w.pending(); n != 2 { // the new version and the erased one
		t.Errorf("%d pending", n)
	}
	if _, err := a.round(context.Background()); err != nil || w.pending() != 1 {
		t.Errorf("%v, %d pending", err, w.pending())
	}
	if got, _ := w.text(secret.RecordID); got != "private" {
		t.Errorf("%q", got)
	}
	n := 0
	for _, row := range w.audit("team-a") {
		if row.Type == events.TypeVectorsAttached {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d events were written", n)
	}
}

func TestAttacherStopsPromptly(t *testing.T) {
	m := newModel()
	m.hang = make(chan struct{})
	hang := m.hang
	w := external(t, m)
	w.capture("team-a", memory.Capture{Text: "one"})
	a := NewAttacher(w.writer, m)
	<-hang
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(a.Close)
	}
	wg.Wait()
	// While it waits between tries, too.
	m.down.Store(true)
	calls := m.calls.Load()
	a = NewAttacher(w.writer, m)
	await(t, "a try", func() bool { return m.calls.Load() > calls })
	a.Close()
	// And while its event waits in the queue.
	m.down.Store(false)
	resume, err := w.writer.Pause(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	a = NewAttacher(w.writer, m)
	await(t, "the event to be queued", func() bool { n, _ := w.writer.QueueDepth(); return n == 1 })
	a.Close()
	resume()
	await(t, "it to be applied", func() bool { return w.pending() == 0 })
}
