package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/report"
	"mneme/internal/hooks"
	"mneme/internal/importer"
)

func TestParse(t *testing.T) {
	var log bytes.Buffer
	full, err := parse(nil, &log)
	if err != nil || full.records != 100_000 || len(full.only) != len(parts) || len(full.sizes) != 3 {
		t.Errorf("defaults: %+v, %v", full, err)
	}
	quick, err := parse([]string{"-quick", "-only", "hooks"}, &log)
	if err != nil || quick.records != 5000 || quick.hooks != 5 || quick.only[0] != "hooks" {
		t.Errorf("quick: %+v, %v", quick, err)
	}
	for _, args := range [][]string{{"-only", "nothing"}, {"more"}, {"-records", "10"}, {"-calls", "0"}, {"-sizes", "x"}} {
		if _, err := parse(args, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func testBench(t *testing.T) *bench {
	t.Helper()
	texts, err := corpus.Load(t.Context(), corpus.Options{Count: 200, Seed: 1, Sources: []string{"generated"}})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{texts: texts, table: report.NewTargets("")}
}

// TestPrompts: hooks keep nothing of one half and each of the other.
func TestPrompts(t *testing.T) {
	plain, worth, err := testBench(t).prompts(20)
	if err != nil || len(plain) != 20 || len(worth) != 20 {
		t.Fatalf("%d and %d, %v", len(plain), len(worth), err)
	}
	seen := map[string]bool{}
	for i := range plain {
		if len(hooks.Find(plain[i], false)) != 0 || len(hooks.Find(worth[i], false)) != 1 || seen[plain[i]] {
			t.Errorf("%q, %q", plain[i], worth[i])
		}
		seen[plain[i]] = true
	}
	few := &bench{texts: &corpus.Corpus{Texts: []string{"too few words"}}}
	if _, _, err := few.prompts(5); err == nil {
		t.Error("more prompts than texts give")
	}
}

// TestWriteGraph: it is the official server's format.
func TestWriteGraph(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	if err := testBench(t).writeGraph(file, 7); err != nil {
		t.Fatal(err)
	}
	if format, why, err := importer.Find(file); err != nil || format != "mcp-memory" {
		t.Errorf("found to be %s: %s, %v", format, why, err)
	}
}

func TestInTurns(t *testing.T) {
	b := testBench(t)
	answers := &timed{what: "answers", wanted: 1e9, command: func(int) *exec.Cmd { return exec.Command("go", "env", "GOOS") }}
	if err := b.inTurns(2, func(*timed) string { return "more" }, answers); err != nil || answers.answered != 2 || len(answers.took) != 2 {
		t.Errorf("%+v, %v", answers, err)
	}
	if len(b.table.Rows) != 1 || !strings.Contains(b.table.Rows[0][2], "2 in turns, more") {
		t.Errorf("%q", b.table.Rows)
	}
	fails := &timed{what: "fails", command: func(int) *exec.Cmd { return exec.Command("go", "no-such-command") }}
	if err := b.inTurns(1, func(*timed) string { return "" }, fails); err == nil {
		t.Error("what fails is measured")
	}
}
