package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/memory"
)

// ledger is what the writers of a kill test know: what was acknowledged, with
// its record and position, and what was sent without an answer.
type ledger struct {
	mu      sync.Mutex
	acked   map[string]memory.CaptureResult
	unknown []memory.Capture
	order   map[string][]string // ids by writer, in the order of their acks
	counts  map[memory.ItemStatus]int
}

func newLedger() *ledger {
	return &ledger{acked: map[string]memory.CaptureResult{}, order: map[string][]string{}, counts: map[memory.ItemStatus]int{}}
}

func (l *ledger) ack(writer string, results ...memory.CaptureResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range results {
		l.acked[r.ID] = r
		l.order[writer] = append(l.order[writer], r.ID)
		l.counts[r.Status]++
	}
}

func (l *ledger) lost(items ...memory.Capture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unknown = append(l.unknown, items...)
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// writer sends captures one after the other until the node is gone or ctx ends.
type writer struct {
	name string
	next int // number of the next capture
	send func(ctx context.Context, d *daemon, items []memory.Capture) ([]memory.CaptureResult, error)
	size int // captures in one sending
}

func (w *writer) items() []memory.Capture {
	out := make([]memory.Capture, w.size)
	for i := range out {
		w.next++
		out[i] = memory.Capture{Agent: w.name, ID: fmt.Sprintf("%s-%d", w.name, w.next), Text: fmt.Sprintf("what %s remembered as number %d", w.name, w.next)}
	}
	return out
}

func writers() []*writer {
	return []*writer{
		{name: "rest", size: 1, send: sendREST}, {name: "batch", size: 7, send: sendREST},
		{name: "bus", size: 1, send: sendNATS}, {name: "command", size: 1, send: sendCommand},
	}
}

func sendREST(ctx context.Context, d *daemon, items []memory.Capture) ([]memory.CaptureResult, error) {
	if len(items) == 1 {
		r, err := d.client.Capture(ctx, "default", items[0], client.CaptureOptions{})
		return r.Results, err
	}
	r, err := d.client.CaptureBatch(ctx, "default", items, client.CaptureOptions{})
	return r.Results, err
}

func sendNATS(ctx context.Context, d *daemon, items []memory.Capture) ([]memory.CaptureResult, error) {
	nc, err := nats.Connect(d.nats, nats.MaxReconnects(0))
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	c := items[0]
	// A connection that breaks ends the wait: nobody will answer.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nc.SetClosedHandler(func(*nats.Conn) { cancel() })
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: "mem.in.default." + c.Agent + ".capture", Data: []byte(c.Text), Header: nats.Header{"Nats-Msg-Id": {c.ID}}})
	if err != nil {
		return nil, err
	}
	var ack struct {
		memory.CaptureResult
		Error *struct{ Description string }
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return nil, err
	}
	if ack.Error != nil {
		return nil, fmt.Errorf("%s", ack.Error.Description)
	}
	return []memory.CaptureResult{ack.CaptureResult}, nil
}

// sendCommand imports one line, which carries the id that `capture` does not
// take. Left to itself it would go on trying to reach the node for a while.
func sendCommand(ctx context.Context, d *daemon, items []memory.Capture) ([]memory.CaptureResult, error) {
	line, err := json.Marshal(items[0])
	if err != nil {
		return nil, err
	}
	e := memctlContext(ctx, d.t, string(line)+"\n", []string{"MNEME_ADDR=" + d.http}, "import", "-n", "default", "--format", "jsonl", "--json", "-")
	if e.code != 0 {
		return nil, fmt.Errorf("memctl: %d: %s", e.code, e.err)
	}
	return []memory.CaptureResult{{ID: items[0].ID, Status: memory.StatusCreated}}, nil
}

func (w *writer) run(ctx context.Context, d *daemon, l *ledger) {
	for ctx.Err() == nil {
		items := w.items()
		results, err := w.send(ctx, d, items)
		if err != nil {
			l.lost(items...)
			return
		}
		for i, r := range results {
			if r.Error != nil {
				l.lost(items[i])
				continue
			}
			l.ack(w.name, r)
		}
	}
}

// resend sends again what had no answer; it must be there or come now.
func (l *ledger) resend(d *daemon, all []*writer) {
	d.t.Helper()
	again := l.unknown
	l.unknown = nil
	for _, c := range again {
		i := slices.IndexFunc(all, func(w *writer) bool { return w.name == c.Agent })
		results, err := all[i].send(d.t.Context(), d, []memory.Capture{c})
		if err != nil || len(results) != 1 || results[0].Error != nil ||
			results[0].Status != memory.StatusCreated && results[0].Status != memory.StatusDuplicate {
			d.t.Fatalf("%s, sent again with the same id: %+v, %v", c.ID, results, err)
		}
		l.ack(c.Agent+" again", results...)
	}
}

// check compares what the node holds with the ledger: everything acknowledged
// once, with its text, record and position, in order; nothing else.
func (l *ledger) check(d *daemon) {
	d.t.Helper()
	have := map[string]memory.Record{}
	rank := map[string]int{}
	for i, r := range d.everything("default") {
		if _, twice := have[r.ID]; twice {
			d.t.Errorf("%s is there twice", r.ID)
		}
		have[r.ID], rank[r.ID] = r, i
	}
	for id, ack := range l.acked {
		r, ok := have[id]
		if !ok {
			d.t.Errorf("acknowledged %s is gone", id)
			continue
		}
		if ack.RecordID != "" && (ack.RecordID != r.RecordID || ack.Position != r.Position) {
			d.t.Errorf("%s is record %s at %s, acknowledged was %s at %s", id, r.RecordID, r.Position, ack.RecordID, ack.Position)
		}
		var name string
		var n int
		if _, err := fmt.Sscanf(r.Text, "what %s remembered as number %d", &name, &n); err != nil || fmt.Sprintf("%s-%d", name, n) != id || r.Agent != name {
			d.t.Errorf("%s has the text %q of %s", id, r.Text, r.Agent)
		}
	}
	unknown := map[string]bool{}
	for _, c := range l.unknown {
		unknown[c.ID] = true
	}
	for id := range have {
		if _, ok := l.acked[id]; !ok && !unknown[id] {
			d.t.Errorf("%s is there, but nobody sent it", id)
		}
	}
	for _, w := range slices.Sorted(maps.Keys(l.order)) {
		ids := l.order[w]
		for i := 1; i < len(ids); i++ {
			if rank[ids[i-1]] >= rank[ids[i]] && len(w) < 8 { // what was sent again has no order
				d.t.Errorf("writer %s: %s was acknowledged before %s and comes after it", w, ids[i-1], ids[i])
			}
		}
	}
	if d.t.Failed() {
		d.t.FailNow()
	}
}

// round writes by all ways and kills the node after a while that the seed
// decides, counted from the first acknowledgement.
func round(t *testing.T, d *daemon, l *ledger, all []*writer, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	before := l.size()
	for _, w := range all {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.run(ctx, d, l)
		}()
	}
	eventually(t, "the first acknowledgement", func() bool { return l.size() > before })
	select {
	case <-time.After(after):
	case <-d.exited:
	}
	d.kill()
	cancel()
	wg.Wait()
}

func TestKillDuringCaptures(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]launch{"memnode": {}, "a snapshot every 8 entries": {self: true}} {
		t.Run(name, func(t *testing.T) { killDuringCaptures(t, l) })
	}
}

func killDuringCaptures(t *testing.T, how launch) {
	seed := seedOf(t, 11)
	rng := rand.New(rand.NewPCG(seed, 1))
	rounds := 15
	if how.self {
		rounds = 10
	}
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	l, all := newLedger(), writers()
	unanswered, snapshots := 0, 0
	for i := range rounds {
		d := how.start(t, dir)
		l.check(d)
		l.resend(d, all)
		round(t, d, l, all, time.Duration(rng.IntN(180))*time.Millisecond)
		unanswered += len(l.unknown)
		if names, err := filepath.Glob(filepath.Join(dir, "shards", "0", "snapshots", "*")); err == nil {
			snapshots += len(names)
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	if unanswered == 0 {
		t.Errorf("no kill hit a write that was under way")
	}
	if how.self && snapshots == 0 {
		t.Errorf("no Raft snapshot was taken")
	}
	d := start(t, dir)
	l.check(d)
	l.resend(d, all)
	l.check(d)
	t.Logf("%d captures acknowledged, %d without an answer, outcomes %v, %d snapshots seen", len(l.acked), unanswered, l.counts, snapshots)
	sameEverywhere(t, d)
}

// sameEverywhere compares the state hash with that of a rebuild and with that
// of a node which has only log and keys.
func sameEverywhere(t *testing.T, d *daemon) {
	t.Helper()
	want := d.shard()
	var rebuilt memory.RebuildReport
	mustJSON(t, d.must("rebuild", "--json"), &rebuilt)
	if got := rebuilt.Shards[0]; got.StateHash != want.StateHash || got.Position != want.Position {
		t.Errorf("rebuild gives %s at %s, want %s at %s", got.StateHash, got.Position, want.StateHash, want.Position)
	}
	d.term()
	fresh := copyDir(t, d.dir)
	if err := os.RemoveAll(filepath.Join(fresh, "shards")); err != nil {
		t.Fatal(err)
	}
	again := start(t, fresh)
	if got := again.shard(); got.StateHash != want.StateHash || got.Records != want.Records {
		t.Errorf("a fold from nothing gives %s with %d records, want %s with %d", got.StateHash, got.Records, want.StateHash, want.Records)
	}
	again.term()
}

func TestKillDuringRebuild(t *testing.T) {
	t.Parallel()
	seed := seedOf(t, 5)
	rng := rand.New(rand.NewPCG(seed, 2))
	dir := t.TempDir()
	d := start(t, dir)
	var batch []memory.Capture
	for i := range 1000 {
		batch = append(batch, memory.Capture{Agent: "tester", Text: fmt.Sprintf("entry %d of the log book, with a few words to index", i)})
	}
	for range 2 {
		if _, err := d.client.CaptureBatch(t.Context(), "default", batch, client.CaptureOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want := d.truth()
	interrupted := 0
	for round := range 5 { // the first kills come at once: a small rebuild takes some milliseconds
		began := make(chan struct{})
		once := sync.OnceFunc(func() { close(began) })
		finished := make(chan error, 1)
		op := d.operator()
		go func() {
			_, err := op.Rebuild(context.Background(), func(memory.Progress) { once() })
			finished <- err
		}()
		select {
		case <-began:
			select {
			case <-time.After(time.Duration(rng.IntN(15*round+1)) * time.Millisecond):
			case <-d.exited:
			}
		case err := <-finished:
			finished <- err
		}
		d.kill()
		if err := <-finished; err != nil {
			interrupted++
		}
		d = start(t, dir)
		if got := d.truth(); got != want {
			t.Fatalf("after a kill in a rebuild: %s with %d records, want %s with %d", got.hash, got.records, want.hash, want.records)
		}
		left, err := filepath.Glob(filepath.Join(dir, "shards", "0", "state", "gen-*"))
		if err != nil || len(left) != 1 {
			t.Errorf("what the rebuild had begun is left behind: %v", left)
		}
	}
	if interrupted == 0 {
		t.Error("no kill hit a rebuild")
	}
	sameEverywhere(t, d)
}

func TestTermDuringCapturesLosesNothing(t *testing.T) {
	t.Parallel()
	seed := seedOf(t, 3)
	rng := rand.New(rand.NewPCG(seed, 3))
	dir := t.TempDir()
	l, all := newLedger(), writers()
	for range 4 {
		d := start(t, dir)
		l.check(d)
		l.resend(d, all)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var wg sync.WaitGroup
		before := l.size()
		for _, w := range all {
			wg.Add(1)
			go func() {
				defer wg.Done()
				w.run(ctx, d, l)
			}()
		}
		eventually(t, "the first acknowledgement", func() bool { return l.size() > before })
		select {
		case <-time.After(time.Duration(rng.IntN(100)) * time.Millisecond):
		case <-d.exited:
		}
		d.term()
		cancel()
		wg.Wait()
	}
	d := start(t, dir)
	l.check(d)
	l.resend(d, all)
	l.check(d)
	// What was admitted was answered: nothing that is in the log was left
	// without an answer, so whatever is sent again is new.
	for w, ids := range l.order {
		if len(w) < 8 {
			continue
		}
		for _, id := range ids {
			if r := l.acked[id]; r.Status == memory.StatusDuplicate {
				t.Errorf("%s was written while draining, but not answered", id)
			}
		}
	}
	sameEverywhere(t, d)
}
