package replica

import (
	"context"
	"fmt"

	"mneme/internal/projections"
)

// catchUps is how often a rebuild follows what was applied while it ran, before it
// holds up the applying for the rest.
const catchUps = 3

// Rebuilt is what a rebuild came to: where both states stood when the new one took the
// present one's place, and the hashes of both. They are equal unless the state was
// not what its log leads to.
type Rebuilt struct {
	At            projections.Cursor
	Before, After projections.StateHash
}

// Rebuild builds the state again from the log beside the present one and swaps
// last. It ends where the present state stands, not at the log's end. Reads and
// writes go on; applying waits for the last stretch.
func (r *Replica) Rebuild(ctx context.Context, progress func(done, total uint64)) (Rebuilt, error) {
	sibling, err := r.state.Sibling()
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild: %w", err)
	}
	out, err := r.rebuildInto(ctx, sibling, progress)
	if err != nil {
		if derr := sibling.Discard(); derr != nil {
			r.opt.Logger.Warn("rebuilt state could not be removed", "err", derr)
		}
		return Rebuilt{}, fmt.Errorf("rebuild: %w", err)
	}
	if err := r.views.reload(ctx); err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild: %w", err)
	}
	return out, nil
}

func (r *Replica) rebuildInto(ctx context.Context, sibling *projections.State, progress func(done, total uint64)) (Rebuilt, error) {
	to := func(seq uint64) error {
		if sibling.Cursor().Seq >= seq {
			return nil
		}
		_, err := replay(ctx, r.opt.Stream, r.opt.Keys, sibling, seq, progress)
		return err
	}
	for i := range catchUps {
		if err := to(r.state.Cursor().Seq); err != nil {
			return Rebuilt{}, err
		}
		if i == 0 { // nearly all of it is there, and nothing waits yet
			if err := sibling.Sort(ctx); err != nil {
				return Rebuilt{}, err
			}
		}
	}
	return r.machine.swap(sibling, to)
}
