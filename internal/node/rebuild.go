package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

// exclusive runs administrative work that replaces the log or the state; one at
// a time.
func (n *Node) exclusive(f func() error) error {
	if !n.admin.TryLock() {
		return memory.Errorf(memory.CodeConflict, "a rebuild, repair or verification is already running").WithHint("wait for it to end")
	}
	defer n.admin.Unlock()
	return f()
}

// Rebuild builds the state again from the log beside the present one and swaps
// last. Reads stay up; writes wait only for the last stretch.
func (n *Node) Rebuild(ctx context.Context, progress func(done, total uint64)) (memory.RebuildReport, error) {
	var report memory.RebuildReport
	err := n.exclusive(func() error {
		started := time.Now()
		before, err := n.stateHash()
		if err != nil {
			return err
		}
		shard := n.shardNow()
		if d := shard.Diverged(); d != nil {
			return memory.Errorf(memory.CodeLogDiverged, "the log does not hold all that the state holds: %v", d).WithHint("%s", d.Hint)
		}
		sibling, err := n.state.Sibling()
		if err != nil {
			return fmt.Errorf("rebuild: %w", err)
		}
		if err := n.rebuildInto(ctx, shard, sibling, progress); err != nil {
			return err
		}
		shardReport, err := n.rebuiltShard(started, before)
		report.Shards = []memory.RebuildShard{shardReport}
		return err
	})
	return report, err
}

func (n *Node) rebuildInto(ctx context.Context, shard *ingest.Shard, sibling *projections.State, progress func(done, total uint64)) error {
	swapped := false
	defer func() {
		if !swapped {
			if err := sibling.Discard(); err != nil {
				n.cfg.Logger.Warn("rebuilt state could not be removed", "err", err)
			}
		}
	}()
	if _, err := replayInto(ctx, n.stream, n.keys, sibling, 0, progress); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	resume, err := shard.Pause(ctx)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	defer resume()
	if _, err := replayInto(ctx, n.stream, n.keys, sibling, n.state.Cursor().Seq, progress); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if got, want := sibling.Cursor(), n.state.Cursor(); got.Seq != want.Seq || got.Chain != want.Chain {
		return fmt.Errorf("rebuild: the log leads to %s, the state stands at %s", got.Position(), want.Position())
	}
	swapped = true
	if err := n.machine.swap(sibling, n.state.Cursor().Identity); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := n.query.Load(ctx); err != nil {
		return fmt.Errorf("rebuild: load vectors: %w", err)
	}
	return nil
}

func (n *Node) stateHash() (projections.StateHash, error) {
	v := n.state.View()
	h, err := v.Hash()
	return h, errors.Join(err, v.Close())
}

func (n *Node) rebuiltShard(started time.Time, before projections.StateHash) (memory.RebuildShard, error) {
	v := n.state.View()
	defer v.Close()
	h, err := v.Hash()
	c := v.Cursor()
	return memory.RebuildShard{ID: shard0, Position: c.Position().String(), StateHash: h.String(), Before: before.String(),
		Events: c.Events, TookMS: time.Since(started).Milliseconds()}, err
}

// VerifyLog reads the whole log against the chain and the state.
func (n *Node) VerifyLog(ctx context.Context, progress func(done, total uint64)) (memory.VerifyReport, error) {
	var report memory.VerifyReport
	err := n.exclusive(func() error {
		v := n.state.View()
		defer v.Close()
		shard, err := verifyLog(ctx, n.stream, v, progress)
		report.Shards = []memory.VerifyShard{shard}
		return err
	})
	return report, err
}

// verifyLog compares a log with a view of the state, message by message.
func verifyLog(ctx context.Context, stream eventlog.Stream, v *projections.View, progress func(done, total uint64)) (memory.VerifyShard, error) {
	out := memory.VerifyShard{ID: shard0}
	info, err := stream.Info(ctx)
	if err != nil {
		return out, fmt.Errorf("verify log: %w", err)
	}
	out.First, out.Last = info.First, info.Last
	cursor := v.Cursor()
	scrub, err := eventlog.Scrub(ctx, stream, eventlog.Tail{Shard: shard0}, ingest.FrameHashes(v), progress)
	if err != nil {
		return out, fmt.Errorf("verify log: %w", err)
	}
	out.Frames, out.Events = scrub.Frames, scrub.Events
	var d *eventlog.DivergedError
	switch err := ingest.CheckLog(ctx, stream, v); {
	case errors.As(err, &d):
		out.Problems, out.Hint = append(out.Problems, fmt.Sprintf("%s: %s", d.Kind, d.Detail)), d.Hint
	case err != nil:
		return out, fmt.Errorf("verify log: %w", err)
	}
	for _, p := range scrub.Problems {
		out.Problems = append(out.Problems, fmt.Sprintf("sequence %d: %s: %s", p.Seq, p.Kind, p.Detail))
	}
	if d := scrub.Diverged(); d != nil && out.Hint == "" {
		out.Hint = d.Hint
	}
	if out.Hint == "" && scrub.Tail.Seq == cursor.Seq && scrub.Tail.Chain != cursor.Chain {
		out.Problems = append(out.Problems, "the chain over the log does not end where the state's does")
		out.Hint = "memctl rebuild builds the state again from the log"
	}
	out.OK = out.Hint == ""
	return out, nil
}

// RepairLog writes what the log lost again from state, at the same sequences,
// and begins a new epoch.
func (n *Node) RepairLog(ctx context.Context, progress func(done, total uint64)) (memory.RepairReport, error) {
	var report memory.RepairReport
	err := n.exclusive(func() error {
		if n.shardNow().Diverged() == nil {
			if err := n.shardNow().Check(ctx); err == nil {
				return memory.Errorf(memory.CodeConflict, "log and state agree, there is nothing to repair")
			}
		}
		if err := n.stopShard(ctx); err != nil {
			return err
		}
		shard, err := n.repair(ctx, progress)
		// Without a repair the shard starts again as it was: reads up, writes stopped.
		if err = errors.Join(err, n.startShard(ctx, err == nil)); err != nil {
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

func (n *Node) repair(ctx context.Context, progress func(done, total uint64)) (memory.RepairShard, error) {
	out := memory.RepairShard{ID: shard0}
	v := n.state.View()
	defer v.Close()
	before, err := n.stream.Info(ctx)
	if err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	frames := func(seq uint64) ([]byte, error) {
		b, err := v.Frame(seq)
		if err == nil && b == nil {
			err = fmt.Errorf("the state does not hold frame %d: %w", seq, events.ErrMalformed)
		}
		return b, err
	}
	last := v.Cursor().Seq
	err = eventlog.Repair(ctx, n.stream, 1, frames, last, eventlog.RepairOptions{Recreate: true, Progress: progress})
	var refused *eventlog.RepairError
	if errors.As(err, &refused) {
		return out, memory.Errorf(memory.CodeLogDiverged, "the log was not touched: %v", refused).
			WithHint("memctl log verify shows what differs; memctl restore brings a backup back")
	}
	if err != nil {
		return out, fmt.Errorf("repair log: %w", err)
	}
	info, err := n.stream.Info(ctx)
	if err != nil {
		return out, err
	}
	out.Restored = info.Messages - min(info.Messages, before.Messages)
	if info.Identity != before.Identity {
		out.Restored = info.Messages
	}
	for seq := info.Last - out.Restored + 1; seq <= info.Last; seq++ {
		b, err := frames(seq)
		if err != nil {
			return out, err
		}
		if f, err := events.DecodeFrame(b); err == nil {
			out.Events += uint64(len(f.Events))
		}
	}
	n.machine.mu.Lock()
	defer n.machine.mu.Unlock()
	index, term := n.state.AppliedIndex()
	return out, n.state.SetOrigin(index, term, info.Identity)
}
