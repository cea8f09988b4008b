package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"mneme/internal/events"
)

// RepairOptions say how far a repair may go.
type RepairOptions struct {
	// Recreate allows replacing a stream whose messages are all known to the
	// source but have holes, which appending cannot fill, or to which the server
	// does not append any more.
	Recreate bool
	// Progress, if not nil, is called after each message compared or written.
	Progress func(done, total uint64)
}

// RepairError says why a repair did not touch the log.
type RepairError struct {
	Seq    uint64
	Detail string
}

func (e *RepairError) Error() string {
	return fmt.Sprintf("repair refused at sequence %d: %s", e.Seq, e.Detail)
}

// Repair writes messages from..to again, at the same sequences, where the
// stream does not have them. frames gives the bytes of a message as the state
// kept them. It writes nothing unless every message that is there equals what
// would be written (else *RepairError), and it may be repeated after it was
// interrupted. A message that is no frame counts as missing: its bytes were
// damaged, for a frame has a checksum. Nobody else may write meanwhile.
//
//   - suffix lost: the missing messages are appended.
//   - stream empty (created again): it is made to begin at from, if need be, and
//     everything is appended.
//   - holes: only with RepairOptions.Recreate, and only if the log does not
//     reach past to, because what lies there is not known to the source.
func Repair(ctx context.Context, s RepairStream, from uint64, frames func(seq uint64) ([]byte, error), to uint64, opt RepairOptions) error {
	if from == 0 || to < from {
		return fmt.Errorf("repair: %w", &RepairError{from, fmt.Sprintf("nothing lies between %d and %d", from, to)})
	}
	r := &repairer{s: s, from: from, to: to, frames: frames, opt: opt}
	next, err := r.plan(ctx)
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	err = r.write(ctx, next)
	if errors.Is(err, ErrRefused) && opt.Recreate {
		// After it cut a damaged block while running, nats-server reports the
		// shorter log but still expects the old sequence; nothing fits then.
		next, err = r.anew(ctx)
		if err == nil {
			err = r.write(ctx, next)
		}
	}
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

type repairer struct {
	s        RepairStream
	from, to uint64
	frames   func(uint64) ([]byte, error)
	opt      RepairOptions
}

func (r *repairer) progress(seq uint64) {
	if r.opt.Progress != nil {
		r.opt.Progress(seq-r.from+1, r.to-r.from+1)
	}
}

// plan compares what is there, makes the stream anew if that is needed and
// allowed, and returns the first sequence to write.
func (r *repairer) plan(ctx context.Context) (uint64, error) {
	info, err := r.s.Info(ctx)
	if err != nil {
		return 0, err
	}
	if info.Messages == 0 {
		if info.Last+1 == r.from {
			return r.from, nil
		}
		return r.from, r.s.Recreate(ctx, r.from)
	}
	if info.Last+1 < r.from {
		return 0, &RepairError{info.Last + 1, "the source begins later than the log ends"}
	}
	switch holes, err := r.compare(ctx, info); {
	case err != nil:
		return 0, err
	case !holes:
		return max(info.Last+1, r.from), nil
	case !r.opt.Recreate:
		return 0, &RepairError{info.First, "messages are missing inside the log; the stream has to be made anew"}
	}
	return r.anew(ctx)
}

// anew replaces the stream by an empty one, if the source knows everything that
// is in it, and returns the first sequence to write.
func (r *repairer) anew(ctx context.Context) (uint64, error) {
	info, err := r.s.Info(ctx)
	switch {
	case err != nil:
		return 0, err
	case info.Messages > 0 && info.Last > r.to:
		return 0, &RepairError{r.to + 1, "the log has messages that the source does not know; making the stream anew would lose them"}
	case info.Messages > 0 && info.First < r.from:
		return 0, &RepairError{info.First, "the log has messages before the first of the source; making the stream anew would lose them"}
	}
	if info.Messages > 0 {
		if _, err := r.compare(ctx, info); err != nil {
			return 0, err
		}
	}
	for seq := r.from; seq <= r.to; seq++ {
		if _, err := r.frames(seq); err != nil {
			return 0, fmt.Errorf("source at %d: %w", seq, err)
		}
	}
	return r.from, r.s.Recreate(ctx, r.from)
}

// write appends from next on.
func (r *repairer) write(ctx context.Context, next uint64) error {
	for seq := next; seq <= r.to; seq++ {
		data, err := r.frames(seq)
		if err != nil {
			return fmt.Errorf("source at %d: %w", seq, err)
		}
		if err := r.append(ctx, data, seq); err != nil {
			return fmt.Errorf("write %d: %w", seq, err)
		}
		r.progress(seq)
	}
	return nil
}

// rotten reports whether bytes of the log are no frame.
func rotten(data []byte) bool {
	_, err := events.DecodeFrame(data)
	return errors.Is(err, events.ErrMalformed)
}

// compare holds what is there against the source and reports holes.
func (r *repairer) compare(ctx context.Context, info Info) (holes bool, err error) {
	end := min(info.Last, r.to)
	for at := r.from; at <= end; {
		err := r.s.Read(ctx, at, end, func(m Message) error {
			want, err := r.frames(m.Seq)
			if err != nil {
				return fmt.Errorf("source at %d: %w", m.Seq, err)
			}
			switch {
			case bytes.Equal(m.Data, want):
			case rotten(m.Data):
				holes = true
			default:
				return &RepairError{m.Seq, "the message that is there differs from the one that the state applied"}
			}
			at = m.Seq + 1
			r.progress(m.Seq)
			return nil
		})
		var gap *GapError
		if !errors.As(err, &gap) {
			return holes, err
		}
		holes = true
		if gap.Got == 0 || gap.Got > end {
			break
		}
		at = gap.Got
	}
	return holes, nil
}

// append writes one message; an unknown outcome is settled by looking.
func (r *repairer) append(ctx context.Context, data []byte, seq uint64) error {
	err := r.s.Append(ctx, data, seq-1)
	if err == nil {
		return nil
	}
	m, gerr := r.s.Get(ctx, seq)
	switch {
	case gerr == nil && bytes.Equal(m.Data, data):
		return nil
	case gerr == nil:
		return &RepairError{seq, "somebody else wrote to the log meanwhile"}
	}
	return err
}
