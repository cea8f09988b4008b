package node

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/replica"
	"mneme/memory"
)

// A repair writes the log again from the state, into another stream at the same
// sequences, and begins a new epoch there. Its steps:
//
//  1. compare   what is still there with the state; a contradiction ends it
//  2. adopt     what only the log holds into the state; flush the state
//  3. reserve   the next stream through Raft, if there is room for it; flush the state
//  4. seal      the old stream, and adopt what got into it meanwhile
//  5. fill      the reserved stream from the state
//  6. begin     the epoch: its epoch.began makes the stream the state's
//  7. remove    the old stream
//
// Killed before the third step it has changed nothing. From there on the state
// says which stream is to be filled, so a start goes on with it. A running node
// repairs in the background, whoever asked for it and however long they wait.

// RepairLog writes what the log lost again from state, at the same sequences,
// and begins a new epoch. A log that a scrub finds sound is left alone. A repair
// that has begun goes on without its caller.
func (u *upkeep) RepairLog(ctx context.Context, progress func(done, total uint64)) (memory.RepairReport, error) {
	of, err := u.led()
	if err != nil {
		return memory.RepairReport{}, err
	}
	for j := u.beginRepair(u.exclusive, of...); ; {
		select {
		case at := <-j.at:
			if progress != nil {
				progress(at.Done, at.Total)
			}
		case <-j.done:
			return j.report, j.err
		case <-ctx.Done():
			return memory.RepairReport{}, ctx.Err()
		}
	}
}

// repairJob is a repair in the background of a node; report and err are for whoever
// has seen it done.
type repairJob struct {
	at     chan memory.Progress // for a caller who waits
	done   chan struct{}
	report memory.RepairReport
	err    error
}

// beginRepair repairs the logs in the background, in its turn.
func (u *upkeep) beginRepair(turn func(context.Context, func() error) error, of ...*served) *repairJob {
	j := &repairJob{at: make(chan memory.Progress), done: make(chan struct{})}
	u.background(func(ctx context.Context) {
		defer close(j.done)
		j.err = turn(ctx, func() error {
			return j.run(ctx, of)
		})
	})
	return j
}

// run repairs the logs that need it. It is a conflict where none does.
func (j *repairJob) run(ctx context.Context, of []*served) error {
	var sound error
	for _, s := range of {
		one, err := j.repair(ctx, s)
		switch {
		case memory.CodeOf(err) == memory.CodeConflict && len(of) > 1:
			sound = err
		case err != nil:
			return err
		default:
			j.report.Shards = append(j.report.Shards, one)
		}
	}
	if j.report.Shards == nil {
		return sound
	}
	return nil
}

func (j *repairJob) repair(ctx context.Context, s *served) (memory.RepairShard, error) {
	s.copying.Store(&memory.Progress{})
	defer s.copying.Store(nil)
	return s.repairLog(ctx, func(done, total uint64) {
		now := memory.Progress{Done: done, Total: total}
		s.copying.Store(&now)
		select {
		case j.at <- now:
		default:
		}
	})
}

// repairLog repairs the log of a running node, while nothing else replaces it.
func (s *served) repairLog(ctx context.Context, progress func(done, total uint64)) (memory.RepairShard, error) {
	found := s.replica.Diverged()
	if found == nil {
		var err error
		if found, err = s.needsRepair(ctx); err != nil {
			return memory.RepairShard{}, err
		}
	}
	r := &repair{shard: s.shard, progress: progress}
	var out memory.RepairShard
	err := s.replica.WithoutWriter(ctx, func() (err error) {
		switch out, err = r.run(ctx); {
		case err == nil:
			found = nil
			s.scrub.wasRepaired()
		case r.unfinished():
			found = streams{s.shard}.interrupted(err)
		}
		s.finding.Lock()
		s.replica.SetDiverged(found) // after a failure it goes on as it was: reads up, writes stopped
		s.finding.Unlock()
		r.step("begin")
		return err
	})
	// Where another node leads by now that one goes on, and this node's turn is over.
	if err = errors.Join(err, s.replica.WaitTerm(ctx)); err != nil {
		return memory.RepairShard{}, repairMetDamage(err)
	}
	c := s.state.Cursor()
	h, err := s.stateHash()
	out.Epoch, out.Position, out.StateHash = c.Epoch, c.Position().String(), h.String()
	return out, err
}

// needsRepair reads the whole log and returns what is wrong with it; a log that
// agrees with the state is a conflict.
func (s *shard) needsRepair(ctx context.Context) (*eventlog.DivergedError, error) {
	v := s.state.View()
	defer v.Close()
	report, d, err := s.verifyLog(ctx, v, nil)
	switch {
	case err != nil:
		return nil, err
	case report.OK:
		return nil, memory.Errorf(memory.CodeConflict, "log and state agree, there is nothing to repair")
	case d == nil: // the log is whole, the state is not what it leads to
		return nil, damagedLog("repair", report)
	}
	return d, nil
}

// repair is one repair, while nothing else writes.
type repair struct {
	shard    *shard
	progress func(done, total uint64)
}

// step is called before each step.
func (r *repair) step(name string) {
	if at := r.shard.repairStep.Load(); at != nil && *at != nil {
		(*at)(name)
	}
}

// unfinished reports whether a repair has begun and not ended. The state may have
// forgotten, when it is an older copy or was built anew, but a sealed log has not.
func (r *repair) unfinished() bool { return r.hasReserved() || r.shard.stream.Sealed() }

// hasReserved reports whether a repair has reserved a stream and not filled it.
func (r *repair) hasReserved() bool {
	next := r.shard.state.Cursor().Next
	return !next.IsZero() && next != r.shard.stream.Ref()
}

// propose carries out a command: through Raft, or on a stopped node, which has no
// peers, in the state.
func (r *repair) propose(ctx context.Context, command []byte) (any, error) {
	defer r.step("proposed")
	if r.shard.replica == nil {
		return r.shard.state.CommandLocal(command)
	}
	res, _, err := r.shard.replica.Group().Propose(ctx, command).Wait(ctx)
	return res, err
}

// run carries out the steps from compare to fill. The stream that it filled is
// then the log's.
func (r *repair) run(ctx context.Context) (memory.RepairShard, error) {
	out := memory.RepairShard{ID: int(r.shard.id)}
	r.step("compare")
	missing, err := r.compare(ctx)
	if err != nil {
		return out, repairError(err)
	}
	if err := r.adopt(ctx); err != nil {
		return out, err
	}
	next, err := r.reserved(ctx)
	if err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	r.step("seal")
	if err := r.shard.stream.Seal(ctx); err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	if err := r.adopt(ctx); err != nil {
		return out, err
	}
	if err := r.fill(ctx, next); err != nil {
		return out, fmt.Errorf("repair log: %w", r.outOfRoom(ctx, err))
	}
	out.Restored, out.Events, err = r.restored(missing)
	return out, errors.Join(err, r.shard.forgetDivergence())
}

// kept is what the state keeps of the log.
func (r *repair) kept(progress func(done, total uint64)) (src eventlog.Source, done func() error) {
	v := r.shard.state.View()
	return eventlog.Source{Frame: stateFrames(v), Last: v.Cursor().Seq, Progress: progress}, v.Close
}

func stateFrames(v *projections.View) func(seq uint64) ([]byte, error) {
	return func(seq uint64) ([]byte, error) {
		b, err := v.Frame(seq)
		if err == nil && b == nil {
			err = fmt.Errorf("the state does not hold frame %d: %w", seq, events.ErrMalformed)
		}
		return b, err
	}
}

func (r *repair) compare(ctx context.Context) ([]eventlog.Span, error) {
	src, done := r.kept(r.progress)
	missing, err := eventlog.Compare(ctx, r.shard.stream, src)
	return missing, errors.Join(err, done())
}

func repairError(err error) error {
	var refused *eventlog.RepairError
	if errors.As(err, &refused) {
		return memory.Errorf(memory.CodeLogDiverged, "the log was not touched: %v", refused).
			WithHint("memctl log verify shows what differs; memctl restore brings a backup back")
	}
	return fmt.Errorf("repair log: %w", err)
}

// adopt brings what only the log holds, behind the state's cursor, into the state.
// It has to continue the state's chain, else the log is another one. From here on
// the state may be the only copy: it has to be on disk.
func (r *repair) adopt(ctx context.Context) error {
	r.step("adopt")
	ask := r.shard.stream.Info
	if r.shard.stream.Sealed() { // what is not taken over now is lost
		ask = func(ctx context.Context) (eventlog.Info, error) { return eventlog.SettledInfo(ctx, r.shard.stream) }
	}
	info, err := ask(ctx)
	if err != nil {
		return fmt.Errorf("repair log: %w", err)
	}
	if cur := r.shard.state.Cursor(); info.Last > cur.Seq {
		if err := continues(ctx, r.shard.stream, &cur); err != nil {
			return repairError(err)
		}
		if err := r.applyTail(ctx, info.Last); err != nil {
			return repairError(&eventlog.RepairError{Seq: r.shard.state.Cursor().Seq + 1, Detail: err.Error()})
		}
	}
	if err := r.shard.state.Flush(); err != nil {
		return fmt.Errorf("repair log: %w", err)
	}
	return nil
}

// continues checks that the log goes on from where the state stands.
func continues(ctx context.Context, stream eventlog.Stream, cur *projections.Cursor) error {
	m, err := stream.Get(ctx, cur.Seq+1)
	if err == nil {
		err = continued(m.Data, cur)
	}
	if err != nil {
		return &eventlog.RepairError{Seq: cur.Seq + 1, Detail: fmt.Sprintf("the log goes on behind the state, which cannot take message %d: %v", cur.Seq+1, err)}
	}
	return nil
}

func continued(message []byte, cur *projections.Cursor) error {
	f, err := events.DecodeFrame(message)
	if err == nil && f.Previous != cur.Chain {
		err = errors.New("it does not continue what the state applied")
	}
	return err
}

func (r *repair) applyTail(ctx context.Context, last uint64) error {
	c := r.shard
	v := c.state.View()
	d, err := derive.New(c.keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	_, err = ingest.Replay(ctx, c.stream, c.state, d, last, func(next *projections.Range) error {
		res, err := r.propose(ctx, next.Encode())
		if err != nil {
			return err
		}
		return replica.Continued(next, res)
	})
	return err
}

// reserved is the stream to be filled. It is reserved only if there is room for it.
func (r *repair) reserved(ctx context.Context) (events.StreamRef, error) {
	r.step("reserve")
	if err := r.checkRoom(ctx); err != nil {
		return events.StreamRef{}, err
	}
	if r.hasReserved() {
		return r.shard.state.Cursor().Next, nil
	}
	return r.reserve(ctx)
}

// reserve agrees on the next stream, durably: before it is made, all replicas know
// its name.
func (r *repair) reserve(ctx context.Context) (events.StreamRef, error) {
	present, err := r.shard.stream.Present(ctx)
	if err != nil {
		return events.StreamRef{}, err
	}
	var inUse uint32
	for _, ref := range present {
		inUse = max(inUse, ref.Epoch)
	}
	cur := r.shard.state.Cursor()
	res, err := r.propose(ctx, projections.NewReserve(&cur, inUse, newNodeID(r.shard.cfg.Now)).Encode())
	if err != nil {
		return events.StreamRef{}, fmt.Errorf("reserve the next stream: %w", err)
	}
	reserved, ok := res.(projections.ReserveResult)
	if !ok || reserved.Next.IsZero() {
		return events.StreamRef{}, errors.New("reserve the next stream: the state has moved on meanwhile")
	}
	return reserved.Next, r.shard.state.Flush()
}

// fill writes the reserved stream from the state and makes it the log's. One that
// cannot be filled, because it was damaged after a repair had begun it or another
// cluster has made one of its name, is given up for another.
func (r *repair) fill(ctx context.Context, next events.StreamRef) error {
	r.step("fill")
	stream, err := r.fillOne(ctx, next)
	var unusable *eventlog.RepairError
	if errors.As(err, &unusable) || errors.Is(err, eventlog.ErrOtherCluster) {
		r.shard.cfg.Logger.Warn("a stream that a repair had begun is given up", "epoch", next.Epoch, "err", err)
		if next, err = r.reserve(ctx); err == nil {
			stream, err = r.fillOne(ctx, next)
		}
	}
	if err != nil {
		return err
	}
	r.step("use")
	r.shard.stream.Use(stream)
	return nil
}

func (r *repair) fillOne(ctx context.Context, next events.StreamRef) (*eventlog.JetStream, error) {
	stream, err := r.shard.stream.Create(ctx, next)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err == nil && info.Identity != next.Identity {
		err = &eventlog.RepairError{Seq: 1, Detail: "another stream has its name"}
	}
	if err != nil {
		return nil, err
	}
	src, done := r.kept(func(at, total uint64) {
		r.step("filling")
		if r.progress != nil {
			r.progress(at, total)
		}
	})
	src.Frame = r.whileRoom(src.Frame)
	return stream, errors.Join(eventlog.Fill(ctx, stream, src), done())
}

// restored counts what a repair wrote that was missing.
func (r *repair) restored(missing []eventlog.Span) (frames, inside uint64, err error) {
	src, done := r.kept(nil)
	for _, span := range missing {
		for seq := span.From; seq <= span.To && err == nil; seq++ {
			var b []byte
			if b, err = src.Frame(seq); err != nil {
				break
			}
			frames++
			if f, ferr := events.DecodeFrame(b); ferr == nil {
				inside += uint64(len(f.Events))
			}
		}
	}
	return frames, inside, errors.Join(err, done())
}
