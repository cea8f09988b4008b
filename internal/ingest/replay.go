package ingest

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

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

// replayer derives the messages of the log in their order and cuts them into
// what one range holds.
type replayer struct {
	deriver *derive.Deriver
	at      projections.Cursor // behind the messages taken

	next []projections.RangeFrame // of the range that gathers
	size int
	full chan []projections.RangeFrame
}

// take derives a message, and hands on the range before it once that is full.
func (p *replayer) take(ctx context.Context, m eventlog.Message) error {
	rf, err := deriveMessage(p.deriver, &p.at, m)
	if err != nil {
		return err
	}
	size := rf.EncodedSize()
	if p.size+size > replayBytes || len(p.next) == replayFrames {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.next = append(p.next, rf)
	p.size += size
	return nil
}

// flush hands on the range that gathers.
func (p *replayer) flush(ctx context.Context) error {
	if len(p.next) == 0 {
		return nil
	}
	select {
	case p.full <- p.next:
		p.next, p.size = nil, 0
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
// them. It returns the number of messages that were applied. The next range is
// read and derived while one is applied, so up to three are in memory. apply is
// called by one goroutine, which has ended when Replay returns. What the log says of events
// in quarantine is read first.
func Replay(ctx context.Context, stream eventlog.Stream, state *projections.State, d *derive.Deriver, to uint64, apply func(*projections.Range) error) (uint64, error) {
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	if to == 0 || to > info.Last {
		to = info.Last
	}
	at := state.Cursor()
	if at.Seq >= to {
		return 0, nil
	}
	if err := readQuarantined(ctx, stream, state, info.Last); err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	// A range is begun when the one before it is applied: it names what was.
	p := &replayer{deriver: d, at: at, full: make(chan []projections.RangeFrame)}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(p.full)
		err := stream.Read(ctx, at.Seq+1, to, func(m eventlog.Message) error { return p.take(ctx, m) })
		if err != nil {
			return err
		}
		return p.flush(ctx)
	})
	var n uint64
	work.Go(func() error {
		for frames := range p.full {
			c := state.Cursor()
			r := projections.NewRange(&c)
			r.Frames, r.Keys = frames, d.KeysIndex() // a replica may have to wait for them
			if err := apply(r); err != nil {
				return err
			}
			n += uint64(len(frames))
		}
		return nil
	})
	err = work.Wait()
	return n, err
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
