package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

// The log of a shard is one stream, until a repair puts another one in its place.
// Which one counts follows from what the state holds and from the streams that are
// there; no file says it.

// streams chooses it, for the replica and for work on a stopped node.
type streams struct{ *shard }

// Choose opens the stream that goes on from where a state stands. A state that has
// applied nothing begins one where there is none. hashes may be nil.
func (s streams) Choose(ctx context.Context, at projections.Cursor, hashes func(uint64) (events.Hash, bool)) error {
	log := s.stream
	if s.peers != nil {
		return startError("event log", log.Assume(s.shared(at)))
	}
	present, err := log.Present(ctx)
	if err != nil {
		return startError("event log", err)
	}
	if len(present) == 0 && at.Seq == 0 {
		return s.begin(ctx, 0)
	}
	ref, damage := s.of(ctx, present, at, hashes)
	if gap := (*eventlog.GapError)(nil); damage != nil && !errors.As(damage, &gap) {
		return startError("event log", damage)
	}
	stream, err := log.Open(ctx, ref)
	if err != nil {
		return startError("event log", err)
	}
	log.Use(stream)
	return startError("event log", damage)
}

// begin makes the stream with which an epoch begins.
func (s streams) begin(ctx context.Context, epoch uint32) error {
	stream, err := s.stream.Create(ctx, events.StreamRef{Epoch: epoch, Identity: newNodeID(s.cfg.Now)})
	if err != nil {
		return startError("event log", err)
	}
	s.stream.Use(stream)
	return nil
}

// beginEpoch writes the epoch.began of the stream that was chosen, as the log's next
// frame, and applies it: work on a stopped node has written the stream in full. From
// here on the state is fed from it. As long as it is only reserved, a missing one is
// taken for one that a repair has yet to write.
func (s streams) beginEpoch(ctx context.Context) error {
	ref, cur := s.stream.Ref(), s.state.Cursor()
	if ref.Epoch <= cur.Epoch {
		return nil
	}
	t := events.TypeEpochBegan
	e := events.Envelope{Header: events.Header{Type: t, Schema: t.Schema(), Event: events.NewIDSource(s.cfg.Now, nil).New(),
		SealedAt: cur.SealedAt + 1}, Payload: []byte(ref.Identity)} // a clock that is wrong is not taken over
	e.OccurredAt = e.SealedAt
	f := events.Frame{Shard: cur.Shard, Epoch: ref.Epoch, Term: cur.Term, Seq: cur.Seq + 1, Previous: cur.Chain, Events: [][]byte{e.Encode()}}
	f.Feature = events.FeatureOf(f.Events)
	if err := s.stream.Append(ctx, f.Encode(), cur.Seq); err != nil {
		return fmt.Errorf("begin epoch %d: %w", ref.Epoch, err)
	}
	return (&repair{shard: s.shard}).adopt(ctx)
}

// shared is the stream that the nodes of a cluster keep, as a state says. The first one
// has the cluster's id, so that a state that has applied nothing knows it too.
func (s streams) shared(at projections.Cursor) events.StreamRef {
	if at.Seq == 0 {
		return events.StreamRef{Identity: s.dir.node.ClusterID}
	}
	return at.Stream()
}

// Lead implements replica.Streams: a node on its own has chosen its stream already.
// Of several nodes the one that leads makes it, if nothing was ever agreed on; else it
// must be there, and one that is not is a log that has lost everything. A stream that this
// node has filled stays, whose epoch begins with the term.
func (s streams) Lead(ctx context.Context) error {
	if s.peers == nil {
		return nil
	}
	s.takeUp()
	at := s.state.Cursor()
	if !at.Next.IsZero() && at.Next == s.stream.Ref() {
		return nil
	}
	open := s.stream.Open
	if at.Seq == 0 {
		open = s.stream.Create
	}
	stream, err := open(ctx, s.shared(at))
	if errors.Is(err, eventlog.ErrOtherCluster) && at.Seq > 0 {
		return s.taken(at, err)
	}
	if err != nil {
		return startError("event log", err)
	}
	s.stream.Use(stream)
	return nil
}

// taken has a term begin that refuses writes, as one does whose stream is gone, where
// another cluster's stream has the name of the one that the state knows: so it is told for
// what it is, and a repair writes the log to another stream.
func (s streams) taken(at projections.Cursor, why error) error {
	if err := s.stream.Assume(at.Stream()); err != nil {
		return startError("event log", err)
	}
	if s.replica.Diverged() == nil {
		s.replica.SetDiverged(eventlog.IdentityLost(why))
	}
	return nil
}

// takeUp goes on with the stream that the state is fed from, where another node has put
// one in the place of the log's. What was wrong with that one is over.
func (s streams) takeUp() {
	at, have := s.state.Cursor(), s.stream.Ref()
	if at.Seq == 0 || have == at.Stream() || have == at.Next {
		return
	}
	err := s.stream.Assume(at.Stream())
	if err == nil {
		s.replica.SetDiverged(nil)
		err = s.forgetDivergence()
	}
	if err != nil {
		s.log.Warn("the log's new stream could not be taken up", "epoch", at.Epoch, "err", err)
	}
}

// Ref implements replica.Streams.
func (s streams) Ref() events.StreamRef { return s.stream.Ref() }

// Unfinished implements replica.Streams.
func (s streams) Unfinished() *eventlog.DivergedError {
	if !(&repair{shard: s.shard}).unfinished() {
		return nil
	}
	if s.first() {
		return &eventlog.DivergedError{Kind: eventlog.KindLost, Detail: firstLog,
			Hint: "that begins by itself once as many nodes as --bootstrap-expect says are there"}
	}
	return &eventlog.DivergedError{Kind: eventlog.KindLost, Detail: "a repair of the log was interrupted",
		Hint: "the node that leads goes on with it; where memctl status shows no progress of it, memctl log repair does"}
}

// interrupted says why a repair that has reserved its stream was not finished.
func (s streams) interrupted(why error) *eventlog.DivergedError {
	what := "a repair of the log was interrupted"
	if s.first() {
		what = firstLog
	}
	return &eventlog.DivergedError{Kind: eventlog.KindLost, Detail: fmt.Sprintf("%s: %v", what, why),
		Hint: cmp.Or(memory.AsError(why).Hint, "memctl log repair goes on with it")}
}

const firstLog = "the log of the new cluster has yet to be written from the state"

// first reports whether the reserved stream is the first one of a cluster that was made of
// one node's data.
func (s streams) first() bool {
	return s.peers != nil && s.state.Cursor().Next.Identity == s.dir.node.ClusterID
}

// Begun removes the streams whose place the present one has taken, as the state
// says, which has applied its epoch.began. What is left of
// them is removed when the next term begins.
func (s streams) Begun(ctx context.Context) {
	(&repair{shard: s.shard}).step("remove")
	cur := s.state.Cursor()
	if cur.Epoch == 0 { // it is the first one
		return
	}
	if err := s.stream.RemoveReplaced(ctx, cur.Stream()); err != nil {
		s.log.Warn("the stream that was replaced could not be removed; it is tried again when the next term begins", "err", err)
	}
}

// of is the latest stream that holds all that the state does: a reserved one
// as soon as it is full, and the present one before. An older copy of the state
// goes on with a stream of which it knows nothing, if no other goes further: one
// that does not may have been filled in part. Where no stream holds all, it is the
// one that the state was fed from, even if that is gone.
func (s streams) of(ctx context.Context, present []events.StreamRef, at projections.Cursor, hashes func(uint64) (events.Hash, bool)) (events.StreamRef, error) {
	switch {
	case len(present) == 1 && (at.Seq == 0 || present[0] == at.Stream()):
		return present[0], nil
	case len(present) > 0 && at.RaftIndex == 0, at.Seq == 0: // it is to be built from the log
		return s.stream.Soundest(ctx, present)
	}
	furthest, err := s.furthest(ctx, present)
	if err != nil {
		return at.Stream(), err
	}
	for _, ref := range slices.Backward(present) {
		stream, err := s.stream.Open(ctx, ref)
		if err != nil {
			return ref, err
		}
		info, err := stream.Info(ctx)
		if err != nil {
			return ref, err
		}
		if info.Last < furthest && ref != at.Stream() {
			continue
		}
		err = eventlog.Check(ctx, stream, eventlog.Expect{Seq: at.Seq, Chain: at.Chain, Hashes: hashes})
		var d *eventlog.DivergedError
		if err == nil || !errors.As(err, &d) {
			return ref, err
		}
	}
	return at.Stream(), nil
}

// furthest is the highest sequence that any of the streams holds.
func (s streams) furthest(ctx context.Context, present []events.StreamRef) (last uint64, err error) {
	for _, ref := range present {
		stream, err := s.stream.Open(ctx, ref)
		if err != nil {
			return 0, err
		}
		info, err := stream.Info(ctx)
		if err != nil {
			return 0, err
		}
		last = max(last, info.Last)
	}
	return last, nil
}

// chooseFor is Choose for an open state.
func (s streams) chooseFor(ctx context.Context, state *projections.State) error {
	v := state.View()
	return errors.Join(s.Choose(ctx, v.Cursor(), ingest.FrameHashes(v)), v.Close())
}
