package ingest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/settings"
	"mneme/memory"
)

// machine drives a state for Raft, as the node does.
type machine struct{ *projections.State }

func (m machine) Apply(entries []raftfsm.Entry) ([]any, error) {
	commands := make([]projections.Command, len(entries))
	for i, e := range entries {
		commands[i] = projections.Command{Index: e.Index, Term: e.Term, Data: e.Data}
	}
	return m.State.Apply(commands)
}

func (m machine) Checkpoint(dir string) (uint64, error) {
	return m.State.Cursor().Seq, m.State.Checkpoint(dir)
}

// world is everything a shard needs, on a fake log.
type world struct {
	t      testing.TB
	stream eventlog.Stream
	keys   *keyring.Keyring
	state  *projections.State
	group  *raftfsm.Group
	writer *Writer
	now    func() time.Time
	boot   func() time.Duration // nil: follows now, as over a suspend
	clock  *Clock               // nil: each start is another process
	refuse func() *memory.Error
	opt    func(*Options)
	wake   atomic.Pointer[func()] // called when the state has moved
}

func newWorld(t testing.TB, stream eventlog.Stream) *world {
	t.Helper()
	keys, err := keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	return newWorldWith(t, stream, keys)
}

// newWorldWith is a world whose keys exist: another node of a cluster, or one
// whose state is gone.
func newWorldWith(t testing.TB, stream eventlog.Stream, keys *keyring.Keyring) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, stream: stream, keys: keys, now: time.Now}
	state, err := projections.Open(projections.Options{Dir: dir + "/state", OnApply: func(*projections.Applied) {
		if f := w.wake.Load(); f != nil {
			(*f)()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	group, err := raftfsm.Open(raftfsm.Options{Dir: dir + "/raft", ID: "n1", Machine: machine{state}, Bootstrap: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := group.WaitLeader(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.state, w.group = state, group
	t.Cleanup(func() {
		w.stop()
		if err := group.Close(); err != nil {
			t.Error(err)
		}
		if err := state.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) start() error {
	opt := Options{Stream: w.stream, Group: w.group, Term: w.group.Term(), State: w.state, Keys: w.keys,
		Settings: settings.NewCache(w.keys), Now: func() time.Time { return w.now() }, Refuse: w.refuse,
		Clock: w.clock}
	if w.clock == nil {
		opt.Clock = NewClock(opt.Now, func() time.Duration {
			if w.boot != nil {
				return w.boot()
			}
			return w.now().Sub(time.Unix(0, 0))
		})
	}
	if w.opt != nil {
		w.opt(&opt)
	}
	var err error
	w.writer, err = Start(context.Background(), opt)
	return err
}

func (w *world) mustStart() {
	w.t.Helper()
	if err := w.start(); err != nil {
		w.t.Fatal(err)
	}
}

// started is a world whose writer runs, with a namespace.
func started(t testing.TB, stream eventlog.Stream) *world {
	t.Helper()
	w := newWorld(t, stream)
	w.mustStart()
	w.namespace("team-a")
	return w
}

func (w *world) stop() {
	if w.writer != nil {
		if err := w.writer.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
		w.writer = nil
	}
}

// builtinSpace is the setting of a namespace with the built-in embedder.
func builtinSpace(t testing.TB) string {
	t.Helper()
	e, err := embed.Open(context.Background(), embed.Config{}, embed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return settings.EncodeSpace(e.Space())
}

func (w *world) namespace(name string) {
	w.t.Helper()
	if _, err := w.writer.CreateNamespace(context.Background(), name, nil, builtinSpace(w.t)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) capture(ns string, c memory.Capture) memory.CaptureResult {
	w.t.Helper()
	if c.Agent == "" {
		c.Agent = "agent-1"
	}
	resp, err := w.writer.Capture(context.Background(), ns, []Item{{Capture: c}}, memory.WaitApplied)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.Results[0]
}

func (w *world) hash() string {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	return v.Hash().String()
}

// find gives the head of a record, by its public id.
func (w *world) find(v *projections.View, id string) (projections.Head, bool) {
	w.t.Helper()
	rec, err := events.ParseID(id)
	if err != nil {
		w.t.Fatalf("record id %q: %v", id, err)
	}
	var h projections.Head
	ok := false
	for _, ns := range v.Namespaces() { // ids are given once
		if !ok && err == nil {
			h, ok, err = v.Head(ns.ID, rec)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return h, ok
}

// content opens the event at a reference.
func (w *world) content(v *projections.View, at projections.Ref) *events.Content {
	w.t.Helper()
	env, _, err := v.Envelope(at)
	if err != nil {
		w.t.Fatal(err)
	}
	key, err := w.keys.KeyByID(env.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := derive.OpenContent(key, &env)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// text is what a record says now, and its version; version 0 = it lives no more.
func (w *world) text(id string) (string, int) {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	h, ok := w.find(v, id)
	if !ok || !h.Living {
		return "", 0
	}
	doc, ok, err := v.Doc(h.Partition, h.Doc)
	if err != nil || !ok {
		w.t.Fatalf("document of %s: %v %v", id, ok, err)
	}
	return w.content(v, doc.At).Text, int(h.Versions)
}

// texts lists the texts of a record's versions, oldest first.
func (w *world) texts(id string) []string {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	rec, _ := events.ParseID(id)
	h, _ := w.find(v, id)
	p, _ := v.PartitionByID(h.Partition)
	list, err := v.History(p.Namespace, rec)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		if e.Version != 0 {
			out = append(out, w.content(v, e.At).Text)
		}
	}
	return out
}

// audit lists a namespace's audit rows; "" is the system.
func (w *world) audit(ns string) []projections.AuditRow {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	var id events.ID
	if ns != "" {
		info, ok := v.Namespace(ns)
		if !ok {
			w.t.Fatalf("namespace %s is not there", ns)
		}
		id = info.ID
	}
	var out []projections.AuditRow
	err := v.Audit(id, projections.Ref{}, func(r projections.AuditRow) (bool, error) {
		out = append(out, r)
		return true, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// refold folds the log into an empty state and compares.
func (w *world) refold() {
	w.t.Helper()
	state, err := projections.Open(projections.Options{Dir: w.t.TempDir()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer state.Close()
	v := state.View()
	d, err := derive.New(w.keys, v)
	if err != nil {
		w.t.Fatal(err)
	}
	v.Close()
	n, err := Replay(context.Background(), w.stream, state, d, 0, func(r *projections.Range) error {
		res, err := state.ApplyLocal(r)
		if err == nil && !res.Done() {
			err = fmt.Errorf("range after %d is %s", r.Previous, res.Answer)
		}
		return err
	})
	if err != nil {
		w.t.Fatalf("fold after %d messages: %v", n, err)
	}
	a, b := state.View(), w.state.View()
	defer a.Close()
	defer b.Close()
	ca, cb := a.Cursor(), b.Cursor()
	if ca.Seq != cb.Seq || ca.Chain != cb.Chain || ca.Epoch != cb.Epoch || ca.Events != cb.Events {
		w.t.Fatalf("the log's fold stands at %+v, the state at %+v", ca, cb)
	}
	if ha, hb := a.Hash(), b.Hash(); ha != hb {
		w.t.Fatalf("the log folds to %s, the state is %s", ha, hb)
	}
}

// try captures one memory and gives its result or the request's error.
func (w *world) try(ns string, c memory.Capture) (memory.CaptureResult, error) {
	if c.Agent == "" {
		c.Agent = "agent-1"
	}
	resp, err := w.writer.Capture(context.Background(), ns, []Item{{Capture: c}}, memory.WaitApplied)
	if err != nil {
		return memory.CaptureResult{}, err
	}
	return resp.Results[0], itemError(&resp.Results[0])
}

// itemError is a result's error as a request of its own would have it.
func itemError(r *memory.CaptureResult) error {
	if r.Error == nil {
		return nil
	}
	return memory.Errorf(r.Error.Code, "%s", r.Error.Detail).WithHint("%s", r.Error.Hint)
}

func wantCode(t testing.TB, err error, code memory.Code) *memory.Error {
	t.Helper()
	if err == nil || memory.CodeOf(err) != code {
		t.Fatalf("error is %v, want %s", err, code)
	}
	return memory.AsError(err)
}

// await turns until cond holds; the bound is against hanging only.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// gate is a fake whose appends can be held at the door.
type gate struct {
	*eventlogtest.Fake
	mu      sync.Mutex
	entered chan struct{}
	open    chan struct{}
}

func newGate() *gate { return &gate{Fake: eventlogtest.NewFake()} }

// shut holds appends from now on. Each tells on entered when it is held; let
// opens for good.
func (g *gate) shut() (entered <-chan struct{}, let func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entered, g.open = make(chan struct{}, 1000), make(chan struct{})
	open := g.open
	return g.entered, sync.OnceFunc(func() {
		g.mu.Lock()
		g.open = nil
		g.mu.Unlock()
		close(open)
	})
}

func (g *gate) Append(ctx context.Context, data []byte, last uint64) error {
	g.mu.Lock()
	open, entered := g.open, g.entered
	g.mu.Unlock()
	if open != nil {
		entered <- struct{}{}
		select {
		case <-open:
		case <-ctx.Done():
		}
	}
	return g.Fake.Append(ctx, data, last)
}

// last is the log's last sequence.
func (w *world) last() uint64 {
	info, err := w.stream.Info(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Last
}

func position(t testing.TB, s string) events.Position {
	t.Helper()
	p, err := events.ParsePosition(s)
	if err != nil {
		t.Fatalf("position %q: %v", s, err)
	}
	return p
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCaptureGoesThrough(t *testing.T) {
	w := started(t, eventlogtest.NewFake())
	for i := range 20 {
		r := w.capture("team-a", memory.Capture{Text: fmt.Sprintf("deploy number %d happens on Tuesday", i), ID: fmt.Sprint(i)})
		if r.Status != memory.StatusCreated {
			t.Fatalf("capture %d: %+v", i, r)
		}
	}
	again := w.capture("team-a", memory.Capture{Text: "deploy number 3 happens on Tuesday", ID: "3"})
	if again.Status != memory.StatusDuplicate {
		t.Fatalf("repeat: %+v", again)
	}
	other := w.capture("team-a", memory.Capture{Text: "something else", ID: "3"})
	if other.Status != memory.StatusConflict || other.RecordID != again.RecordID {
		t.Fatalf("reused id: %+v", other)
	}
	before := w.hash()
	w.stop()
	w.mustStart()
	if got := w.hash(); got != before {
		t.Fatalf("hash changed over a restart: %s, was %s", got, before)
	}
}
