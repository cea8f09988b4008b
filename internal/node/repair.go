package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/replica"
	"mneme/internal/storage"
	"mneme/memory"
)

// RepairLog writes what the log lost again from state, at the same sequences,
// and begins a new epoch. A log that a scrub finds sound is left alone.
func (n *Node) RepairLog(ctx context.Context, progress func(done, total uint64)) (memory.RepairReport, error) {
	var report memory.RepairReport
	err := n.exclusive(func() error {
		found := n.replica.Diverged()
		if found == nil {
			var err error
			if found, err = needsRepair(ctx, n.stream, n.state); err != nil {
				return err
			}
		}
		var shard memory.RepairShard
		err := n.replica.WithoutWriter(ctx, func() (err error) {
			if shard, err = n.repairLog(ctx, n.propose(ctx), progress); err == nil {
				found = nil
			}
			n.replica.SetDiverged(found) // after a failure it goes on as it was: reads up, writes stopped
			return err
		})
		if err = errors.Join(err, n.replica.WaitWriter(ctx)); err != nil {
			return err
		}
		c := n.state.Cursor()
		h, err := n.stateHash()
		shard.Epoch, shard.Position, shard.StateHash = c.Epoch, c.Position().String(), h.String()
		report.Shards = []memory.RepairShard{shard}
		return err
	})
	return report, err
}

// propose brings ranges into the state by Raft.
func (n *Node) propose(ctx context.Context) func(*projections.Range) error {
	return func(r *projections.Range) error {
		res, _, err := n.replica.Group().Propose(ctx, r.Encode()).Wait(ctx)
		if err != nil {
			return err
		}
		return replica.Continued(r, res)
	}
}

// RepairLog repairs the log of a stopped node. The new epoch begins when the
// node starts.
func (o Offline) RepairLog(ctx context.Context, dir string, progress func(done, total uint64)) (memory.RepairReport, error) {
	var out memory.RepairReport
	err := o.with(ctx, dir, func(c *core) error {
		state, err := projections.Open(c.replicaOptions().StateOptions())
		if err != nil {
			return publicError(startError("state", err))
		}
		c.state = state
		shard, err := c.repairStopped(ctx, progress)
		out.Shards = []memory.RepairShard{shard}
		return errors.Join(err, state.Close())
	})
	return out, err
}

func (c *core) repairStopped(ctx context.Context, progress func(done, total uint64)) (memory.RepairShard, error) {
	if _, err := needsRepair(ctx, c.stream, c.state); err != nil {
		return memory.RepairShard{}, err
	}
	out, err := c.repairLog(ctx, func(r *projections.Range) error {
		res, err := c.state.ApplyLocal(r)
		if err != nil {
			return err
		}
		return replica.Continued(r, res)
	}, progress)
	if err != nil {
		return out, err
	}
	v := c.state.View()
	defer v.Close()
	h, err := v.Hash()
	cur := v.Cursor()
	out.Epoch, out.Position, out.StateHash = cur.Epoch+1, cur.Position().String(), h.String()
	out.Detail = "the new epoch begins when memnode starts"
	return out, err
}

// needsRepair reads the whole log and returns what is wrong with it; a log that
// agrees with the state is a conflict.
func needsRepair(ctx context.Context, stream eventlog.Stream, state *projections.State) (*eventlog.DivergedError, error) {
	v := state.View()
	defer v.Close()
	report, d, err := verifyLog(ctx, stream, v, nil)
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

// repairLog repairs while nothing else writes. The log may hold messages that
// the state has not applied; apply brings them into it first, for a log that is
// made anew holds only what the state knows. A crash at any moment leaves a
// repair that can be repeated, or a finished one.
func (c *core) repairLog(ctx context.Context, apply func(*projections.Range) error, progress func(done, total uint64)) (memory.RepairShard, error) {
	out := memory.RepairShard{ID: shard0}
	before, err := c.stream.Info(ctx)
	if err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	if err := c.applyTail(ctx, before.Last, apply); err != nil {
		return out, err
	}
	// From here on the state may be the only copy: it has to be on disk.
	if err := c.state.Flush(); err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	if err := c.planEpoch(); err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	v := c.state.View()
	defer v.Close()
	frames := stateFrames(v)
	err = eventlog.Repair(ctx, c.stream, 1, frames, v.Cursor().Seq, eventlog.RepairOptions{Recreate: true, Progress: progress})
	if err != nil {
		return out, repairError(err)
	}
	info, err := c.stream.Info(ctx)
	if err != nil {
		return out, err
	}
	if err := c.adoptIdentity(info.Identity); err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	out.Restored, out.Events, err = restored(before, info, frames)
	return out, errors.Join(err, c.forgetDivergence())
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

func repairError(err error) error {
	var refused *eventlog.RepairError
	if errors.As(err, &refused) {
		return memory.Errorf(memory.CodeLogDiverged, "the log was not touched: %v", refused).
			WithHint("memctl log verify shows what differs; memctl restore brings a backup back")
	}
	return fmt.Errorf("repair log: %w", err)
}

// applyTail brings messages behind the state's cursor into the state. They have
// to continue its chain, else the log is another one.
func (c *core) applyTail(ctx context.Context, last uint64, apply func(*projections.Range) error) error {
	cur := c.state.Cursor()
	if last <= cur.Seq {
		return nil
	}
	m, err := c.stream.Get(ctx, cur.Seq+1)
	if err == nil {
		var f events.Frame
		if f, err = events.DecodeFrame(m.Data); err == nil && f.Previous != cur.Chain {
			err = errors.New("it does not continue what the state applied")
		}
	}
	if err != nil {
		return repairError(&eventlog.RepairError{Seq: cur.Seq + 1, Detail: fmt.Sprintf("the log goes on behind the state, which cannot take message %d: %v", cur.Seq+1, err)})
	}
	v := c.state.View()
	d, err := derive.New(c.keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	if _, err := ingest.Replay(ctx, c.stream, c.state, d, last, apply); err != nil {
		return repairError(&eventlog.RepairError{Seq: c.state.Cursor().Seq + 1, Detail: err.Error()})
	}
	return nil
}

// adoptIdentity makes the state know the stream that was made in place of the
// old one, durably.
func (c *core) adoptIdentity(identity string) error {
	if c.replica != nil {
		return c.replica.AdoptStream(identity)
	}
	index, term := c.state.AppliedIndex()
	if err := c.state.SetOrigin(index, term, identity); err != nil {
		return err
	}
	return c.state.Flush()
}

// restored counts what a repair wrote.
func restored(before, after eventlog.Info, frames func(uint64) ([]byte, error)) (n, inside uint64, err error) {
	n = after.Messages - min(after.Messages, before.Messages)
	if after.Identity != before.Identity {
		n = after.Messages
	}
	for seq := after.Last - n + 1; seq <= after.Last; seq++ {
		b, err := frames(seq)
		if err != nil {
			return n, inside, err
		}
		if f, err := events.DecodeFrame(b); err == nil {
			inside += uint64(len(f.Events))
		}
	}
	return n, inside, nil
}

// epochPlan is the file epoch.json: the epoch that has to begin before anything
// else is written, because the log was repaired.
type epochPlan struct {
	Format int    `json:"format"`
	Epoch  uint32 `json:"epoch"`
}

const epochFormat = 1

func (c *core) epochFile() string { return filepath.Join(c.dir.shard(shard0), "epoch.json") }

// planEpoch makes the next epoch durable before the repair, so that a node that
// is killed after it begins that epoch all the same.
func (c *core) planEpoch() error {
	b, err := json.Marshal(epochPlan{Format: epochFormat, Epoch: c.state.Cursor().Epoch + 1})
	if err != nil {
		return err
	}
	return storage.ReplaceFile(c.cfg.FS, c.epochFile(), append(b, '\n'), 0o600)
}

// raiseEpoch reports whether an epoch is planned that has not begun, in a log
// that agrees with the state. A plan that cannot be read counts: an epoch more
// harms nobody.
func (c *core) raiseEpoch() bool {
	b, err := storage.ReadFile(c.cfg.FS, c.epochFile())
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	var p epochPlan
	return err != nil || json.Unmarshal(b, &p) != nil || p.Format != epochFormat || c.state.Cursor().Epoch < p.Epoch
}

// epochRaised forgets the plan once its epoch has begun. The begin is in the
// log, so the removal need not be synced.
func (c *core) epochRaised() error {
	if c.raiseEpoch() {
		return nil
	}
	return removeIfThere(c.cfg.FS, c.epochFile())
}

// epochs tells the replica of the plan.
type epochs struct{ c *core }

func (e epochs) Due() bool { return e.c.raiseEpoch() }

func (e epochs) Began() error { return e.c.epochRaised() }
