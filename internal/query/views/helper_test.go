package views

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"mneme/internal/embed"
	"mneme/internal/query/querytest"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a state with views over it.
type world struct {
	*querytest.World
	views *Views
}

func newWorld(t testing.TB, change ...func(*Options)) *world {
	t.Helper()
	w := &world{World: querytest.New(t)}
	w.restart(change...)
	t.Cleanup(func() { w.OK(w.views.Close()) })
	return w
}

// restart replaces the views by new ones over the same state.
func (w *world) restart(change ...func(*Options)) {
	w.T.Helper()
	if w.views != nil {
		w.OK(w.views.Close())
	}
	opt := Options{State: w.State, Keys: w.Keys, Settings: w.Settings}
	for _, c := range change {
		c(&opt)
	}
	var err error
	w.views, err = New(opt)
	w.OK(err)
	w.OnApply = w.views.OnApply
	w.OK(w.views.Load(context.Background()))
}

// smallGraphs makes graphs of small sets.
func smallGraphs(o *Options) { o.Vector.ExactBelow, o.Vector.GuardSample = 16, 8 }

func withBuiltin() map[string]string {
	return map[string]string{settings.EmbedderSpace: querytest.BuiltinSpace}
}

func (w *world) waitGraphs() {
	w.T.Helper()
	for _, set := range w.views.Sets() {
		w.OK(set.Wait(context.Background()))
	}
}

// fill captures n texts of two words.
func (w *world) fill(ns string, n int) {
	w.T.Helper()
	words := []string{"river", "cache", "deploy", "garden", "token", "harbour", "index", "crane"}
	g := rand.New(rand.NewPCG(1, 2))
	var batch []memory.Capture
	for i := range n {
		batch = append(batch, memory.Capture{Agent: "ann", Text: fmt.Sprintf("%s %s %d", words[g.IntN(len(words))], words[g.IntN(len(words))], i)})
	}
	w.Capture(ns, batch...)
}

// nearest lists the documents of the team's partition nearest to a text.
func (w *world) nearest(ns, query string) (docs []uint32) {
	w.T.Helper()
	v, err := w.views.Open(context.Background(), ns, "", Freshness{})
	w.OK(err)
	defer v.Close()
	model, ok := embed.Builtin(v.Settings.Space)
	if !ok {
		w.T.Fatalf("space %v is not built in", v.Settings.Space)
	}
	look := Lookup{}
	look.Query, _ = model.Vector(query)
	p := v.Partitions[0]
	w.OK(look.Nearest(context.Background(), w.views.Vectors(p.ID, v.Settings.SpaceKey()), memory.DefaultLimit, p.NextDoc, nil, func(m Match) { docs = append(docs, m.Doc) }))
	return docs
}
