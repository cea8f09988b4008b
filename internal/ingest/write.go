package ingest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// How a round puts frames into the log.

// write derives what is on its way, sends what comes next, and decides what
// comes after it. One of them a step, so that answers are not kept waiting.
func (r *round) write() {
	if s := r.sending; s != nil {
		switch {
		case !r.busy && r.now >= r.retry.at:
			r.send(true)
		case !s.done:
			r.derive(s)
		case r.phase == phaseOpen && r.next == nil:
			r.next = r.seq.next()
		}
		return
	}
	if r.phase == phaseBegin {
		r.begin()
		return
	}
	if len(r.pending) >= maxPending {
		return
	}
	if r.next == nil {
		r.next = r.seq.next()
	}
	if f := r.next; f != nil {
		r.next = nil
		r.start(&sending{frame: f})
	}
}

// start sends a frame for the first time.
func (r *round) start(s *sending) {
	r.sent++
	s.n = r.sent
	r.sending = s
	r.encode(s)
	r.send(false)
}

// encode fixes the bytes that are sent at the sequence behind the log's end.
func (r *round) encode(s *sending) {
	s.at = r.at
	f := events.Frame{Shard: r.shard, Feature: events.FeatureOf(s.encoded), Epoch: r.at.Epoch, Term: r.term,
		Seq: r.at.Seq + 1, Previous: r.at.Chain, Events: s.encoded}
	if s.drafts == nil {
		f.Epoch = max(f.Epoch, r.stream.Epoch)
	}
	s.data = f.Encode()
}

func (r *round) send(again bool) {
	assert.Always(r.at.Term <= r.term, "a writer sends nothing behind a frame of a higher term", nil)
	assert.Sometimes(r.sending.underWay, "a frame of unknown outcome is sent again", nil)
	r.busy, r.retry.at = true, 0
	r.out = append(r.out, sendFrame{r.sending.n, r.sending.data, r.sending.at.Seq, again, watchersOf(r.sending.drafts)})
}

// resend has the same bytes sent again after a pause.
func (r *round) resend() { r.retry.at = r.now + r.retry.next() }

// derive makes the frame's contributions while the log syncs it.
func (r *round) derive(s *sending) {
	f := events.Frame{Seq: s.at.Seq + 1, Events: s.encoded}
	c, err := r.deriver.Frame(&f, s.contents)
	if err != nil {
		r.endRound(fmt.Errorf("deriving from frame %d failed: %w", f.Seq, err))
		return
	}
	s.derived, s.done = c, true
}

// begin writes the control events that open the round: epoch.began after a
// repair, event.quarantined where a person has put an event there, then leader.began.
func (r *round) begin() {
	t, payload, by := events.TypeLeaderBegan, events.Began{Term: r.term, Round: r.number}.Encode(), ""
	switch {
	case r.opensEpoch():
		assert.Reachable("a term begins the epoch of a log that was repaired", nil)
		t, payload = events.TypeEpochBegan, []byte(r.stream.Identity)
	case len(r.untold) > 0:
		t, payload, by = events.TypeQuarantined, r.untold[0].Event().Encode(), r.untold[0].By
	}
	e := events.Envelope{Header: events.Header{Type: t, Schema: t.Schema(), Agent: by, Event: r.ids.New(), SealedAt: r.seq.times.stamp()}, Payload: payload}
	e.OccurredAt = e.SealedAt
	s := &sending{frame: &frame{encoded: [][]byte{e.Encode()}, derived: make([]*projections.Contribution, 1), done: true}, opens: t}
	r.start(s)
}

// appended takes the log's answer to a frame.
func (r *round) appended(in appended) {
	s := r.sending
	if s == nil || s.n != in.sending {
		return
	}
	if r.phase != phaseBegin && r.phase != phaseOpen {
		r.late(s, in.err)
		return
	}
	switch err := in.err; {
	case err == nil:
		r.acknowledged()
	case errors.Is(err, eventlog.ErrClosed):
		r.failed(err, fmt.Errorf("the log is closed: %w", err))
	case errors.Is(err, eventlog.ErrStopped):
		r.failed(err, memory.Errorf(memory.CodeNoSpace, "the log has no space left").
			WithHint("free disk space, then restart the node; nothing was written").WithCause(err))
	case errors.Is(err, eventlog.ErrNoSpace) && !errors.Is(err, eventlog.ErrUnknown):
		r.failed(err, memory.Errorf(memory.CodeNoSpace, "the log has no space left").
			WithHint("free disk space; nothing was written").WithCause(err))
	default:
		if !errors.Is(err, eventlog.ErrRefused) {
			r.log.Warn("append has an unknown outcome", "seq", s.at.Seq+1, "err", err)
			s.underWay, s.doubt = true, true
		}
		s.cause = err
		r.look(false)
	}
}

// late takes the answer to a frame of a round that is over. It may say that the
// log accepted it; nobody can say any more that it was applied.
func (r *round) late(s *sending, err error) {
	r.sending = nil
	if err == nil {
		r.accept(s)
	}
	r.answerUnknown(s.drafts, r.why)
}

// failed ends the attempts of a frame that the log did not store, if that is
// certain; an attempt that is under way is followed up until it is, or until
// nothing of this log can arrive any more.
func (r *round) failed(cause, told error) {
	s := r.sending
	if s.underWay && !errors.Is(cause, eventlog.ErrClosed) && !errors.Is(cause, eventlog.ErrStopped) {
		r.log.Warn("append failed after an attempt that may still arrive", "seq", s.at.Seq+1, "err", cause)
		r.resend()
		return
	}
	if s.doubt {
		told = unknownOutcome(cause)
	}
	r.sending = nil
	if s.drafts == nil {
		r.endRound(told)
		return
	}
	if s.done {
		r.deriver.Undo() // what follows must be derived as a replay will
	}
	r.refuse(s.drafts, told)
}

// acknowledged: the log holds these bytes at the sequence behind ours.
func (r *round) acknowledged() {
	s := r.sending
	next := s.at
	if _, valid, err := next.Follow(s.data); err != nil || !valid {
		r.endRound(fmt.Errorf("our own frame %d is not valid where it stands: %w", next.Seq, err))
		return
	}
	r.accept(s)
	if !s.done {
		if r.derive(s); !s.done {
			return
		}
	}
	r.sending, r.at, r.retry = nil, next, retry{}
	r.propose(&s.at, s.drafts, projections.RangeFrame{Bytes: s.data, Contributions: s.derived})
	switch s.opens {
	case events.TypeQuarantined: // leader.began is to come, as behind epoch.began
		r.untold = r.untold[1:]
	case events.TypeLeaderBegan:
		r.phase = phaseApply
	}
}

// accept tells that the log has the frame.
func (r *round) accept(s *sending) {
	if s.drafts == nil {
		return
	}
	r.horizon.accept(s.at.Seq + 1)
	c := r.seq.counters
	c.Frames.Add(1)
	c.Events.Add(uint64(len(s.drafts)))
	for i, d := range s.drafts {
		d.accept(events.Position{Shard: r.shard, Epoch: s.at.Epoch, Seq: s.at.Seq + 1, Index: uint32(i)})
	}
}

// surveyed takes what the log holds behind our tail.
func (r *round) surveyed(in surveyed) {
	var diverged *eventlog.DivergedError
	contradicts := errors.As(in.err, &diverged)
	if !contradicts {
		r.against = nil
	}
	switch {
	case r.phase >= phaseStopped || r.phase == phaseSettle:
		if s := r.sending; s != nil {
			if in.err == nil && len(in.messages) > 0 && bytes.Equal(in.messages[0].Data, s.data) {
				r.late(s, nil)
			} else {
				r.late(s, eventlog.ErrUnknown)
			}
		}
		return
	case contradicts && r.passes(in):
		assert.Reachable("the log tells against the state what may pass", nil)
		if r.sending != nil {
			r.looked(in)
		} else {
			r.resend() // that is, it is asked again
		}
	case contradicts:
		r.stop(diverged)
	case r.sending != nil:
		r.looked(in)
	case in.err != nil:
		r.endRound(in.err)
	case len(in.messages) == 0:
		if len(r.pending) == 0 {
			r.phase = phaseBegin
		}
	default:
		r.adopt(in.messages)
	}
}

// looked decides what becomes of the frame being sent after its sequence was
// read.
func (r *round) looked(in surveyed) {
	s := r.sending
	switch {
	case in.err != nil:
		r.log.Warn("the log's end cannot be read", "err", in.err)
		r.resend()
	case len(in.messages) > 0 && bytes.Equal(in.messages[0].Data, s.data):
		assert.Reachable("a frame is found in the log whose acknowledgement was lost", nil)
		r.acknowledged()
	case len(in.messages) > 0:
		r.displaced(in.messages)
	case s.underWay:
		// That a read does not show it says nothing: it is sent again.
		r.resend()
	default:
		r.failed(s.cause, memory.Errorf(memory.CodeUnavailable, "the log did not take the write: %v", s.cause).WithCause(s.cause))
	}
}

// displaced: the frame's sequence holds something else, so that its bytes can
// never become valid there. Void messages move it back; a valid frame ends the round
// or, in front of leader.began, is adopted. Where an attempt had an unknown outcome
// nobody is told that nothing was written: a log that loses what it had synced gives
// sequences out again, and by then another leader may have adopted the frame.
func (r *round) displaced(messages []eventlog.Message) {
	assert.Reachable("a frame's place in the log is taken by another", nil)
	s := r.sending
	r.sending = nil
	before := r.phase
	r.adopt(messages)
	switch {
	case s.drafts == nil: // made anew behind what was adopted
	case r.phase == before:
		s.underWay, s.cause = false, nil
		r.start(s)
	case s.doubt, r.phase == phaseEnded:
		r.answerUnknown(s.drafts, r.why)
	default:
		r.seq.giveBack(s.frame)
	}
}

// adopt takes over messages behind our tail and has them applied.
func (r *round) adopt(messages []eventlog.Message) {
	from := r.at
	var frames []projections.RangeFrame
	size := 0
	flush := func() {
		if len(frames) > 0 {
			r.propose(&from, nil, frames...)
		}
		from, frames, size = r.at, nil, 0
	}
	for _, m := range messages {
		if err := r.meets(m); err != nil {
			flush()
			if deposed := (*DeposedError)(nil); errors.As(err, &deposed) {
				r.endTerm(err)
			} else {
				r.endRound(err)
			}
			return
		}
		before := r.at
		rf, err := deriveMessage(r.deriver, &r.at, m)
		if err != nil {
			r.at = before
			flush()
			r.adoptFailed(err)
			return
		}
		if n := rf.EncodedSize(); size+n > replayBytes && len(frames) > 0 {
			at := r.at
			r.at = before
			flush()
			r.at, size = at, n
		} else {
			size += n
		}
		frames = append(frames, rf)
		r.seq.counters.Adopted.Add(1)
	}
	flush()
	if r.phase == phaseBegin {
		r.phase = phaseSurvey
	}
}

func (r *round) adoptFailed(err error) {
	var gap *eventlog.GapError
	if errors.As(err, &gap) {
		r.stop(&eventlog.DivergedError{Kind: eventlog.KindGap, Seq: gap.Want, Detail: gap.Error(), Hint: "memctl log verify shows the extent"})
		return
	}
	r.endRound(fmt.Errorf("a message of the log could not be derived: %w", err))
}

// meets says why a message ends this round or term, or nil if it is adopted. A frame
// of a higher term ends the term also where it is void: Raft has elected another leader,
// who may know the log better where it has lost what we put there.
func (r *round) meets(m eventlog.Message) error {
	at := r.at
	if m.Seq != at.Seq+1 {
		return nil // deriveMessage says what is wrong
	}
	f, valid, err := at.Follow(m.Data)
	switch {
	case err != nil || f.Term < r.term:
		assert.Sometimes(valid && f.Term < r.term, "a leader adopts a frame of an earlier term", nil)
		return nil
	case f.Term > r.term:
		assert.Reachable("a writer is deposed by a frame in the log", nil)
		return &DeposedError{Own: r.term, Term: f.Term, Seq: m.Seq}
	case !valid:
		return nil
	case r.phase == phaseOpen:
		return fmt.Errorf("the log holds a frame of term %d at %d that is not ours", f.Term, m.Seq)
	}
	// Of an earlier round, or of an earlier life under the same term: ours comes
	// behind it.
	r.number = max(r.number, at.Round+1)
	return nil
}
