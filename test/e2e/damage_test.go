package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mneme/client"
	"mneme/memory"
)

// populate writes what a damaged node must not lose or falsify, over a few
// frames, with a revision and a forget, and returns what is there.
func populate(t *testing.T, d *daemon) truth {
	t.Helper()
	for i := range 6 {
		d.capture("default", fmt.Sprintf("memory number %d about the harbour of Genoa", i))
	}
	var batch []memory.Capture
	for i := range 20 {
		batch = append(batch, memory.Capture{Agent: "tester", ID: fmt.Sprint("b", i), Text: fmt.Sprintf("note %d on the lighthouse %s", i, strings.Repeat("shines ", i))})
	}
	if _, err := d.client.CaptureBatch(t.Context(), "default", batch, client.CaptureOptions{}); err != nil {
		t.Fatal(err)
	}
	all := d.everything("default")
	text := "the revised harbour"
	if _, err := d.client.Revise(t.Context(), "default", all[1].RecordID, memory.Revision{Text: &text}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.client.Forget(t.Context(), "default", all[2].RecordID, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return d.truth()
}

// truth is what a node holds: its state hash and every memory of default.
type truth struct {
	hash    string
	records uint64
	all     string
}

func (d *daemon) truth() truth {
	d.t.Helper()
	s := d.shard()
	var b strings.Builder
	for _, r := range d.everything("default") {
		fmt.Fprintf(&b, "%s v%d %s: %s\n", r.RecordID, r.Version, r.Agent, r.Text)
	}
	return truth{s.StateHash, s.Records, b.String()}
}

// flippedBitSeed picks the bits; MNEME_E2E_SEED changes it.
const flippedBitSeed = 1

// TestFlippedBitInAnyFile flips bits in every file of a stopped node, one at a
// time. The node heals, or stops writes and serves reads, or ends with exit 7
// and one clear message. It never shows a wrong memory and never misses one.
func TestFlippedBitInAnyFile(t *testing.T) {
	t.Parallel()
	seed := seedOf(t, flippedBitSeed)
	dir := t.TempDir()
	d := launch{self: true}.start(t, dir) // with Raft snapshots
	populate(t, d)
	for i := range 30 { // more frames than the cheap check compares
		d.capture("default", fmt.Sprint("page ", i, " of the harbour's log"))
	}
	want := d.truth()
	d.term()
	perFile := 10
	if testing.Short() {
		perFile = 2
	}
	type job struct {
		file string
		bit  uint64
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	results := &tally{}
	for range runtime.NumCPU() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range jobs {
				t.Run(fmt.Sprintf("%s@%d", j.file, j.bit), func(t *testing.T) { results.add(flipOne(t, dir, j.file, j.bit, want)) })
			}
		}()
	}
	for _, name := range files(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, bit := range bitsOf(info.Size(), perFile, seed, filepath.Base(name)) {
			jobs <- job{name, bit}
		}
	}
	close(jobs)
	wg.Wait()
	t.Logf("seed %d: %s", seed, results)
	if results.n["healed"] == 0 || results.n["refused to start"] == 0 || results.n["writes stopped"] == 0 {
		t.Errorf("the faults did not bite in every way: %s", results)
	}
}

type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (r *tally) add(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == nil {
		r.n = map[string]int{}
	}
	r.n[what]++
}

func (r *tally) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.n)
}

// flipOne flips one bit in a copy, starts it and says what happened.
func flipOne(t *testing.T, from, file string, bit uint64, want truth) string {
	dir := copyDir(t, from)
	defer os.RemoveAll(filepath.Dir(dir))
	edit(t, filepath.Join(dir, file), func(b []byte) []byte { return flip(b, bit) })
	d, e := launch{}.attempt(t, dir)
	if d == nil {
		plainEnd(t, e, 7)
		return "refused to start"
	}
	defer d.kill()
	got := d.truth()
	if got != want {
		t.Errorf("after the flip the node holds\n%s %d\n%s\nwant\n%s %d\n%s\nlog:\n%s", got.hash, got.records, got.all, want.hash, want.records, want.all, d.stderr)
	}
	noStack(t, d.stderr.String())
	s := d.shard()
	_, err := d.client.Capture(t.Context(), "default", memory.Capture{Agent: "tester", Text: "is anybody there"}, client.CaptureOptions{})
	if s.Log.Diverged != "" {
		if memory.CodeOf(err) != memory.CodeLogDiverged {
			t.Errorf("writes are said to be stopped, a write says %v", err)
		}
		wayOut(t, d)
		return "writes stopped"
	}
	if err != nil {
		t.Errorf("the node started whole and refuses writes: %v\n%s", err, d.stderr)
	}
	if e := d.memctl("log", "verify"); e.code != 0 {
		plainEnd(t, e, 7, "log repair")
		wayOut(t, d)
		return "found by verify"
	}
	return "healed"
}

// wayOut follows the remedy that was named.
func wayOut(t *testing.T, d *daemon) {
	t.Helper()
	before := d.truth()
	d.must("log", "repair")
	d.must("log", "verify")
	if got := d.truth(); got != before {
		t.Errorf("after the repair: %s, want %s", got.hash, before.hash)
	}
	d.capture("default", "life goes on")
}
