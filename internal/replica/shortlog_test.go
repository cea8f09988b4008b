package replica

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// toldLog is a log of which a test tells what a look at it shows.
type toldLog struct {
	eventlog.Stream
	looks int
	tell  func(look int, in eventlog.Info) (eventlog.Info, error)
}

func (l *toldLog) Info(ctx context.Context) (eventlog.Info, error) {
	in, err := l.Stream.Info(ctx)
	l.looks++
	if err == nil {
		return l.tell(l.looks, in)
	}
	return in, err
}

// A state that was built again while the log's leader told less than there is ended in front
// of the snapshot, with the snapshot's place in Raft's log.
func TestRebuildEndedInFrontOfTheSnapshot(t *testing.T) {
	var log *toldLog
	var damage error
	c := newClusterWith(t, func(i int, o *Options) {
		if i == 2 && log != nil {
			o.Stream, o.Damaged = log, damage
		}
	})
	lead := c.replicas[0]
	lead.namespace("team")
	for i := range 6 {
		lead.mustCapture(fmt.Sprint("memory ", i))
	}
	c.same(lead)
	if err := c.replicas[2].Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	was := c.replicas[2].State().Cursor()
	c.replicas[2].close()

	// It tells less for as long as anybody waits.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	damage = fmt.Errorf("%w: to be built again", storage.ErrDamaged)
	log = &toldLog{Stream: c.stream, tell: func(look int, in eventlog.Info) (eventlog.Info, error) {
		if look == 4 {
			cancel()
		}
		in.Last = was.Seq - 3
		return in, nil
	}}
	if r, err := Open(ctx, c.options(2, false)); !errors.Is(err, context.Canceled) {
		if err == nil {
			t.Errorf("was at %d, built again up to %d", was.Seq, r.State().Cursor().Seq)
			_ = r.Close()
		}
		t.Fatal(err)
	}

	// The next start goes on, while first one look and then the leader behind it tell less.
	damage = nil
	log = &toldLog{Stream: c.stream, tell: func(look int, in eventlog.Info) (eventlog.Info, error) {
		if look == 1 || look == 3 || look == 4 {
			in.Last = was.Seq - 3
		}
		return in, nil
	}}
	c.replicas[2] = c.open(2, false)
	if now := c.replicas[2].State().Cursor(); now.Seq < was.Seq {
		t.Errorf("was at %d, built again up to %d", was.Seq, now.Seq)
	}
	lead.mustCapture("one more")
	c.same(lead)
}

// A node that was away during a quarantine, and whose state was built again while the log
// elected, did not hear of the quarantine and halted at the same entry for good.
func TestRebuildWhileTheLogElectsHearsOfTheQuarantine(t *testing.T) {
	a := &allergen{}
	healthy := false
	var log *toldLog
	c := newClusterWith(t, func(i int, o *Options) {
		open := o.OpenGroup
		wrapped := func(o raftfsm.Options) (Group, error) {
			g, err := open(o)
			if err != nil {
				return nil, err
			}
			return chooser{g.(*raftfsm.Group), a}, nil
		}
		if i == 2 && healthy { // another program, which can apply the event
			o.OpenGroup = wrapped
			o.Stream, o.Damaged = log, fmt.Errorf("%w: to be built again", storage.ErrDamaged)
			return
		}
		o.OpenGroup = a.open(wrapped)
	})
	lead := c.replicas[0]
	lead.namespace("team")
	for i := range 3 {
		lead.mustCapture(fmt.Sprint("memory ", i))
	}
	c.same(lead)
	c.replicas[2].close()
	a.armed.Store(true)
	if err := lead.capture("the poison"); err == nil {
		t.Fatal("what halts the shard was acknowledged")
	}
	poison := lead.awaitPoison()
	c.replicas[1].awaitPoison()
	if res, err := lead.Quarantine(t.Context(), projections.Quarantine{At: poison.Ref(), By: "ops"}); err != nil || !res.Done {
		t.Fatalf("%+v, %v", res, err)
	}
	lead.awaitWriter()
	lead.mustCapture("and on it goes")
	healthy = true
	for what, first := range map[string]func(eventlog.Info) (eventlog.Info, error){
		"all is told": func(in eventlog.Info) (eventlog.Info, error) { return in, nil },
		"no leader": func(eventlog.Info) (eventlog.Info, error) {
			return eventlog.Info{}, fmt.Errorf("info: %w", eventlog.ErrNoLeader)
		},
		"a new leader tells less": func(in eventlog.Info) (eventlog.Info, error) {
			in.Last, in.Leader, in.Passing = poison.At.Seq, "n2", 200*time.Millisecond
			return in, nil
		},
	} {
		log = &toldLog{Stream: c.stream, tell: func(look int, in eventlog.Info) (eventlog.Info, error) {
			if look == 1 {
				return first(in)
			}
			return in, nil
		}}
		c.replicas[2] = c.open(2, false)
		index, err := lead.group().LinearizableIndex(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.replicas[2].Group().WaitApplied(t.Context(), index); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		c.replicas[2].close()
	}
}
