package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// proposal is a frame that the log has and Raft is agreeing on.
type proposal struct {
	drafts []*draft // nil for frames that are not ours
	future *raftfsm.Future
}

// appendLoop puts one frame after the other into the log; one is in flight.
func (s *Shard) appendLoop(ctx context.Context) {
	defer s.wg.Done()
	defer close(s.proposed)
	for f := range s.frames {
		s.appendFrame(ctx, f)
	}
}

// appendFrame appends one frame and proposes it. Derivation runs while the log
// syncs.
func (s *Shard) appendFrame(ctx context.Context, f *frame) {
	if f.adopted != s.adopted.Load() {
		// It was decided without what has been adopted since: the same id may
		// be in there, from an attempt whose outcome was unknown.
		s.decideAgain(f)
		return
	}
	before := s.writer.Tail()
	derived := make(chan derivation, 1)
	go func() {
		c, err := s.deriver.Frame(&events.Frame{Seq: before.Seq + 1, Events: f.encoded}, f.contents)
		derived <- derivation{c, err}
	}()
	a, err := s.appendUntilKnown(ctx, f)
	d := <-derived
	if err != nil {
		s.deriver.Undo() // a repeat is derived again, and so is what is adopted
		s.appendFailed(ctx, f, err)
		return
	}
	s.counters.Frames.Add(1)
	s.counters.Events.Add(uint64(len(f.drafts)))
	for i, dr := range f.drafts {
		dr.accept(events.Position{Shard: before.Shard, Epoch: before.Epoch, Seq: a.Seq, Index: uint32(i)})
	}
	if d.err != nil {
		s.breakDown("deriving from the log failed", d.err)
		s.land(f.drafts)
		s.fail(f.drafts, unknownOutcome(d.err))
		return
	}
	s.propose(ctx, f.drafts, before, a.Frame, d.contributions)
}

type derivation struct {
	contributions []*projections.Contribution
	err           error
}

// propose hands a frame of the log to Raft. before is the log's tail in front
// of it.
func (s *Shard) propose(ctx context.Context, drafts []*draft, before eventlog.Tail, message []byte, c []*projections.Contribution) {
	cur := s.opt.State.Cursor()
	r := projections.NewRange(&cur)
	r.Previous, r.Chain = before.Seq, before.Chain
	r.Frames = []projections.RangeFrame{{Bytes: message, Contributions: c}}
	p := &proposal{drafts: drafts, future: s.opt.Group.Propose(ctx, r.Encode())}
	s.proposed <- p
}

// appendUntilKnown appends and, while the outcome is unknown, goes on reading
// the tail until it is known. A refusal after an attempt that may still arrive
// is no refusal: its outcome is unknown.
func (s *Shard) appendUntilKnown(ctx context.Context, f *frame) (eventlog.Appended, error) {
	pause, underWay := 10*time.Millisecond, false
	for {
		a, err := s.writer.Append(ctx, f.encoded)
		switch {
		case errors.Is(err, eventlog.ErrAbsent) && !errors.Is(err, eventlog.ErrNoSpace):
			s.opt.Logger.Warn("append is not in the log, trying again", "err", err)
			underWay = true
		case errors.Is(err, eventlog.ErrUnknown):
			s.opt.Logger.Warn("append has an unknown outcome, reading the tail", "err", err)
			underWay = true
			found, rerr := s.writer.Resync(ctx)
			if rerr == nil && len(found) > 0 {
				return a, &eventlog.AdoptError{Messages: found}
			}
			var d *eventlog.DivergedError
			if errors.As(rerr, &d) {
				return a, rerr
			}
		case underWay && isRefusal(err):
			return a, unknownOutcome(err)
		default:
			return a, err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-ctx.Done():
			return a, unknownOutcome(ctx.Err())
		}
	}
}

// isRefusal reports whether err says that this very attempt was not stored, and
// nothing about an earlier one.
func isRefusal(err error) bool {
	return errors.Is(err, eventlog.ErrRefused) || errors.Is(err, eventlog.ErrNoSpace) || errors.Is(err, eventlog.ErrClosed)
}

// appendFailed deals with a frame that is not where it should be.
func (s *Shard) appendFailed(ctx context.Context, f *frame, err error) {
	var adopt *eventlog.AdoptError
	var diverged *eventlog.DivergedError
	switch {
	case errors.As(err, &adopt):
		s.adopt(ctx, f, adopt.Messages)
		return
	case errors.As(err, &diverged):
		s.opt.Logger.Error("log and state disagree, writes are stopped", "kind", diverged.Kind, "err", err)
		s.diverged.Store(diverged)
		err = s.refusal()
	case memory.CodeOf(err) != memory.CodeInternal: // an unknown outcome, whatever its cause
	case errors.Is(err, eventlog.ErrNoSpace):
		err = memory.Errorf(memory.CodeNoSpace, "the log has no space left").WithHint("free disk space; nothing was written").WithCause(err)
	default:
		err = memory.Errorf(memory.CodeUnavailable, "the log did not take the write: %v", err).WithCause(err)
	}
	s.land(f.drafts)
	s.fail(f.drafts, err)
}

// adopt applies messages that the log holds behind our tail. If our frame is
// among them its drafts are answered; else they are decided again.
func (s *Shard) adopt(ctx context.Context, f *frame, messages []eventlog.Message) {
	ours := false
	for _, m := range messages {
		s.counters.Adopted.Add(1)
		var drafts []*draft
		if got, err := events.DecodeFrame(m.Data); err == nil && !ours && slices.EqualFunc(got.Events, f.encoded, slices.Equal) {
			ours = true
			drafts = f.drafts
			for i, d := range drafts {
				d.accept(events.Position{Shard: got.Shard, Epoch: got.Epoch, Seq: m.Seq, Index: uint32(i)})
			}
		}
		if err := s.applyMessage(ctx, m, drafts); err != nil {
			s.breakDown("a message of the log could not be applied", err)
			if drafts != nil || !ours { // else they were answered
				s.land(f.drafts)
				s.fail(f.drafts, unknownOutcome(err))
			}
			return
		}
	}
	s.writer.Resume(s.tail())
	s.adopted.Add(1)
	if !ours {
		s.decideAgain(f)
	}
}

// decideAgain puts a frame's drafts back. In this order: who waits for what is
// in flight finds them in the queue.
func (s *Shard) decideAgain(f *frame) {
	s.queue.giveBack(f.drafts)
	s.land(f.drafts)
}

// applyMessage derives one message of the log, proposes it and waits until the
// state has it.
func (s *Shard) applyMessage(ctx context.Context, m eventlog.Message, drafts []*draft) error {
	if err := s.drainProposals(ctx); err != nil {
		return err
	}
	c := s.opt.State.Cursor()
	r := projections.NewRange(&c)
	rf, err := deriveMessage(s.deriver, &c, m)
	if err != nil {
		return err
	}
	r.Frames = append(r.Frames, rf)
	future := s.opt.Group.Propose(ctx, r.Encode())
	res, _, err := future.Wait(ctx)
	if err != nil {
		return err
	}
	if drafts != nil {
		s.answer(drafts, res, nil)
	}
	return nil
}

// drainProposals waits until everything proposed before has been applied; the
// frame being adopted itself is still in flight.
func (s *Shard) drainProposals(ctx context.Context) error {
	want := s.writer.Tail().Seq
	for {
		moved := s.opt.State.Moved()
		if s.opt.State.Cursor().Seq >= want {
			return nil
		}
		select {
		case <-moved:
		case <-s.brokenCh:
			return s.broken.Load()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// breakDown stops writing until a restart: log and state are both sound, but
// this process can no longer bring them together.
func (s *Shard) breakDown(what string, err error) {
	s.opt.Logger.Error("writes are stopped", "why", what, "err", err)
	first := s.broken.CompareAndSwap(nil, memory.Errorf(memory.CodeUnavailable, "writes are stopped: %s", what).
		WithHint("nothing acknowledged is lost; see the node's log, then restart it").WithCause(err))
	if first {
		close(s.brokenCh)
	}
}

// answerLoop waits for verdicts in order and gives them to callers.
func (s *Shard) answerLoop(ctx context.Context) {
	defer s.wg.Done()
	for p := range s.proposed {
		res, _, err := p.future.Wait(ctx)
		s.answer(p.drafts, res, err)
	}
}

func (s *Shard) answer(drafts []*draft, res any, err error) {
	s.land(drafts)
	rr, ok := res.(projections.RangeResult)
	switch {
	case err == nil && ok && rr.Answer == projections.AnswerApplied && len(rr.Events) == len(drafts):
		for i, d := range drafts {
			s.count(rr.Events[i].Outcome)
			d.finish(rr.Events[i], nil)
		}
		return
	case err == nil:
		s.breakDown("the state did not continue at the log's frame", nil)
	default:
		s.breakDown("the state did not take the log's frame", err)
	}
	s.fail(drafts, memory.Errorf(memory.CodeOutcomeUnknown, "the log has the event, but the state has not yet").
		WithHint("it will be applied after a restart; the same id may be sent again").WithCause(err))
}
