package views

import (
	"context"
	"errors"
	"time"

	"mneme/internal/events"
	"mneme/memory"
)

// Freshness says how new a read must be.
type Freshness struct {
	AtLeast     string             // a position that must be reached; "" = none
	Consistency memory.Consistency // "" = local
	// Wait is how long to wait for AtLeast; 0 = DefaultWait. The context may
	// end it earlier.
	Wait time.Duration
}

// DefaultWait is how long a read waits for its position.
const DefaultWait = 5 * time.Second

// await waits until the node is as fresh as f asks, and returns the position
// that the view must hold.
func (s *Views) await(ctx context.Context, f Freshness) (events.Position, error) {
	target, err := s.ParsePosition(f.AtLeast)
	if err != nil {
		return target, err
	}
	switch f.Consistency {
	case "", memory.ConsistencyLocal:
	case memory.ConsistencyLinearizable:
		if s.opt.Linear == nil {
			return target, memory.Errorf(memory.CodeUnavailable, "linearizable reads are not supported by this node").
				WithHint("read with consistency=local and at_least=<the position of your write>")
		}
		if err := s.opt.Linear(ctx); err != nil {
			var typed *memory.Error
			if errors.As(err, &typed) {
				return target, err
			}
			return target, memory.Errorf(memory.CodeUnavailable, "the state could not be confirmed with the leader").WithCause(err)
		}
	default:
		return target, memory.Errorf(memory.CodeInvalid, "consistency %q is unknown", Clip(string(f.Consistency))).
			WithHint("levels are local and linearizable")
	}
	if target.IsZero() {
		return target, nil
	}
	wait := f.Wait
	if wait <= 0 {
		wait = DefaultWait
	}
	return target, s.reach(ctx, target, wait)
}

// Reach waits until this node stands at a position, or behind it. Errors:
// stale_position after DefaultWait, lost_position.
func (s *Views) Reach(ctx context.Context, position string) error {
	target, err := s.ParsePosition(position)
	if err != nil {
		return err
	}
	return s.reach(ctx, target, DefaultWait)
}

// reach waits until the memory stands at or behind target.
func (s *Views) reach(ctx context.Context, target events.Position, wait time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		at, moved, closed := s.watch.now()
		// Frames apply as a whole: the sequence decides.
		if at.Seq >= target.Seq {
			return nil
		}
		if at.Epoch > target.Epoch { // no waiting brings it back
			return lost(target, at.Epoch)
		}
		if closed {
			return Stopping()
		}
		select {
		case <-moved:
		case <-bound.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return Failed("waiting for "+target.String(), ctx.Err())
			}
			return memory.Errorf(memory.CodeStalePosition, "this node stands at %s and has not reached %s", at.Position(), target).
				WithHint("try again, or ask another node")
		}
	}
}

// ParsePosition reads a position that a caller gave; "" gives the zero one, and so does
// one in front of all events, whichever shard it names: it is the beginning.
func (s *Views) ParsePosition(text string) (events.Position, error) {
	if text == "" {
		return events.Position{}, nil
	}
	p, err := events.ParsePosition(text)
	if err != nil {
		return p, memory.Errorf(memory.CodeInvalid, "%q is not a position", Clip(text)).
			WithHint("use a position as an answer gave it, such as p0.0.42.3").WithCause(err)
	}
	if p.IsZero() {
		return events.Position{}, nil
	}
	if p.Shard != s.opt.Shard {
		return p, memory.Errorf(memory.CodeInvalid, "position %s belongs to shard %d, this namespace lives on shard %d", p, p.Shard, s.opt.Shard)
	}
	return p, nil
}
