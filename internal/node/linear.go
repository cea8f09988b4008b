package node

import (
	"context"
	"fmt"

	"mneme/internal/raftfsm"
)

// linear waits until the local state is linearizable: this node leads, its
// writer is open in this very term, and the state holds all that was accepted,
// which may be more than what Raft has heard of.
func (n *Node) linear(ctx context.Context) error {
	writer := n.shardNow()
	if err := writer.Settled(ctx); err != nil {
		return err
	}
	index, err := n.group.LinearizableIndex(ctx)
	if err != nil {
		return err
	}
	// The term was confirmed after the call began. If it is the writer's, nobody
	// else has led, and so written, in between.
	if term := n.group.Term(); term != writer.Term() {
		return fmt.Errorf("%w: the writer of term %d has not begun", raftfsm.ErrNotLeader, term)
	}
	return n.group.WaitApplied(ctx, index)
}
