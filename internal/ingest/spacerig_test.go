package ingest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
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
	wide  atomic.Bool // gives vectors of another size
	hang  chan struct{}
	calls atomic.Int64
}

var errDown = &embed.Error{Kind: embed.ErrUnavailable, Detail: "connection refused", Index: -1}

func (m *model) For(context.Context, embed.Space) (embed.Embedder, error) {
	if m.away.Load() {
		return nil, errDown
	}
	return m, nil
}

func (m *model) Space() embed.Space { return m.space }

func (m *model) Close() error { return nil }

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
		if strings.Contains(t, "poison") {
			return nil, errDown
		}
		v := make([]float32, m.space.Dimensions)
		if m.wide.Load() {
			v = make([]float32, 2*m.space.Dimensions)
		}
		v[len(t)%len(v)] = 1
		out = append(out, v)
	}
	if m.short.Load() {
		return nil, nil
	}
	return out, nil
}

func newModel() *model { return named("fake") }

func named(name string) *model {
	return &model{space: embed.Space{Provider: embed.ProviderOpenAI, Model: name, Dimensions: 8, Normalised: true, Version: 1}}
}

// models are several embedders behind one source.
type models []*model

func (all models) For(ctx context.Context, s embed.Space) (embed.Embedder, error) {
	for _, m := range all {
		if m.space == s {
			return m.For(ctx, s)
		}
	}
	return embed.Open(ctx, embed.Config{}.ForSpace(s), embed.Options{})
}

// external is a world whose namespace team-a has m for its embedder.
func external(t *testing.T, m *model) *world {
	t.Helper()
	w := newWorld(t, eventlogtest.NewFake())
	w.mustStart()
	w.externally("team-a", m)
	return w
}

func (w *world) externally(namespace string, m *model) {
	w.t.Helper()
	if _, err := w.writer.CreateNamespace(context.Background(), namespace, nil, settings.EncodeSpace(m.space)); err != nil {
		w.t.Fatal(err)
	}
}

// work runs a worker until the returned function is called, or the test ends.
func (w *world) work(source EmbedderSource, f *found) (stop func()) {
	b := NewBackfill(source, f.compare)
	wake := b.Wake
	w.wake.Store(&wake)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Work(ctx, w.writer) })
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return stop
}

// stepped is a worker without goroutines: the test makes the rounds.
type stepped struct {
	*Backfill
	writer *Writer
}

func (w *world) stepped(source EmbedderSource, f *found) *stepped {
	return &stepped{NewBackfill(source, f.compare), w.writer}
}

// round has each space take a round, current ones first, and returns when the next
// one is due.
func (b *stepped) round() time.Duration {
	b.plan(b.writer)
	rest := lookAgain
	for _, s := range b.inOrder() {
		rest = min(rest, s.round(context.Background()))
	}
	return rest
}

func (b *stepped) inOrder() []*spaceWork {
	return slices.SortedFunc(maps.Values(b.spaces), func(x, y *spaceWork) int {
		if x.building != y.building {
			return map[bool]int{true: 1, false: -1}[x.building]
		}
		return bytes.Compare(x.key[:], y.key[:])
	})
}

// errors are those that are waited out, by namespace.
func (b *stepped) errors() map[string]string {
	out := map[string]string{}
	for _, s := range b.inOrder() {
		for _, j := range s.jobs {
			if j.status.Phase == memory.PhaseWaiting {
				out[j.name] = j.status.Err
			}
		}
	}
	return out
}

func (w *world) pending() uint64 {
	v := w.state.View()
	defer v.Close()
	_, n := v.Totals()
	return n
}

// pendingIn is how many records of a namespace wait for vectors.
func (w *world) pendingIn(namespace string) uint64 {
	_, totals, _ := w.spacesOf(namespace)
	return totals.Pending
}

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
	w := started(t, eventlogtest.NewFake())
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

// attached counts the namespace's vectors.attached events.
func (w *world) attached() (n int) {
	for _, row := range w.audit("team-a") {
		if row.Type == events.TypeVectorsAttached {
			n++
		}
	}
	return n
}
