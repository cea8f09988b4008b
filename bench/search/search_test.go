package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mneme/bench/internal/report"
	"mneme/bench/search/internal/peer"
)

func TestParse(t *testing.T) {
	var log bytes.Buffer
	opt, err := parse([]string{"-sizes", "5, 7", "-only", "text"}, &log)
	if err != nil || !slices.Equal(opt.sizes, []int{5, 7}) || !slices.Equal(opt.only, []string{"text"}) || !slices.Equal(opt.dims, []int{384}) {
		t.Errorf("%+v, %v", opt, err)
	}
	for _, args := range [][]string{{"-only", "all"}, {"-sizes", "0"}, {"-sizes", "x"}, {"-dims", ""}, {"-runs", "0"}, {"-nothing"}} {
		if _, err := parse(args, &log); err == nil {
			t.Errorf("%q are taken", args)
		}
	}
	if widest([]int{10, 100_000, 1_000_000}) != 100_000 || widest([]int{300_000, 200_000}) != 200_000 {
		t.Error("widest")
	}
}

// TestRunText measures text at a size that says nothing about speed.
func TestRunText(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	file := filepath.Join(dir, "r.json")
	err := dispatch(context.Background(), []string{"-only", "text", "-sizes", "300", "-queries", "10", "-runs", "1", "-least", "2ms", "-dir", dir, "-json", file}, nil, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if !strings.Contains(out.String(), "### Text: 300 documents\n") {
		t.Errorf("got:\n%s", out.String())
	}
	tables, err := report.ReadJSON(file)
	if err != nil || len(tables) != 2 || len(tables[1].Rows) != 5 {
		t.Errorf("JSON: %d tables, %v", len(tables), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "mneme-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestPeers compiles the C++ program, where that is possible, and holds its scan
// and its indexes to each other.
func TestPeers(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is not installed")
	}
	dir := t.TempDir()
	bin, err := peer.Vectors(t.Context(), dir)
	if err != nil {
		t.Skipf("the libraries are not installed: %v", err)
	}
	for _, engine := range []string{"hnswlib", "faiss", "faiss-sq8", "faiss-debian", "faiss-sq8-debian", "faiss-ivfpqfs"} {
		checkPeer(t, bin, dir, engine)
	}
}
