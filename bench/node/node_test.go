package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"mneme/bench/internal/report"
	"mneme/internal/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	var log bytes.Buffer
	full, err := parse(nil, &log)
	if err != nil || full.records != 100_000 || len(full.only) != len(parts) {
		t.Errorf("defaults: %+v, %v", full, err)
	}
	quick, err := parse([]string{"-quick", "-only", "empty"}, &log)
	if err != nil || quick.records != full.records/20 || quick.searches != full.searches/20 || quick.only[0] != "empty" {
		t.Errorf("quick: %+v, %v", quick, err)
	}
	for _, args := range [][]string{{"-only", "nothing"}, {"more"}, {"-records", "0"}, {"-captures", "5"}, {"-x"}, {"-sizes", "5"}, {"-sizes", "many"}, {"-lengths", "0"}} {
		if _, err := parse(args, &log); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestSingle(t *testing.T) {
	frame := events.Frame{Seq: 1, Term: 1, Events: [][]byte{[]byte("one"), []byte("two"), []byte("three")}}
	out, err := single([][]byte{frame.Encode(), frame.Encode()}, 4)
	if err != nil || len(out) != 4 {
		t.Fatalf("%d frames, %v", len(out), err)
	}
	got, err := events.DecodeFrame(out[2])
	if err != nil || len(got.Events) != 1 || string(got.Events[0]) != "three" {
		t.Errorf("got %q, %v", got.Events, err)
	}
	if _, err := single([][]byte{[]byte("no frame")}, 4); err == nil {
		t.Error("what is no frame is split")
	}
}

func TestRawLog(t *testing.T) {
	took, err := rawAppend(context.Background(), t.TempDir()+"/log", [][]byte{[]byte("a"), []byte("b")})
	if err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	d, err := fsyncTime(t.TempDir())
	if err != nil || d <= 0 {
		t.Errorf("%v, %v", d, err)
	}
}

// TestRunQuick measures a real node, at a size that says nothing about speed.
func TestRunQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs memnode")
	}
	dir := t.TempDir()
	var out, log bytes.Buffer
	args := []string{"-records", "300", "-captures", "200", "-requests", "100", "-searches", "20", "-runs", "1", "-paced", "200ms", "-idle", "100ms",
		"-settle", "1s", "-texts", "generated", "-dir", dir}
	if err := run(context.Background(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, want := range []string{"| captures by REST", "| captures by NATS", "| capture to searchable", "| hybrid search p99", "| ready after SIGTERM",
		"| ready after kill -9", "| rebuild", "| empty node"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "not measured") && !strings.Contains(out.String(), "read on Linux only") {
		t.Errorf("a part failed:\n%s", out.String())
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestGrowth fills and restarts real nodes, at sizes that say nothing about speed.
func TestGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs memnode")
	}
	dir := t.TempDir()
	var out, log bytes.Buffer
	file := dir + "/r.json"
	args := []string{"-only", "growth", "-sizes", "100,300", "-searches", "20", "-settle", "1s", "-texts", "generated", "-dir", dir, "-json", file}
	if err := run(context.Background(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, want := range []string{"| 100 records ", "| 300 records ", "| hybrid, 100/s written, 4 at a time", "| hybrid right after the restart", "| hybrid p99, one after the other"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if tables, err := report.ReadJSON(file); err != nil || len(tables) != 2 {
		t.Errorf("JSON: %d tables, %v", len(tables), err)
	}
}

// TestSize fills, stops and starts real nodes, at sizes that say nothing about them.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs memnode")
	}
	dir := t.TempDir()
	var out, log bytes.Buffer
	args := []string{"-only", "size", "-sizes", "100", "-lengths", "own,700", "-searches", "20", "-settle", "1s", "-texts", "generated", "-dir", dir}
	if err := run(context.Background(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, want := range []string{"| 100 × 700 |", "| one capture after the other", "| … log", "| first backup, MB", "| ready after a start"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

// TestTraces runs the nodes of the part traces, a turn each.
func TestTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs memnode")
	}
	var out, log bytes.Buffer
	args := []string{"-only", "traces", "-captures", "500", "-runs", "1", "-records", "100", "-texts", "generated", "-dir", t.TempDir()}
	if err := run(context.Background(), args, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, want := range []string{"captures by NATS request, tracing nothing", "captures by REST, tracing nothing", "tracing nothing, again", "tracing 1 %", "tracing everything"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
