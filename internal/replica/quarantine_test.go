package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
)

// allergic is a machine that cannot apply the events of one sealed envelope, as a fold with
// a bug would, until that is in quarantine.
type allergic struct {
	raftfsm.Resumer
	to   func() []byte // nil = it applies everything
	cure map[projections.Ref]bool
}

func (m *allergic) Apply(entries []raftfsm.Entry) ([]any, error) {
	for i, e := range entries {
		at, ok := m.holds(e.Data)
		if !ok || m.cure[at] {
			continue
		}
		if i > 0 {
			if results, err := m.Resumer.Apply(entries[:i]); err != nil {
				return results, err
			}
		}
		return nil, &raftfsm.ApplyError{Index: e.Index, Err: &projections.PoisonError{At: events.Position{Seq: at.Seq, Index: at.Index}, Cause: errors.New("boom")}}
	}
	return m.Resumer.Apply(entries)
}

func (m *allergic) holds(command []byte) (projections.Ref, bool) {
	poison := m.to()
	rg, err := projections.DecodeRange(command)
	if err != nil || poison == nil {
		return projections.Ref{}, false
	}
	for i, rf := range rg.Frames {
		f, err := events.DecodeFrame(rf.Bytes)
		if err != nil {
			continue
		}
		for n, e := range f.Events {
			if bytes.Equal(e, poison) {
				return projections.Ref{Seq: rg.Previous + uint64(i) + 1, Index: uint32(n)}, true
			}
		}
	}
	return projections.Ref{}, false
}

func (m *allergic) Resume(e raftfsm.Entry, halted error) bool {
	if !m.Resumer.Resume(e, halted) {
		return false
	}
	if q, err := projections.DecodeQuarantine(e.Data); err == nil {
		m.cure[q.At] = true
	}
	return true
}

// allergen has the replicas of a cluster fail at the first captured event that is
// proposed once armed.
type allergen struct {
	armed atomic.Bool
	event atomic.Pointer[[]byte]
}

func (a *allergen) now() []byte {
	if e := a.event.Load(); e != nil {
		return *e
	}
	return nil
}

// choose makes the last event of the first range with captures the poison.
func (a *allergen) choose(command []byte) {
	rg, err := projections.DecodeRange(command)
	if err != nil || !a.armed.Load() || a.event.Load() != nil {
		return
	}
	for _, rf := range rg.Frames {
		f, err := events.DecodeFrame(rf.Bytes)
		if err != nil {
			continue
		}
		for _, e := range f.Events {
			if env, err := events.DecodeEnvelope(e); err == nil && env.Type == events.TypeCaptured {
				a.event.Store(&e)
			}
		}
	}
}

// open wraps the machine of each replica.
func (a *allergen) open(next func(raftfsm.Options) (Group, error)) func(raftfsm.Options) (Group, error) {
	return func(o raftfsm.Options) (Group, error) {
		o.Machine = &allergic{o.Machine.(raftfsm.Resumer), a.now, map[projections.Ref]bool{}}
		return next(o)
	}
}

// chooser is a group that looks at what is proposed.
type chooser struct {
	*raftfsm.Group
	a *allergen
}

func (c chooser) Propose(ctx context.Context, data []byte) *raftfsm.Future {
	c.a.choose(data)
	return c.Group.Propose(ctx, data)
}

func (c chooser) Resumption() raftfsm.Resumption { return raftfsm.Resumption{Group: c.Group} }

func (r *rig) awaitPoison() *projections.PoisonError {
	r.t.Helper()
	select {
	case <-r.Group().HaltedCh():
	case <-time.After(patience):
		r.t.Fatal("it does not halt")
	}
	p := r.Poison()
	if p == nil {
		r.t.Fatal(r.Group().Halted())
	}
	return p
}

// A shard whose replicas had all halted at one event stayed so, on all nodes, until there
// was another program. Once the event is in quarantine it goes on everywhere: on those that
// had halted, on one that was away, on one that lost its state, and on one that joins by a
// snapshot; and the log leads to the same state, whoever folds it.
func TestPoisonEventIsPutInQuarantine(t *testing.T) {
	a := &allergen{}
	c := newClusterWith(t, func(i int, o *Options) {
		open := o.OpenGroup
		o.OpenGroup = a.open(func(o raftfsm.Options) (Group, error) {
			g, err := open(o)
			if err != nil {
				return nil, err
			}
			return chooser{g.(*raftfsm.Group), a}, nil
		})
	})
	lead := c.replicas[0]
	lead.namespace("team")
	for i := range 3 {
		lead.mustCapture(fmt.Sprint("memory ", i))
	}
	c.same(lead)
	before := lead.State().Cursor()

	away := c.replicas[2]
	away.close()
	a.armed.Store(true)
	if err := lead.capture("the poison"); err == nil {
		t.Fatal("what halts the shard was acknowledged")
	}
	poison := lead.awaitPoison()
	if poison.At.Seq != before.Seq+1 {
		t.Errorf("%v, the state stood at %d", poison, before.Seq)
	}
	follower := c.replicas[1]
	if other := follower.awaitPoison(); other.At != poison.At {
		t.Errorf("one halts at %v, the other at %v", poison.At, other.At)
	}
	for _, r := range []*rig{lead, follower} { // reads go on
		if _, at := hashOf(t, r.State()); at.Seq != before.Seq {
			t.Errorf("a replica stands at %d, all should at %d", at.Seq, before.Seq)
		}
	}
	if _, err := lead.Writer(); err == nil {
		t.Error("a shard that has halted takes writes")
	}

	// Another event is not what stopped it.
	wrong := projections.Quarantine{At: projections.Ref{Seq: before.Seq, Index: 0}, By: "ops"}
	if res, err := lead.Quarantine(t.Context(), wrong); !errors.Is(err, raftfsm.ErrHalted) || res.Done {
		t.Fatalf("%+v, %v", res, err)
	}
	q := projections.Quarantine{At: poison.Ref(), By: "ops", Note: []byte("sealed")}
	if res, err := lead.Quarantine(t.Context(), q); err != nil || !res.Done {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := lead.machine.untold(); err != nil && !strings.Contains(err.Error(), "does not tell yet") {
		t.Error(err)
	}
	lead.awaitWriter()
	if err := lead.machine.untold(); err != nil {
		t.Error("the writer has begun, and the log does not tell: ", err)
	}
	if res, err := lead.Quarantine(t.Context(), q); err != nil || !res.Done {
		t.Errorf("once more: %+v, %v", res, err)
	}
	lead.mustCapture("and on it goes")

	// One that was away meets the event, and the quarantine behind it.
	c.replicas[2] = c.open(2, false)
	c.same(lead)
	for i, r := range c.replicas {
		if p := r.Poison(); p != nil || r.Group().Halted() != nil {
			t.Errorf("replica %d: %v", i, r.Group().Halted())
		}
		v := r.State().View()
		noted, err := v.Noted()
		if err = errors.Join(err, v.Close()); err != nil || len(noted) != 1 || !noted[0].Told || noted[0].By != "ops" {
			t.Errorf("replica %d: %+v, %v", i, noted, err)
		}
	}
	// A rebuild beside the state, and one of a state that is lost, up to a snapshot.
	rebuilt, err := follower.Rebuild(t.Context(), nil)
	if err != nil || rebuilt.Before != rebuilt.After {
		t.Errorf("%+v, %v", rebuilt, err)
	}
	if err := follower.Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	dir := follower.opt.stateDir()
	follower.close()
	if err := os.WriteFile(dir+"/CURRENT", []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.replicas[1] = c.open(1, false)
	c.same(lead)
	// One that joins by a snapshot.
	if err := lead.Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	c.replicas[2].close()
	if err := os.RemoveAll(c.dirs[2]); err != nil {
		t.Fatal(err)
	}
	c.replicas[2] = c.open(2, false)
	lead.mustCapture("for one that joins")
	c.same(lead)
}

// A shard of one replica goes on as well, also where the node was started in between.
func TestPoisonEventOfASingleReplica(t *testing.T) {
	a, s, dir := &allergen{}, newShelf(t), t.TempDir()
	change := func(o *Options) {
		o.OpenGroup = a.open(func(o raftfsm.Options) (Group, error) {
			g, err := raftfsm.Open(o)
			if err != nil {
				return nil, err
			}
			return chooser{g, a}, nil
		})
	}
	open := func() *rig {
		r := &rig{t: t, views: newRecorder(), worker: newSentry()}
		opt := s.options(dir)
		change(&opt)
		var err error
		if r.Replica, err = Open(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.close)
		if err := r.Start(t.Context(), r.views, r.worker); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	r.namespace("team")
	r.mustCapture("a memory")
	a.armed.Store(true)
	if err := r.capture("the poison"); err == nil {
		t.Fatal("what halts the shard was acknowledged")
	}
	poison := r.awaitPoison()
	r.close()
	r = open()
	if again := r.awaitPoison(); again.At != poison.At {
		t.Fatalf("%v, and %v after a start", poison, again)
	}
	q := projections.Quarantine{At: poison.Ref(), By: "ops"}
	for {
		res, err := r.Quarantine(t.Context(), q)
		if err == nil && res.Done {
			break
		}
		if !errors.Is(err, raftfsm.ErrNotLeader) {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	r.awaitWriter()
	r.mustCapture("and on it goes")
	s.sameAsLog(r.State())
	// The state is lost: the log has all of it.
	if err := errors.Join(func() error { r.close(); return nil }(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	r = open()
	r.awaitWriter()
	s.sameAsLog(r.State())
}
