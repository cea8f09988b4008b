package query

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// A saved graph that is truncated or changed by one bit is not used: the graph is
// built anew, the log says so, and searches answer as before.
func TestDamagedGraphIsBuiltAnewAndSaidSo(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	with := func(o *Options) { o.GraphDir, o.Logger = dir, slog.New(slog.NewTextHandler(&log, nil)) }
	w := newWorld(t, with)
	graphs(w.svc)
	w.namespace("team", withBuiltin())
	w.fill("team", 60)
	w.waitGraphs()
	query := memory.SearchRequest{Query: "river cache", Mode: memory.ModeVector}
	want := w.search("team", "", query)
	w.ok(w.svc.Close())
	files, _ := filepath.Glob(filepath.Join(dir, "*"+graphSuffix))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	good, err := os.ReadFile(files[0])
	w.ok(err)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 4
	for name, c := range map[string]struct {
		file []byte
		says bool
	}{"whole": {good, false}, "truncated": {good[:len(good)-9], true}, "flipped": {flipped, true}, "empty": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			w.ok(w.svc.Close())
			w.ok(os.WriteFile(files[0], c.file, 0o600))
			log.Reset()
			w.restart(with)
			graphs(w.svc)
			w.ok(w.svc.Load(context.Background()))
			w.waitGraphs()
			if says := strings.Contains(log.String(), "built anew"); says != c.says {
				t.Errorf("log: %q", log.String())
			}
			if got := w.search("team", "", query); !slices.Equal(texts(got.Results), texts(want.Results)) {
				t.Errorf("got %v, want %v", texts(got.Results), texts(want.Results))
			}
			if st := w.svc.vectors.Load().all()[0].set.Stats(); st.InGraph != 60 {
				t.Errorf("%+v", st)
			}
		})
	}
}
