package ingest

import (
	"context"
	"fmt"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
)

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

// CheckLog compares a log with a view of the state.
func CheckLog(ctx context.Context, stream eventlog.Stream, v *projections.View) error {
	c := v.Cursor()
	return eventlog.Check(ctx, stream, eventlog.Expect{Identity: c.Identity, Next: c.Next.Identity, Seq: c.Seq, Chain: c.Chain, Hashes: FrameHashes(v)})
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
