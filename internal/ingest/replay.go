package ingest

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
)

// tail is where the state stands, as the log's writer sees it.
func (s *Shard) tail() eventlog.Tail {
	c := s.opt.State.Cursor()
	return eventlog.Tail{Seq: c.Seq, Chain: c.Chain, Term: max(c.Term, s.opt.Term), Epoch: c.Epoch, Shard: s.opt.Shard}
}

// A range of a replay holds at most so many frames, and its command is at most
// so long: what is derived from dense text is several times as long as the log.
// A frame that is longer goes alone.
const (
	replayBytes  = 2 << 20
	replayFrames = 256
)

// replayer cuts messages of the log into ranges that continue the state.
type replayer struct {
	state   *projections.State
	deriver *derive.Deriver
	apply   func(*projections.Range) error

	at   projections.Cursor // behind the messages taken
	next *projections.Range // taken, not applied yet; nil = none
	size int
	n    uint64 // messages applied
}

// take derives a message and applies what is full.
func (p *replayer) take(m eventlog.Message) error {
	rf, err := deriveMessage(p.deriver, &p.at, m)
	if err != nil {
		return err
	}
	size := rf.EncodedSize()
	if p.next != nil && (p.size+size > replayBytes || len(p.next.Frames) == replayFrames) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.next == nil {
		c := p.state.Cursor()
		p.next, p.size = projections.NewRange(&c), 0
	}
	p.next.Frames = append(p.next.Frames, rf)
	p.size += size
	return nil
}

func (p *replayer) flush() error {
	if p.next == nil {
		return nil
	}
	r := p.next
	p.next = nil
	p.n += uint64(len(r.Frames))
	return p.apply(r)
}

// deriveMessage derives the message behind the cursor and moves the cursor over
// it. A message with another sequence is a *eventlog.GapError: folded, it would
// be void, and so would everything after it.
func deriveMessage(d *derive.Deriver, at *projections.Cursor, m eventlog.Message) (projections.RangeFrame, error) {
	rf := projections.RangeFrame{Bytes: m.Data}
	if m.Seq != at.Seq+1 {
		return rf, fmt.Errorf("derive from the log: %w", &eventlog.GapError{Want: at.Seq + 1, Got: m.Seq})
	}
	f, valid, err := at.Follow(m.Data)
	if err != nil {
		return rf, fmt.Errorf("message %d: %w", m.Seq, err)
	}
	if valid {
		rf.Contributions, err = d.Frame(&f, nil)
	}
	return rf, err
}

// Replay reads the log behind the state's cursor up to sequence `to` (0 = its
// end) and hands ranges to apply, which must leave the state behind each of
// them. It returns the number of messages.
func Replay(ctx context.Context, stream eventlog.Stream, state *projections.State, d *derive.Deriver, to uint64, apply func(*projections.Range) error) (uint64, error) {
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	if to == 0 || to > info.Last {
		to = info.Last
	}
	p := &replayer{state: state, deriver: d, apply: apply, at: state.Cursor()}
	if p.at.Seq >= to {
		return 0, nil
	}
	if err := stream.Read(ctx, p.at.Seq+1, to, p.take); err != nil {
		return p.n, err
	}
	return p.n, p.flush()
}

// begin brings the state to the log's end and writes leader.began. Nothing is
// admitted before both are done.
func (s *Shard) begin(ctx context.Context) error {
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	if s.diverged.Load() != nil {
		s.writer = eventlog.NewWriter(s.opt.Stream, s.tail(), eventlog.WriterOptions{})
		return nil
	}
	s.sealedAt = s.opt.State.Cursor().SealedAt
	s.writer = eventlog.NewWriter(s.opt.Stream, s.tail(), eventlog.WriterOptions{Identity: s.identity()})
	if s.opt.RaiseEpoch {
		at := s.writer.Tail()
		at.Epoch++
		s.writer.Resume(at)
		if err := s.control(ctx, events.TypeEpochBegan); err != nil {
			return err
		}
	}
	return s.control(ctx, events.TypeLeaderBegan)
}

// control writes one control event and applies it.
func (s *Shard) control(ctx context.Context, t events.Type) error {
	began := events.Envelope{Header: events.Header{Type: t, Schema: t.Schema(), Event: s.ids.New(), SealedAt: s.stamp()}}
	began.OccurredAt = began.SealedAt
	f := &frame{encoded: [][]byte{began.Encode()}}
	for s.diverged.Load() == nil {
		before := s.writer.Tail()
		a, err := s.appendUntilKnown(ctx, f)
		var adopt *eventlog.AdoptError
		var diverged *eventlog.DivergedError
		switch {
		case err == nil:
			return s.applyBegan(ctx, before, a)
		case errors.As(err, &adopt):
			if err := s.catchUp(ctx); err != nil {
				return err
			}
			at := s.tail()
			at.Epoch = max(at.Epoch, before.Epoch) // the raised one, if it is
			s.writer.Resume(at)
		case errors.As(err, &diverged):
			s.diverged.Store(diverged)
		default:
			return fmt.Errorf("begin term %d: %w", s.opt.Term, err)
		}
	}
	return nil
}

func (s *Shard) applyBegan(ctx context.Context, before eventlog.Tail, a eventlog.Appended) error {
	cur := s.opt.State.Cursor()
	r := projections.NewRange(&cur)
	r.Previous, r.Chain = before.Seq, before.Chain
	r.Frames = []projections.RangeFrame{{Bytes: a.Frame, Contributions: make([]*projections.Contribution, 1)}}
	_, _, err := s.opt.Group.Propose(ctx, r.Encode()).Wait(ctx)
	if err != nil {
		return fmt.Errorf("begin term %d: %w", s.opt.Term, err)
	}
	return nil
}

func (s *Shard) stamp() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealedAt = max(s.sealedAt+1, s.opt.Now().UnixNano())
	return s.sealedAt
}

func (s *Shard) identity() string { return s.opt.State.Cursor().Identity }

// catchUp compares log and state and applies what the log has more. A log that
// contradicts the state stops writes and leaves reads up.
func (s *Shard) catchUp(ctx context.Context) error {
	if err := s.Check(ctx); err != nil {
		var d *eventlog.DivergedError
		if errors.As(err, &d) {
			s.opt.Logger.Error("log and state disagree, writes are stopped", "kind", d.Kind, "detail", d.Detail, "hint", d.Hint)
			s.diverged.Store(d)
			return nil
		}
		return err
	}
	_, err := Replay(ctx, s.opt.Stream, s.opt.State, s.deriver, 0, func(r *projections.Range) error {
		_, _, err := s.opt.Group.Propose(ctx, r.Encode()).Wait(ctx)
		return err
	})
	var gap *eventlog.GapError
	if errors.As(err, &gap) {
		s.diverged.Store(&eventlog.DivergedError{Kind: eventlog.KindGap, Seq: gap.Want, Detail: gap.Error(), Hint: "memctl log verify shows the extent"})
		return nil
	}
	return err
}

// Check compares log and state: identity, ends, gaps, lost messages, hashes of
// the last frames.
func (s *Shard) Check(ctx context.Context) error {
	v := s.opt.State.View()
	defer v.Close()
	return CheckLog(ctx, s.opt.Stream, v)
}

// CheckLog compares a log with a view of the state.
func CheckLog(ctx context.Context, stream eventlog.Stream, v *projections.View) error {
	c := v.Cursor()
	return eventlog.Check(ctx, stream, eventlog.Expect{Identity: c.Identity, Seq: c.Seq, Chain: c.Chain, Hashes: FrameHashes(v)})
}

// FrameHashes gives the hash of each message as the state keeps it.
func FrameHashes(v *projections.View) func(seq uint64) (events.Hash, bool) {
	return func(seq uint64) (events.Hash, bool) {
		b, err := v.Frame(seq)
		if err != nil || b == nil {
			return events.Hash{}, false
		}
		return events.HashEnvelope(b), true
	}
}
