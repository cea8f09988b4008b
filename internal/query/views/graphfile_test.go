package views

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A saved graph that is truncated or changed by one bit is not used: the graph is
// built anew, the log says so, and searches answer as before.
func TestDamagedGraphIsBuiltAnewAndSaidSo(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	with := func(o *Options) { o.GraphDir, o.Logger = dir, slog.New(slog.NewTextHandler(&log, nil)) }
	w := newWorld(t, smallGraphs, with)
	w.Namespace("team", withBuiltin())
	w.fill("team", 60)
	w.waitGraphs()
	want := w.nearest("team", "river cache")
	w.OK(w.views.Close())
	files, _ := filepath.Glob(filepath.Join(dir, "*"+graphSuffix))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	good, err := os.ReadFile(files[0])
	w.OK(err)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 4
	for name, c := range map[string]struct {
		file []byte
		says bool
	}{"whole": {good, false}, "truncated": {good[:len(good)-9], true}, "flipped": {flipped, true}, "empty": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			w.OK(w.views.Close())
			w.OK(os.WriteFile(files[0], c.file, 0o600))
			log.Reset()
			w.restart(smallGraphs, with)
			w.waitGraphs()
			if says := strings.Contains(log.String(), "built anew"); says != c.says {
				t.Errorf("log: %q", log.String())
			}
			if got := w.nearest("team", "river cache"); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if st := w.views.Sets()[0].Stats(); st.InGraph != 60 {
				t.Errorf("%+v", st)
			}
		})
	}
}
