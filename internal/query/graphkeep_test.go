package query

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"mneme/memory"
)

// Graphs were saved at a clean stop only, so that a killed node built a million
// vectors anew. Now what has grown is saved along the way, once.
func TestGrownGraphsAreKept(t *testing.T) {
	dir := t.TempDir()
	with := func(o *Options) { o.GraphDir = dir }
	w := newWorld(t, with)
	graphs(w.svc)
	w.namespace("team", withBuiltin())
	w.fill("team", 60)
	w.waitGraphs()
	w.svc.keepGrown()
	files, _ := filepath.Glob(filepath.Join(dir, "*"+graphSuffix))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	first, err := os.Stat(files[0])
	w.ok(err)
	w.fill("team", 5) // not a fifth
	w.waitGraphs()
	w.svc.keepGrown()
	if again, err := os.Stat(files[0]); err != nil || again.Size() != first.Size() || !again.ModTime().Equal(first.ModTime()) {
		t.Errorf("saved again for little: %v %v", again, err)
	}
	query := memory.SearchRequest{Query: "river cache", Mode: memory.ModeVector}
	want := w.search("team", "", query)

	// A kill: nothing is saved any more, and the file is behind.
	saved, err := os.ReadFile(files[0])
	w.ok(err)
	w.ok(w.svc.Close())
	w.ok(os.WriteFile(files[0], saved, 0o600))
	w.restart(with)
	graphs(w.svc)
	w.ok(w.svc.Load(context.Background()))
	if got := w.svc.vectors.Load().all()[0].kept.Load(); got < 60 || got > 65 {
		t.Errorf("%d vectors came in the file, want 60 and what the builder has added since", got)
	}
	w.waitGraphs()
	if got := w.search("team", "", query); len(got.Results) != len(want.Results) || got.Results[0].ID != want.Results[0].ID {
		t.Errorf("got %v, want %v", texts(got.Results), texts(want.Results))
	}

	w.fill("team", 20) // more than a fifth
	w.waitGraphs()
	w.svc.keepGrown()
	if again, err := os.Stat(files[0]); err != nil || again.Size() <= first.Size() {
		t.Errorf("not saved again: %v %v", again, err)
	}
	w.svc.leave(w.svc.vectors.Load().all()[0])
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the file of a dropped set is there: %v", err)
	}
}
