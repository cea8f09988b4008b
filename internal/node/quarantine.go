package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/peer"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// An event that no replica can apply stops its shard on all nodes. An operator puts it in
// quarantine, at the node that leads the shard's group, and all go on.

// quarantineFor bounds how long the group may take to agree, the state to go on, and the log
// to tell of it.
const quarantineFor = 10 * time.Second

// Quarantine lists events that are in the log but were not applied.
func (o *operator) Quarantine(context.Context) (memory.QuarantineList, error) {
	out := memory.QuarantineList{Quarantined: []memory.Quarantined{}}
	for _, s := range o.n.served {
		some, err := s.quarantined()
		if err != nil {
			return out, err
		}
		out.Quarantined = append(out.Quarantined, some...)
	}
	return out, nil
}

func (s *served) quarantined() (out []memory.Quarantined, err error) {
	v := s.state.View()
	noted, err := v.Noted()
	notes := map[projections.Ref]projections.Quarantine{}
	for _, n := range noted {
		notes[n.At] = n.Quarantine
	}
	err = errors.Join(err, v.Quarantined(func(at projections.Ref, code string) error {
		q := memory.Quarantined{Position: v.PositionOf(at).String(), Code: code,
			Detail: "the event's bytes are intact in the log but could not be opened or decoded"}
		if n, ok := notes[at]; ok {
			note := openNote(s.keys, n)
			q.By, q.At, q.Reason = n.By, note.At, note.Reason
			q.Detail = "the event's bytes are intact in the log; an operator put it in quarantine, since no node could apply it"
		}
		out = append(out, q)
		return nil
	}))
	return out, errors.Join(err, v.Close())
}

// note is what an operator said when an event was put in quarantine. It is sealed, for it is
// text, and goes into the log.
type note struct {
	At     *time.Time `json:"at,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// The additional data of a sealed note, in front of the event's place.
const noteLabel = "event.quarantined"

func noteData(at projections.Ref) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte(noteLabel), at.Seq), at.Index)
}

// sealNote returns id of the cluster key 16 ‖ sealed JSON.
func sealNote(keys *keyring.Keyring, at projections.Ref, n note) ([]byte, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	key := keys.Cluster()
	id := key.ID()
	return key.Seal(id[:], keyring.Identity{}, noteData(at), text), nil
}

// openNote is empty where the note cannot be opened: it is nothing that anything depends on.
func openNote(keys *keyring.Keyring, q projections.Quarantine) (out note) {
	if len(q.Note) < 16 {
		return out
	}
	key, err := keys.KeyByID(keyring.KeyID(q.Note[:16]))
	if err != nil {
		return out
	}
	if text, err := key.Open(nil, keyring.Identity{}, noteData(q.At), q.Note[16:]); err == nil {
		_ = json.Unmarshal(text, &out)
	}
	return out
}

// PutInQuarantine puts the event at which a shard has stopped on all nodes in quarantine. It
// may be asked for again.
func (o *operator) PutInQuarantine(ctx context.Context, req memory.PutInQuarantine) (out memory.InQuarantine, err error) {
	at, err := events.ParsePosition(req.Position)
	if err != nil {
		return out, memory.Errorf(memory.CodeInvalid, "%q is no position of an event", req.Position).WithHint("memctl status names the position at which a shard has stopped, such as p0.1.42.3")
	}
	if int(at.Shard) >= len(o.n.served) {
		return out, memory.Errorf(memory.CodeNotFound, "there is no shard %d", at.Shard).WithHint("memctl status names the shards")
	}
	if len(req.Reason) > maxReason {
		return out, memory.Errorf(memory.CodeTooLarge, "a reason of %d bytes is too long; it may have %d", len(req.Reason), maxReason)
	}
	if req.By == "" {
		req.By = "operator"
	}
	if bad := memory.CheckName("agent", req.By); bad != nil {
		return out, bad
	}
	s := o.n.served[at.Shard]
	ctx, cancel := context.WithTimeout(ctx, quarantineFor)
	defer cancel()
	if o.n.peers != nil {
		to, self, known := s.leader()
		if !known {
			return out, memory.Errorf(memory.CodeUnavailable, "nobody is known to lead shard %d", s.id).WithHint("memctl cluster status shows which nodes answer; ask again when most of them do")
		}
		if !self {
			m, err := o.n.peers.cluster.Named(to.Node)
			if err == nil {
				err = o.ask(ctx, m, callQuarantine, req, &out)
			}
			return out, err
		}
	}
	return s.putInQuarantine(ctx, req, at)
}

// maxReason is how long a reason may be, in bytes.
const maxReason = 1024

// quarantineHere answers another node, where this one leads the shard.
func (o *operator) quarantineHere(ctx context.Context, _ peer.Identity, req memory.PutInQuarantine) (memory.InQuarantine, error) {
	at, err := events.ParsePosition(req.Position)
	if err != nil || int(at.Shard) >= len(o.n.served) {
		return memory.InQuarantine{}, memory.Errorf(memory.CodeInvalid, "%q is no position of an event here", req.Position)
	}
	ctx, cancel := context.WithTimeout(ctx, quarantineFor-statusWait) // it answers before who asked gives up
	defer cancel()
	return o.n.served[at.Shard].putInQuarantine(ctx, req, at)
}

func (s *served) putInQuarantine(ctx context.Context, req memory.PutInQuarantine, at events.Position) (memory.InQuarantine, error) {
	done, err := s.inQuarantine(at)
	if err == nil && done != nil && !req.DryRun {
		err = (putAside{s, at}).told(ctx)
	}
	if err != nil || done != nil {
		return memory.InQuarantine{Quarantined: first(done), Already: true}, err
	}
	poison, err := s.mayQuarantine(ctx, at)
	if err != nil {
		return memory.InQuarantine{}, err
	}
	now := s.cfg.Now().UTC().Truncate(time.Second)
	out := memory.InQuarantine{DryRun: req.DryRun, Type: poison.Type.String(), Why: poison.Error(),
		Quarantined: memory.Quarantined{Position: poison.At.String(), Code: projections.CodeOperator, By: req.By, At: &now, Reason: req.Reason}}
	if req.DryRun {
		return out, nil
	}
	q := projections.Quarantine{At: poison.Ref(), By: req.By}
	if q.Note, err = sealNote(s.keys, q.At, note{At: &now, Reason: req.Reason}); err != nil {
		return out, err
	}
	s.log.Warn("an operator puts an event in quarantine", "event", poison.At, "type", poison.Type, "by", req.By)
	_, err = s.replica.Quarantine(ctx, q)
	if done, failed := s.inQuarantine(at); failed != nil || done != nil {
		if next := s.replica.Poison(); next != nil {
			out.Next = next.At.String()
		}
		if out.Quarantined = first(done); failed == nil {
			failed = (putAside{s, at}).told(ctx)
		}
		return out, failed
	}
	switch {
	case errors.Is(err, raftfsm.ErrNotLeader), errors.Is(err, raftfsm.ErrRefused):
		return out, memory.Errorf(memory.CodeUnavailable, "shard %d was not asked: %v", s.id, err).WithHint("ask again").WithCause(err)
	case errors.Is(err, raftfsm.ErrHalted), err == nil:
		return out, memory.Errorf(memory.CodeConflict, "shard %d has not gone on: %v", s.id, errors.Join(err, s.replica.Group().Halted())).WithHint("memctl doctor").WithCause(err)
	}
	return out, memory.Errorf(memory.CodeOutcomeUnknown, "whether event %s is in quarantine is not known yet: %v", at, err).WithHint("ask again").WithCause(err)
}

// toldLook is how often it is looked whether the log tells of an event in quarantine.
const toldLook = 10 * time.Millisecond

// putAside is an event in quarantine.
type putAside struct {
	*served
	at events.Position
}

// told waits until the log tells that an event is in quarantine: a state that is built from
// the log before that meets the event again. Where the shard has stopped at the next event it
// is not waited for: nothing is written then.
func (e putAside) told(ctx context.Context) error {
	tick := time.NewTicker(toldLook)
	defer tick.Stop()
	for {
		told, err := e.tells()
		if told || err != nil || e.replica.Poison() != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return memory.Errorf(memory.CodeOutcomeUnknown, "event %s is in quarantine, and the log does not tell of it yet: nothing is written to shard %d", e.at, e.id).
				WithHint("ask again until it is answered, and stop no node before; memctl status says why nothing is written").WithCause(ctx.Err())
		}
	}
}

// tells reports whether the log tells of an event in quarantine, or need not: nobody put it
// there.
func (e putAside) tells() (bool, error) {
	v := e.state.View()
	noted, err := v.Noted()
	err = errors.Join(err, v.Close())
	for _, n := range noted {
		if n.At == (projections.Ref{Seq: e.at.Seq, Index: e.at.Index}) {
			return n.Told, err
		}
	}
	return true, err
}

func first(q *memory.Quarantined) memory.Quarantined {
	if q == nil {
		return memory.Quarantined{}
	}
	return *q
}

// inQuarantine is the event if it is in quarantine, by an operator or by itself.
func (s *served) inQuarantine(at events.Position) (*memory.Quarantined, error) {
	all, err := s.quarantined()
	for _, q := range all {
		if q.Position == at.String() {
			return &q, err
		}
	}
	return nil, err
}

// mayQuarantine says which event has stopped the shard, or why the event at a position is
// not to be put in quarantine.
func (s *served) mayQuarantine(ctx context.Context, at events.Position) (*projections.PoisonError, error) {
	poison, halted := s.replica.Poison(), s.replica.Group().Halted()
	refused := func(format string, args ...any) (*projections.PoisonError, error) {
		return nil, memory.Errorf(memory.CodeConflict, format, args...).WithHint("only the event at which a shard has stopped on most nodes may be put in quarantine; memctl status names it")
	}
	switch {
	case halted == nil:
		return refused("shard %d has not stopped at %s: it applies what it is given", s.id, at)
	case poison == nil:
		return nil, memory.Errorf(memory.CodeConflict, "shard %d has stopped, and not at an event that cannot be applied: %v", s.id, halted).WithHint("%s", haltHint(halted))
	case poison.At != at:
		return refused("shard %d has stopped at %s, not at %s", s.id, poison.At, at)
	case poison.Type < events.TypeCaptured:
		return nil, memory.Errorf(memory.CodeConflict, "event %s is a %s: what follows is read by it, or it erases, so it cannot be left out", at, poison.Type).
			WithHint("keep all nodes as they are, and start a version of memnode that can apply it; reads go on")
	}
	if s.peers == nil {
		return poison, nil
	}
	at0 := (*raftfsm.HaltError)(nil)
	errors.As(halted, &at0)
	members := s.peers.cluster.Facts().Members
	stopped := 1
	for _, r := range s.others(ctx, members) {
		switch {
		case r.Poison == at.String():
			stopped++
		case !r.Halted && r.Applied >= at0.Index:
			return refused("the node %s has applied event %s: those that have not build their state again by themselves", r.Replica.Node, at)
		}
	}
	if 2*stopped <= len(members) {
		return nil, memory.Errorf(memory.CodeUnavailable, "%d of %d nodes say that they have stopped at %s", stopped, len(members), at).
			WithHint("most of them have to; memctl cluster status shows how they are; ask again")
	}
	return poison, nil
}

// poisonHint says what helps a shard that has stopped at an event.
func poisonHint(p *projections.PoisonError) string {
	if p.Type < events.TypeCaptured {
		return "reads go on; start a version of memnode that can apply this event"
	}
	return fmt.Sprintf("reads go on; memctl quarantine %s has the shard go on without this event, if a newer version of memnode does not help", p.At)
}
