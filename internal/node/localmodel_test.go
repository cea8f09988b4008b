package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/embed"
	"mneme/internal/embed/local/localtest"
	"mneme/memory"
)

func writeModel(t *testing.T, dir string, seed uint64) {
	t.Helper()
	s := localtest.Tiny()
	s.Seed = seed
	if err := localtest.Write(dir, s.Files()); err != nil {
		t.Fatal(err)
	}
}

// nearest returns the texts by their vectors, best first.
func nearest(t *testing.T, n *Node, query string) []string {
	t.Helper()
	r, err := n.reads.Search(t.Context(), memory.Access{Namespace: "default"}, memory.SearchRequest{Query: query, Mode: memory.ModeVector, All: true})
	if err != nil {
		t.Fatalf("search: %v", err)
	}
	var out []string
	for _, h := range r.Results {
		out = append(out, h.Text)
	}
	return out
}

// TestLocalModel: vectors of a local model are recorded, so that a node which
// rebuilds its state has them again, without the model; only queries need it.
func TestLocalModel(t *testing.T) {
	root := t.TempDir()
	model, data := filepath.Join(root, "tiny"), filepath.Join(root, "data")
	writeModel(t, model, 1)
	cfg := quiet(data)
	cfg.Embedder = embed.Config{Provider: embed.ProviderLocal, Dir: model}
	n := open(t, cfg)
	texts := []string{"hello world", "unaffable cafe", "日本語"}
	for _, text := range texts {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r, err := n.writes.Capture(ctx, "default", []memory.Capture{{Agent: "tester", Text: text}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitSearchable)
		cancel()
		if err != nil || r.Results[0].Error != nil {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if s := shardOf(t, n); s.PendingVectors != 0 || s.Records != 3 {
		t.Fatalf("%+v", s)
	}
	want := map[string][]string{}
	for _, text := range texts {
		got := nearest(t, n, text)
		if len(got) != 3 || got[0] != text {
			t.Fatalf("%q finds %q", text, got)
		}
		want[text] = got
	}
	doctor, err := n.operator.Doctor(t.Context())
	if err != nil || !slices.ContainsFunc(doctor.Checks, func(c memory.Check) bool {
		return c.Name == "embedder of default" && c.State == "ok" && strings.Contains(c.Detail, "local/tiny@")
	}) {
		t.Errorf("%+v, %v", doctor, err)
	}
	shut(t, n)

	// The state is lost and so is the model: vectors come from the log.
	if err := os.Rename(filepath.Join(data, "shards", "0", "state"), filepath.Join(root, "lost")); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(root, "moved")
	if err := os.Rename(model, moved); err != nil {
		t.Fatal(err)
	}
	cfg.Embedder = embed.Config{} // another default, and the model is not known
	n = open(t, cfg)
	if s := shardOf(t, n); s.PendingVectors != 0 || s.Records != 3 {
		t.Fatalf("after a rebuild %+v", s)
	}
	if got := find(t, n, "hello"); len(got) != 1 || got[0] != texts[0] {
		t.Errorf("by text: %q", got)
	}
	shut(t, n)

	// Another model in its place is noticed, not used.
	other := filepath.Join(root, "tiny")
	writeModel(t, other, 2)
	cfg.Embedder.Dir = other
	n = open(t, cfg)
	must(t, n, "written meanwhile")
	if r, err := n.operator.Doctor(t.Context()); err != nil || !slices.ContainsFunc(r.Checks, func(c memory.Check) bool {
		return c.Name == "embedder of default" && c.State == "warn" && strings.Contains(c.Detail, "the model here is")
	}) {
		t.Errorf("%+v, %v", r, err)
	}
	shut(t, n)

	// The model is back, elsewhere: what waited is embedded.
	cfg.Embedder.Dir = moved
	n = open(t, cfg)
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for shardOf(t, n).PendingVectors != 0 {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("vectors are pending")
		}
	}
	for _, text := range texts {
		got := nearest(t, n, text)
		if got = slices.DeleteFunc(got, func(s string) bool { return s == "written meanwhile" }); !slices.Equal(got, want[text]) {
			t.Errorf("%q finds %q, found %q before", text, got, want[text])
		}
	}
}

// TestClientsNameNoDirectory: a client may ask for the node's local model, not
// for a path.
func TestClientsNameNoDirectory(t *testing.T) {
	root := t.TempDir()
	model := filepath.Join(root, "tiny")
	writeModel(t, model, 1)
	n := open(t, quiet(filepath.Join(root, "without")))
	create := func(n *Node, name, wanted string) error {
		set := map[string]string{"embedder.provider": "local"}
		if wanted != "" {
			set["embedder.model"] = wanted
		}
		_, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: name, Settings: set})
		return err
	}
	if err := create(n, "a", model); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Errorf("a path where there is no model: %v", err)
	}
	cfg := quiet(filepath.Join(root, "with"))
	cfg.Embedder = embed.Config{Dir: model}
	n = open(t, cfg)
	if err := create(n, "a", "/etc"); err == nil || !strings.Contains(err.Error(), "not /etc") {
		t.Errorf("a path: %v", err)
	}
	for name, wanted := range map[string]string{"b": "", "c": "tiny"} {
		if err := create(n, name, wanted); err != nil {
			t.Errorf("%q: %v", wanted, err)
		}
	}
}
