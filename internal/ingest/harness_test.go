package ingest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
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

// world is everything a shard needs, on a fake log.
type world struct {
	t      testing.TB
	stream eventlog.Stream
	keys   *keyring.Keyring
	state  *projections.State
	group  *raftfsm.Group
	shard  *Shard
	now    func() time.Time
	refuse func() *memory.Error
	opt    func(*Options)
}

func newWorld(t testing.TB, stream eventlog.Stream) *world {
	t.Helper()
	dir := t.TempDir()
	keys, err := keyring.Open(keyring.Options{Dir: dir, AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	state, err := projections.Open(projections.Options{Dir: dir + "/state"})
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
	w := &world{t: t, stream: stream, keys: keys, state: state, group: group, now: time.Now}
	t.Cleanup(func() {
		w.stop()
		if err := group.Close(); err != nil {
			t.Error(err)
		}
		if err := state.Close(); err != nil {
			t.Error(err)
		}
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) start() error {
	opt := Options{Stream: w.stream, Group: w.group, Term: w.group.Term(), State: w.state, Keys: w.keys,
		Book: settings.NewBook(w.keys), Now: func() time.Time { return w.now() }, Refuse: w.refuse}
	if w.opt != nil {
		w.opt(&opt)
	}
	var err error
	w.shard, err = Start(context.Background(), opt)
	return err
}

func (w *world) mustStart() {
	w.t.Helper()
	if err := w.start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	if w.shard != nil {
		if err := w.shard.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
		w.shard = nil
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
	if _, err := w.shard.CreateNamespace(context.Background(), name, nil, builtinSpace(w.t)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) capture(ns string, c memory.Capture) memory.CaptureResult {
	w.t.Helper()
	if c.Agent == "" {
		c.Agent = "agent-1"
	}
	resp, err := w.shard.Capture(context.Background(), ns, []Item{{Capture: c}}, memory.WaitApplied)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.Results[0]
}

func (w *world) hash() string {
	w.t.Helper()
	v := w.state.View()
	defer v.Close()
	h, err := v.Hash()
	if err != nil {
		w.t.Fatal(err)
	}
	return h.String()
}

func TestCaptureGoesThrough(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	w.mustStart()
	w.namespace("team-a")
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
