package node

import (
	"context"
	"errors"
	"time"

	"mneme/internal/projections"
	"mneme/memory"
)

// exclusive runs administrative work that replaces the log or the state; one at
// a time.
func (n *Node) exclusive(f func() error) error {
	if !n.admin.TryLock() {
		if n.eraser.holdsAdmin() {
			n.admin.Lock() // an erasure ends soon
			defer n.admin.Unlock()
			defer n.scrub.hold()()
			return f()
		}
		return memory.Errorf(memory.CodeConflict, "a rebuild, repair or verification is already running").WithHint("wait for it to end")
	}
	defer n.admin.Unlock()
	defer n.scrub.hold()()
	return f()
}

// Rebuild builds the state again from the log beside the present one and swaps
// last. Reads and writes go on.
func (n *Node) Rebuild(ctx context.Context, progress func(done, total uint64)) (memory.RebuildReport, error) {
	var report memory.RebuildReport
	err := n.exclusive(func() error {
		started := time.Now()
		before, err := n.stateHash()
		if err != nil {
			return err
		}
		if d := n.replica.Diverged(); d != nil {
			return memory.Errorf(memory.CodeLogDiverged, "the log does not hold all that the state holds: %v", d).WithHint("%s", d.Hint)
		}
		if err := n.replica.Rebuild(ctx, progress); err != nil {
			return n.explain(ctx, err)
		}
		shardReport, err := n.rebuiltShard(started, before)
		report.Shards = []memory.RebuildShard{shardReport}
		return err
	})
	return report, err
}

// explain says what is wrong with the log if that is why a rebuild failed.
func (n *Node) explain(ctx context.Context, failed error) error {
	v := n.state.View()
	defer v.Close()
	report, d, err := verifyLog(ctx, n.stream, v, nil)
	if err != nil || report.OK {
		return failed
	}
	n.stopWrites(d)
	return damagedLog("rebuild", report).WithCause(failed)
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
