package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// manyFrames writes enough for a restore or a repair to take a while, and
// returns what is there.
func manyFrames(t *testing.T, d *daemon) truth {
	t.Helper()
	populate(t, d)
	for i := range 60 {
		batch := make([]memory.Capture, 20)
		for j := range batch {
			batch[j] = memory.Capture{Agent: "tester", ID: fmt.Sprintf("m%d-%d", i, j), Text: fmt.Sprintf("entry %d of page %d in the log of the harbour", j, i)}
		}
		if _, err := d.client.CaptureBatch(t.Context(), "default", batch, client.CaptureOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return d.truth()
}

// killAfter runs memctl and kills it after a while; it reports whether the kill
// came before the end.
func killAfter(t *testing.T, after time.Duration, args ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	e := memctlContext(ctx, t, "", nil, args...)
	if e.code > 0 {
		t.Fatalf("memctl %v: %d %s", args, e.code, e.err)
	}
	return e.code < 0
}

const killRounds = 8

// TestKilledRestore kills a restore at any moment. What it leaves is refused
// with the remedy, or is whole, and the same restore then works.
func TestKilledRestore(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(seedOf(t, 1), 1))
	d := start(t, t.TempDir())
	want := manyFrames(t, d)
	out := t.TempDir()
	log, keys := filepath.Join(out, "log"), filepath.Join(out, "keys")
	d.must("backup", "--log", log, "--keys", keys)
	d.term()
	restore := func(dir string) []string { return []string{"restore", "--data-dir", dir, "--log", log, "--keys", keys} }
	began := time.Now()
	if e := memctl(t, "", nil, restore(filepath.Join(t.TempDir(), "whole"))...); e.code != 0 {
		t.Fatal(e.err)
	}
	whole, refused := time.Since(began), 0
	for range killRounds {
		dir := filepath.Join(t.TempDir(), "new")
		killed := killAfter(t, time.Duration(rng.Int64N(int64(whole))), restore(dir)...)
		if left, err := os.ReadDir(dir); killed && err == nil && len(left) > 0 {
			if d, e := (launch{}).attempt(t, dir); d == nil {
				plainEnd(t, e, 7, "restore")
				refused++
			} else {
				if got := d.truth(); got != want {
					t.Fatalf("a killed restore opens with %d of %d records", got.records, want.records)
				}
				d.term()
				continue
			}
		}
		if killed {
			if e := memctl(t, "", nil, restore(dir)...); e.code != 0 {
				t.Fatalf("the same restore again: %d %s", e.code, e.err)
			}
		}
		d := start(t, dir)
		if got := d.truth(); got != want {
			t.Errorf("restored %s, want %s", got.hash, want.hash)
		}
		d.term()
	}
	if refused < 2 {
		t.Errorf("only %d of %d kills left a directory that is not whole", refused, killRounds)
	}
}

// TestKilledRepair kills a repair, of a stopped and of a running node, at any
// moment. The next start finishes it, or it is repeated, and nothing is lost.
func TestKilledRepair(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(seedOf(t, 1), 2))
	dir := t.TempDir()
	d := start(t, dir)
	want := manyFrames(t, d)
	d.term()
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	trial := copyDir(t, dir)
	began := time.Now()
	if e := memctl(t, "", nil, "log", "repair", "--data-dir", trial); e.code != 0 {
		t.Fatal(e.err)
	}
	whole, kills := time.Since(began), 0
	for round := range killRounds {
		dir := copyDir(t, dir)
		after := time.Duration(rng.Int64N(int64(whole)))
		if round%2 == 0 {
			if killAfter(t, after, "log", "repair", "--data-dir", dir) {
				kills++
			}
		} else {
			d := start(t, dir)
			done := make(chan ended, 1)
			go func() { done <- d.memctl("log", "repair") }()
			select {
			case <-time.After(after):
			case <-done:
				done <- ended{}
			}
			d.kill()
			<-done
			kills++
		}
		d := start(t, dir)
		eventually(t, "the start to finish the repair", func() bool { return d.shard().Log.Repair == nil })
		if d.shard().Log.Diverged != "" {
			d.must("log", "repair")
		}
		if got := d.truth(); got != want {
			t.Errorf("round %d: after the repair %s, want %s", round, got.hash, want.hash)
		}
		if s := d.shard(); s.Epoch < 1 || s.Log.Diverged != "" {
			t.Errorf("round %d: %+v", round, s)
		}
		d.capture("default", "life goes on")
		d.must("log", "verify")
		d.kill()
		d = start(t, dir)
		if s := d.shard(); s.Log.Diverged != "" || s.Records != want.records+1 {
			t.Errorf("round %d: killed after the repair: %+v", round, s)
		}
		sameEverywhere(t, d) // and stops it
	}
	if kills < killRounds/2 {
		t.Errorf("only %d kills came in time", kills)
	}
}
