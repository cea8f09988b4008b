package views

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Graphs were saved at a clean stop only, so that a killed node built a million
// vectors anew. Now what has grown is saved along the way, once.
func TestGrownGraphsAreKept(t *testing.T) {
	dir := t.TempDir()
	with := func(o *Options) { o.GraphDir = dir }
	w := newWorld(t, smallGraphs, with)
	w.Namespace("team", withBuiltin())
	w.fill("team", 60)
	w.waitGraphs()
	w.views.keepGrown()
	files, _ := filepath.Glob(filepath.Join(dir, "*"+graphSuffix))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	first, err := os.Stat(files[0])
	w.OK(err)
	w.fill("team", 5) // not a fifth
	w.waitGraphs()
	w.views.keepGrown()
	if again, err := os.Stat(files[0]); err != nil || again.Size() != first.Size() || !again.ModTime().Equal(first.ModTime()) {
		t.Errorf("saved again for little: %v %v", again, err)
	}
	want := w.nearest("team", "river cache")

	// A kill: nothing is saved any more, and the file is behind.
	saved, err := os.ReadFile(files[0])
	w.OK(err)
	w.OK(w.views.Close())
	w.OK(os.WriteFile(files[0], saved, 0o600))
	w.restart(smallGraphs, with)
	if got := w.views.Sets()[0].saved.Load(); got < 60 || got > 65 {
		t.Errorf("%d vectors came in the file, want 60 and what the builder has added since", got)
	}
	w.waitGraphs()
	if got := w.nearest("team", "river cache"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	w.fill("team", 20) // more than a fifth
	w.waitGraphs()
	w.views.keepGrown()
	if again, err := os.Stat(files[0]); err != nil || again.Size() <= first.Size() {
		t.Errorf("not saved again: %v %v", again, err)
	}
	w.views.vectors.drop(w.views.Sets()[0])
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the file of a dropped set is there: %v", err)
	}
}
