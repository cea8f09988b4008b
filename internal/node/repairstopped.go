package node

import (
	"context"

	"mneme/internal/projections"
	"mneme/memory"
)

// RepairLog repairs the log of a stopped node. The old stream is removed when the
// node starts.
func (o Offline) RepairLog(ctx context.Context, dir string, progress func(done, total uint64)) (memory.RepairReport, error) {
	var out memory.RepairReport
	err := o.with(ctx, dir, func(c *core) error {
		var sound error
		for _, s := range c.shards {
			one, err := stopped{s}.repair(ctx, progress)
			switch {
			case memory.CodeOf(err) == memory.CodeConflict && len(c.shards) > 1:
				sound = err
				continue
			case err != nil:
				return s.metDamage(err)
			}
			out.Shards = append(out.Shards, one)
		}
		if out.Shards == nil {
			return sound
		}
		return nil
	})
	return out, err
}

func (s stopped) repair(ctx context.Context, progress func(done, total uint64)) (memory.RepairShard, error) {
	var none memory.RepairShard
	opt := s.replicaOptions()
	if err := opt.Alone(); err != nil {
		return none, publicError(startError("shard", err))
	}
	if err := s.roomToApply(); err != nil {
		return none, err
	}
	state, err := openExisting(opt.StateOptions())
	if err != nil {
		return none, s.closedState(err)
	}
	s.state = state
	s.onClose("state", func(context.Context) error { return state.Close() })
	if err := opt.CatchUp(state); err != nil {
		return none, publicError(startError("state", err))
	}
	if err := (streams{s.shard}).chooseFor(ctx, state); err != nil {
		return none, publicError(err)
	}
	if err := s.refuseShortLog(ctx, state.Cursor()); err != nil {
		return none, err
	}
	r := &repair{shard: s.shard, progress: progress}
	return r.stopped(ctx)
}

// openExisting opens a state for writing, and makes none: a log must not be compared
// with an empty state, which agrees with any.
func openExisting(opt projections.Options) (*projections.State, error) {
	only := opt
	only.ReadOnly = true
	found, err := projections.Open(only)
	if err != nil {
		return nil, err
	}
	if err := found.Close(); err != nil {
		return nil, err
	}
	return projections.Open(opt)
}

// stopped repairs the log of a stopped node.
func (r *repair) stopped(ctx context.Context) (memory.RepairShard, error) {
	state := r.shard.state
	if !r.unfinished() {
		if _, err := r.shard.needsRepair(ctx); err != nil {
			return memory.RepairShard{}, err
		}
	}
	out, err := r.run(ctx)
	if err == nil {
		err = streams{r.shard}.beginEpoch(ctx)
	}
	if err != nil {
		return out, err
	}
	v := state.View()
	defer v.Close()
	cur := v.Cursor()
	out.Epoch, out.Position, out.StateHash = cur.Epoch, cur.Position().String(), v.Hash().String()
	out.Detail = "the log that it replaces is removed when memnode starts"
	return out, nil
}
