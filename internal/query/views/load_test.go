package views

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mneme/internal/embed/builtin"
	"mneme/internal/index/vector"
	"mneme/memory"
)

func TestGraphsAreSavedAndTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vectors")
	with := func(o *Options) { o.GraphDir = dir }
	w := newWorld(t, smallGraphs, with)
	w.Namespace("team", withBuiltin())
	w.Namespace("small", withBuiltin())
	w.fill("team", 60)
	w.fill("small", 3)
	w.waitGraphs()
	if st := w.views.VectorStatus(); st.Engine != "mneme" || st.RecallGuard.State != "ok" || st.RecallGuard.Recall < 0.95 {
		t.Errorf("status %+v", st)
	}
	want := w.nearest("team", "river cache")
	w.OK(w.views.Close())
	w.OK(w.views.Close())
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 || !strings.HasSuffix(files[0], graphSuffix) {
		t.Fatalf("files %v", files)
	}
	raw, err := os.ReadFile(files[0])
	w.OK(err)
	if strings.Contains(string(raw), "river") {
		t.Error("a graph file holds text")
	}
	w.OK(os.WriteFile(filepath.Join(dir, "ffffffff-00.graph"), nil, 0o600)) // of a set that is no more

	check := func() {
		t.Helper()
		w.waitGraphs()
		got := w.nearest("team", "river cache")
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	w.restart(smallGraphs, with)
	check()
	w.OK(w.views.Close())
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	w.OK(os.WriteFile(files[0], raw[:len(raw)/2], 0o600)) // damage
	w.restart(smallGraphs, with)
	check()
	w.views.vectors.graphs.dir = filepath.Join(files[0], "not a folder")
	if err := w.views.Close(); err == nil {
		t.Error("graphs cannot have been saved")
	}
}

func TestExactEngineHasNoGraph(t *testing.T) {
	w := newWorld(t, smallGraphs, func(o *Options) { o.Vector.Engine = vector.EngineExact; o.GraphDir = t.TempDir() })
	w.Namespace("team", withBuiltin())
	w.fill("team", 40)
	w.waitGraphs()
	if st := w.views.VectorStatus(); st.Engine != "exact" || st.RecallGuard.State != "none" {
		t.Errorf("%+v", st)
	}
	if docs := w.nearest("team", "river"); len(docs) != memory.DefaultLimit {
		t.Errorf("%d documents", len(docs))
	}
}

// TestLoadFails leaves the old view in its place.
func TestLoadFails(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.fill("team", 5)
	old := w.views.vectors.current()
	w.views.vectors.opt.Params.M = 1 // refused
	if err := w.views.Load(context.Background()); err == nil {
		t.Error("options out of range")
	}
	if w.views.vectors.current() != old {
		t.Error("the view was replaced")
	}
	if docs := w.nearest("team", "river"); len(docs) != 5 {
		t.Errorf("%v", docs)
	}
}

// A limit below what the vectors need is told before they are read, and one that does is not.
func TestTooLittleMemoryIsTold(t *testing.T) {
	var said strings.Builder
	w := newWorld(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&said, nil)) })
	w.Namespace("team", withBuiltin())
	w.Namespace("small", withBuiltin())
	w.fill("team", 40)
	w.fill("small", 10)
	v := w.State.View()
	defer func() { w.OK(v.Close()) }()
	need := int64(50 * (builtin.Dimensions + besideBytes))
	for _, c := range []struct {
		limit int64
		told  bool
	}{{math.MaxInt64, false}, {2 * need, false}, {need, true}, {1, true}} {
		said.Reset()
		w.OK(w.views.vectors.weigh(v, c.limit))
		if told := strings.Contains(said.String(), "vectors=50 bytes="+strconv.FormatInt(need, 10)); told != c.told || !told && said.Len() > 0 {
			t.Errorf("with %d bytes for %d: %q", c.limit, need, said.String())
		}
	}
}
