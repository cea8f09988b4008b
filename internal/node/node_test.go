package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"mneme/internal/api"
	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/storage"
	"mneme/internal/storage/encfs"
	"mneme/memory"
)

func TestMain(m *testing.M) {
	eventlog.ShortenElections() // tests run side by side: before the first server of any of them
	goleak.VerifyTestMain(m)
}

// patience bounds what would otherwise hang.
const patience = time.Minute

// quiet is the configuration of a node for tests: free ports, no reserve.
func quiet(dir string) Config {
	return Config{DataDir: dir, HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", ReserveBytes: -1}
}

func open(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, n) })
	return n
}

// shut closes a node; a second time does nothing.
func shut(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	select {
	case <-n.Done():
	default:
		t.Error("a closed node is not done")
	}
}

func capture(n *Node, text string) (memory.CaptureResult, error) {
	r, err := n.writes.Capture(context.Background(), "default", []memory.Capture{{Agent: "tester", Text: text}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err != nil {
		return memory.CaptureResult{}, err
	}
	if e := r.Results[0].Error; e != nil {
		return r.Results[0], memory.Errorf(e.Code, "%s", e.Detail)
	}
	return r.Results[0], nil
}

func must(t *testing.T, n *Node, text string) memory.CaptureResult {
	t.Helper()
	r, err := capture(n, text)
	if err != nil {
		t.Fatalf("capture %q: %v", text, err)
	}
	return r
}

func find(t *testing.T, n *Node, query string) []string {
	t.Helper()
	r, err := n.reads.Search(t.Context(), memory.Access{Namespace: "default"}, memory.SearchRequest{Query: query})
	if err != nil {
		t.Fatalf("search: %v", err)
	}
	var out []string
	for _, h := range r.Results {
		out = append(out, h.Text)
	}
	return out
}

func shardOf(t *testing.T, n *Node) memory.ShardStatus {
	t.Helper()
	s, err := n.operator.Status(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return s.Shards[0]
}

// fails opens a node that must not start, and checks how it says so.
func fails(t *testing.T, cfg Config, kind string) *StartError {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err == nil {
		shut(t, n)
		t.Fatalf("the node started; it should fail as %s", kind)
	}
	var e *StartError
	if !errors.As(err, &e) || e.Kind != kind || e.Message == "" {
		t.Fatalf("%v (%+v), want %s", err, e, kind)
	}
	return e
}

func post(t *testing.T, n *Node, path, body string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Post("http://"+n.HTTPAddr()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestNoSpaceRefusesWritesByEveryWayAndServesReads(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	must(t, n, "written while there was space")
	before := shardOf(t, n)
	n.space.reserve = 1 << 60 // no disk has that much
	if _, err := capture(n, "one too many"); memory.CodeOf(err) != memory.CodeNoSpace {
		t.Errorf("capture: %v", err)
	}
	status, body := post(t, n, "/v1/namespaces/default/events", `{"agent":"tester","text":"one too many"}`)
	if status != 507 || !strings.Contains(body, `"no_space"`) {
		t.Errorf("REST: %d %s", status, body)
	}
	nc, err := nats.Connect(n.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if m, err := nc.Request("mem.in.default.tester.capture", []byte("one too many"), patience); err != nil || !strings.Contains(string(m.Data), "507") {
		t.Errorf("NATS: %v, %v", m, err)
	}
	if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "more"}); memory.CodeOf(err) != memory.CodeNoSpace {
		t.Errorf("namespace: %v", err)
	}
	if got := find(t, n, "space"); len(got) != 1 {
		t.Errorf("reads: %q", got)
	}
	if after := shardOf(t, n); after.Position != before.Position || after.StateHash != before.StateHash {
		t.Errorf("something was written: %+v", after)
	}
	if ok, checks := n.doctor.Ready(); !ok || !strings.Contains(fmt.Sprint(checks), "reserve") {
		t.Errorf("ready %v, %v", ok, checks)
	}
	if r, err := n.operator.Doctor(t.Context()); err != nil || r.OK {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	n.space.reserve = 0
	must(t, n, "there is space again")
}

func TestStartWithoutSpaceIsRefused(t *testing.T) {
	n := &Node{core: &core{dir: &dataDir{path: "d"}, space: &space{reserve: 1, now: time.Now, at: time.Now(), ok: true, free: 0}}}
	var e *StartError
	if err := n.checkStartSpace(); !errors.As(err, &e) || e.Kind != StartOther || e.Hint == "" {
		t.Errorf("%v", err)
	}
}

func TestClockThatJumpsBack(t *testing.T) {
	var offset atomic.Int64
	cfg := quiet(t.TempDir())
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	n := open(t, cfg)
	first := must(t, n, "before the jump")
	offset.Store(int64(-30 * time.Second)) // within what is borne: time goes on from the last event
	second := must(t, n, "a little back")
	offset.Store(int64(-time.Hour))
	_, err := capture(n, "an hour back")
	var e *memory.Error
	if !errors.As(err, &e) || e.Code != memory.CodeUnavailable || e.RetryAfter < 50*time.Minute {
		t.Errorf("an hour back: %v", err)
	}
	if got := find(t, n, "jump"); len(got) == 0 {
		t.Error("reads are down")
	}
	a, err := n.reads.Get(t.Context(), memory.Access{Namespace: "default"}, first.RecordID, 0)
	b, berr := n.reads.Get(t.Context(), memory.Access{Namespace: "default"}, second.RecordID, 0)
	if err != nil || berr != nil || !b.CreatedAt.After(a.CreatedAt) {
		t.Errorf("sealed at %s, then %s; %v %v", a.CreatedAt, b.CreatedAt, err, berr)
	}
	shut(t, n) // over a restart too
	n = open(t, cfg)
	if _, err := capture(n, "still an hour back"); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("after a restart: %v", err)
	}
	offset.Store(int64(48 * time.Hour)) // forward jumps are taken
	must(t, n, "the clock is right again")
}

// editRows changes one row of a stopped node's state.
func editRows(t *testing.T, dir string, change func(key, value []byte) []byte) {
	t.Helper()
	gen, err := filepath.Glob(filepath.Join(dir, "shards", "0", "state", "gen-*"))
	if err != nil || len(gen) != 1 {
		t.Fatal(gen, err)
	}
	keys, err := keyring.Open(keyring.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	db, err := storage.Open(storage.Options{Dir: gen[0], FS: encfs.New(nil, keys.Storage()), Merge: projections.MergeTable()})
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	batch := db.NewBatch()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for it.First(); it.Valid(); it.Next() {
		if v := change(it.Key(), it.Value()); v != nil {
			changed++
			if err := batch.Set(bytes.Clone(it.Key()), v, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(it.Close(), db.Commit(batch, true), batch.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if changed != 1 {
		t.Fatalf("%d rows were changed", changed)
	}
}

func TestStateOfANewerVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	must(t, n, "kept")
	identity := n.served[0].state.Cursor().Identity // ends the cursor's row
	shut(t, n)
	editRows(t, dir, func(_, value []byte) []byte {
		if identity != "" && bytes.HasSuffix(value, []byte(identity)) {
			return append([]byte{99}, value[1:]...)
		}
		return nil
	})
	fails(t, quiet(dir), StartNewer)
	if _, err := os.Stat(filepath.Join(dir, "shards", "0", "state")); err != nil {
		t.Errorf("the newer state was taken away: %v", err)
	}
}

func TestWhatTheConfigurationMustNotSay(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no directory":   func(c *Config) { c.DataDir = "" },
		"engine":         func(c *Config) { c.VectorEngine = "fast" },
		"auth":           func(c *Config) { c.Auth = "maybe" },
		"address":        func(c *Config) { c.HTTPAddr = "here" },
		"off loopback":   func(c *Config) { c.NATSAddr = "0.0.0.0:0" },
		"embedder":       func(c *Config) { c.Embedder = embed.Config{Provider: "oracle"} },
		"short token":    func(c *Config) { c.Auth, c.AuthToken = "token", "x" },
		"bad namespace":  func(c *Config) { c.Namespaces = []string{"No Name"} },
		"taken by _name": func(c *Config) { c.Namespaces = []string{"_x"} },
	} {
		cfg := quiet(t.TempDir())
		change(&cfg)
		n, err := Open(t.Context(), cfg)
		var e *StartError
		if n != nil {
			shut(t, n)
		}
		if !errors.As(err, &e) || e.Kind != StartUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStartErrorOfEachCause(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	fails(t, quiet(dir), StartInUse)
	cfg := quiet(t.TempDir())
	cfg.HTTPAddr = n.HTTPAddr()
	if e := fails(t, cfg, StartAddress); e.Addr != n.HTTPAddr() {
		t.Errorf("%+v", e)
	}
	cfg = quiet(t.TempDir())
	cfg.NATSAddr = strings.TrimPrefix(n.NATSURL(), "nats://")
	fails(t, cfg, StartAddress)
	cfg = quiet(t.TempDir())
	cfg.NATSURL = "nats://127.0.0.1:1"
	fails(t, cfg, StartUnreachable)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, quiet(filepath.Join(file, "below")), StartReadOnly)
	shut(t, n)
	b, err := os.ReadFile(filepath.Join(dir, nodeJSON))
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range map[string]string{
		StartNewer: strings.Replace(string(b), `"format": 1`, `"format": 99`, 1), StartDamaged: strings.Replace(string(b), modeStandalone, "standalope", 1),
		StartUsage: toJSON(t, func() nodeFile {
			var f nodeFile
			if err := json.Unmarshal(b, &f); err != nil {
				t.Fatal(err)
			}
			f.Mode = "cluster"
			f.Check = f.check()
			return f
		}()),
	} {
		for _, name := range []string{nodeJSON, nodeCopy} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fails(t, quiet(dir), kind)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A first start that failed leaves no half-made directory behind.
func TestFailedFirstStartIsForgotten(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	cfg := quiet(t.TempDir())
	cfg.NATSAddr = strings.TrimPrefix(n.NATSURL(), "nats://")
	fails(t, cfg, StartAddress)
	again := open(t, quiet(cfg.DataDir))
	must(t, again, "the default namespace is there")
	if _, err := again.writes.DeleteNamespace(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	shut(t, again)
	again = open(t, quiet(cfg.DataDir)) // one that was deleted stays so
	if list, err := again.reads.Namespaces(t.Context(), memory.NamespacesRequest{}); err != nil || len(list.Namespaces) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestSnapshotsAreTakenAndStartedFrom(t *testing.T) {
	cfg := quiet(t.TempDir())
	cfg.SnapshotThreshold = 4
	n := open(t, cfg)
	for i := range 20 {
		must(t, n, fmt.Sprint("memory ", i))
	}
	want := shardOf(t, n)
	shut(t, n)
	if got, err := filepath.Glob(filepath.Join(cfg.DataDir, "shards", "0", "snapshots", "*")); err != nil || len(got) == 0 {
		t.Fatalf("no snapshot was taken: %v", err)
	}
	n = open(t, cfg)
	if got := shardOf(t, n); got.StateHash != want.StateHash || got.Records != want.Records {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestOlderStateCatchesUpOverACutRaftLog: with an older copy of the state, and
// without the snapshots that would bridge to the beginning of raft.db, a node ended
// with exit 7, although the event log has everything.
func TestOlderStateCatchesUpOverACutRaftLog(t *testing.T) {
	cfg := quiet(t.TempDir())
	cfg.SnapshotThreshold = 4
	state := filepath.Join(cfg.DataDir, "shards", "0", "state")
	n := open(t, cfg)
	must(t, n, "memory of the beginning")
	shut(t, n)
	older := image(t, state)
	n = open(t, cfg)
	for i := range 60 {
		must(t, n, fmt.Sprint("memory ", i))
	}
	want := shardOf(t, n)
	shut(t, n)
	putBack(t, older, state)
	if err := os.RemoveAll(filepath.Join(cfg.DataDir, "shards", "0", "snapshots")); err != nil {
		t.Fatal(err)
	}
	n = open(t, cfg)
	if got := shardOf(t, n); got.StateHash != want.StateHash || got.Records != want.Records {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(t, n, "and it goes on")
	aside, err := filepath.Glob(filepath.Join(cfg.DataDir, "shards", "0", "raft.db.damaged-*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("the fault did not bite: %v, %v", aside, err)
	}
}

func TestRebuildWhileWriting(t *testing.T) {
	t.Parallel()
	n := open(t, quiet(t.TempDir()))
	for i := range 50 {
		must(t, n, fmt.Sprint("before ", i))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var written atomic.Int64
	for w := range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := capture(n, fmt.Sprintf("meanwhile %d of %d", i, w)); err != nil {
					t.Errorf("a write during a rebuild: %v", err)
					return
				}
				written.Add(1)
			}
		})
	}
	for range 3 {
		// What is written meanwhile is no damage: both hashes are of one position.
		if r, err := n.operator.Rebuild(t.Context(), nil); err != nil || r.Shards[0].StateHash != r.Shards[0].Before {
			t.Errorf("rebuild: %+v, %v", r, err)
		}
	}
	close(stop)
	wg.Wait()
	want := shardOf(t, n)
	if want.Records != uint64(50+written.Load()) {
		t.Errorf("%d records, %d were written", want.Records, 50+written.Load())
	}
	r, err := n.operator.Rebuild(t.Context(), func(done, total uint64) {
		if done > total {
			t.Errorf("progress %d of %d", done, total)
		}
	})
	if err != nil || r.Shards[0].StateHash != want.StateHash || r.Shards[0].Before != want.StateHash {
		t.Errorf("%+v, %v; want %s", r, err, want.StateHash)
	}
	// Only one at a time.
	_ = n.upkeep.exclusive(t.Context(), func() error {
		if _, err := n.operator.Rebuild(t.Context(), nil); memory.CodeOf(err) != memory.CodeConflict {
			t.Errorf("a second one: %v", err)
		}
		return nil
	})
}

func TestDrainingNodeRefusesAndIsNotReady(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	r := must(t, n, "kept")
	if ok, _ := n.doctor.Ready(); !ok {
		t.Error("not ready")
	}
	n.draining.Store(true)
	if ok, _ := n.doctor.Ready(); ok {
		t.Error("ready while draining")
	}
	_, err := capture(n, "too late")
	_, err2 := n.writes.Forget(t.Context(), "default", "tester", r.RecordID, 0)
	_, err3 := n.writes.Revise(t.Context(), "default", "tester", r.RecordID, memory.Revision{}, 0, "")
	_, err4 := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "late"})
	_, err5 := n.writes.ChangeNamespace(t.Context(), "default", memory.PatchNamespace{})
	_, err6 := n.writes.DeleteNamespace(t.Context(), "default")
	for i, err := range []error{err, err2, err3, err4, err5, err6} {
		if memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("write %d while draining: %v", i, err)
		}
	}
}

func TestDivergenceIsNoticedWhileRunning(t *testing.T) {
	var logged syncBuffer
	cfg := quiet(t.TempDir())
	cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	n := open(t, cfg)
	must(t, n, "in the log")
	js, err := n.nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	// Nobody else can write to the log; the node's own connection can.
	if _, err := js.Publish("mem.log.0", []byte("not a frame")); err != nil {
		t.Fatal(err)
	}
	n.served[0].checkLog(t.Context())
	_, err = capture(n, "after the foreign message")
	switch code := memory.CodeOf(err); {
	case err == nil: // adopted as void
	case code == memory.CodeLogDiverged || code == memory.CodeUnavailable:
	default:
		t.Errorf("%v", err)
	}
	if got := find(t, n, "log"); len(got) == 0 {
		t.Error("reads are down")
	}
	shut(t, n)
	n = open(t, cfg)
	must(t, n, "life goes on")
	if r, err := n.operator.VerifyLog(t.Context(), nil); err != nil || len(r.Shards) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := n.operator.Rebuild(t.Context(), nil); err != nil || r.Shards[0].StateHash != r.Shards[0].Before {
		t.Errorf("%+v, %v", r, err)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
