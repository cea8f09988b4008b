package query

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/query/querytest"
	"mneme/internal/query/views"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a state with the reading side over it.
type world struct {
	*querytest.World
	views *views.Views
	svc   *Service
}

// options are those of a world's reading side.
type options struct {
	views views.Options
	Options
}

func newWorld(t testing.TB, change ...func(*options)) *world {
	t.Helper()
	w := &world{World: querytest.New(t)}
	w.restart(change...)
	t.Cleanup(func() { w.OK(w.views.Close()) })
	return w
}

// restart replaces the reading side by a new one over the same state.
func (w *world) restart(change ...func(*options)) {
	w.T.Helper()
	if w.views != nil {
		w.OK(w.views.Close())
	}
	at := w.Now // searches run beside writes, which move it
	opt := options{views: views.Options{State: w.State, Keys: w.Keys, Settings: w.Settings},
		Options: Options{Keys: w.Keys, Settings: w.Settings, Now: func() time.Time { return at }}}
	for _, c := range change {
		c(&opt)
	}
	var err error
	w.views, err = views.New(opt.views)
	w.OK(err)
	opt.Views = w.views
	w.svc, err = New(opt.Options)
	w.OK(err)
	w.OnApply = w.views.OnApply
	w.OK(w.views.Load(context.Background()))
}

// smallGraphs makes graphs of small sets.
func smallGraphs(o *options) { o.views.Vector.ExactBelow, o.views.Vector.GuardSample = 16, 8 }

func (w *world) waitGraphs() {
	w.T.Helper()
	for _, set := range w.views.Sets() {
		w.OK(set.Wait(context.Background()))
	}
}

func (w *world) reader(ns, as string) *Reader {
	w.T.Helper()
	r, err := w.svc.Open(context.Background(), ns, as, views.Freshness{AtLeast: w.Position()})
	w.OK(err)
	w.T.Cleanup(func() { _ = r.Close() })
	return r
}

// search runs one search with a reader of its own.
func (w *world) search(ns, as string, req memory.SearchRequest) memory.SearchResponse {
	w.T.Helper()
	r, err := w.svc.Open(context.Background(), ns, as, views.Freshness{})
	w.OK(err)
	res, err := r.Search(context.Background(), req)
	w.OK(err)
	w.OK(r.Close())
	return res
}

func texts(hits []memory.Hit) []string {
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.Text
	}
	return out
}

func wantCode(t testing.TB, err error, code memory.Code) {
	t.Helper()
	if memory.CodeOf(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, memory.CodeOf(err), code)
	}
}

func ptr[T any](v T) *T { return &v }

func agentName(i int) string { return fmt.Sprintf("agent-%d", i) }
