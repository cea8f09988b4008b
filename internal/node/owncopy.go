package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// ownCopy checks the copy of the log that the server of a node of several keeps. Every
// reading of the log asks the stream's leader, so that rot in the copies of the others shows
// to nobody, adds up from node to node, and keeps all of them from starting again. What it
// finds is told, has the node lead nothing, and ends with the node taking its copy from the
// others, see copyAnew.
type ownCopy struct {
	n     *Node
	every time.Duration // between two passes
	rate  int64         // bytes a second
	first time.Duration // from the start to the first pass
	again chan struct{} // asks for a pass now

	claims atomic.Bool // this node is about to take its copy anew, see copyAnew

	mu     sync.Mutex
	damage *eventlog.CopyDamaged // what was found; nil if nothing is
	told   memory.CopyStatus
	begun  uint64 // passes begun since the start; what the start read is the first one
	ended  uint64 // the highest number of those that ended
	under  int    // passes under way: who verifies does not wait for the slow one
}

// newOwnCopy is nil where the log's server is not this node's alone to keep: on an external
// NATS, and on a node on its own, whose copy is the log that is read.
func newOwnCopy(n *Node) *ownCopy {
	if n.cfg.Cluster == nil || n.cfg.NATSURL != "" {
		return nil
	}
	return &ownCopy{n: n, every: n.cfg.ScrubEvery, rate: n.cfg.ScrubRate, first: min(scrubAfterStart, n.cfg.ScrubEvery), again: make(chan struct{}, 1)}
}

// wasRead notes that the start has read all of it and found nothing.
func (c *ownCopy) wasRead() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.ended = 1, 1
	c.told.CheckedAt = c.n.cfg.Now().UTC()
}

// Status says when the copy was last checked, and what is wrong with it; nil where this node
// keeps none.
func (c *ownCopy) Status() *memory.CopyStatus {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.told
	return &out
}

// unfit says why a node with this copy should lead nothing.
func (c *ownCopy) unfit() error {
	if st := c.Status(); st != nil && st.Damage != "" {
		return damagedCopy(st.Damage)
	}
	return nil
}

// ask has a pass begin soon.
func (c *ownCopy) ask() {
	if c == nil {
		return
	}
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// next asks for a pass, and returns its number.
func (c *ownCopy) next() uint64 {
	c.ask()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun + 1
}

// run makes passes until ctx ends, and has damage end.
func (c *ownCopy) run(ctx context.Context) {
	for wait := c.first; ctx.Err() == nil; wait = c.every {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.again:
			t.Stop()
		case <-ctx.Done():
			t.Stop()
			return
		}
		if c.Status().Damage == "" {
			if err := c.pass(ctx, c.rate, nil); err != nil && ctx.Err() == nil {
				c.n.cfg.Logger.Warn("the check of this node's copy of the log could not go on", "err", err)
			}
		}
		if c.Status().Damage != "" {
			copyAnew{c}.run(ctx)
		}
	}
}

// pass checks the copy once, at so many bytes a second; 0 is as fast as the disk is. It ends
// at the first damage, which it tells. read, if not nil, is told of the bytes of each file.
func (c *ownCopy) pass(ctx context.Context, rate int64, read func(bytes int64)) error {
	c.mu.Lock()
	c.begun++
	c.under++
	number := c.begun
	c.told.Running = true
	c.mu.Unlock()
	damage, err := c.check(ctx, rate, read)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under--
	c.told.Running = c.under > 0
	if err != nil {
		return err
	}
	now := c.n.cfg.Now().UTC()
	c.ended = max(c.ended, number)
	switch {
	case c.damage != nil: // settled ends it
		return nil
	case damage == nil:
		c.told.CheckedAt = now
		return nil
	}
	c.damage = damage
	assert.Reachable("rot is found in the own copy of the log, while the node runs", nil)
	c.told.Damage, c.told.FoundAt = damage.Error(), now
	c.n.cfg.Logger.Error("this node's copy of the log is damaged", "damage", damage, "hint", copyHint)
	return nil
}

func (c *ownCopy) check(ctx context.Context, rate int64, read func(bytes int64)) (*eventlog.CopyDamaged, error) {
	check, err := eventlog.BeginCopyCheck(vfs.Default, c.n.dir.nats()) // NATS has files of its own
	for more := true; more && err == nil; {
		var n int64
		var damage *eventlog.CopyDamaged
		if more, n, damage, err = check.Step(ctx); err != nil || damage != nil {
			return damage, err
		}
		if read != nil {
			read(n)
		}
		if rate > 0 {
			err = sleep(ctx, time.Duration(n)*time.Second/time.Duration(rate))
		}
	}
	return nil, err
}

// verify is a pass that somebody waits for.
func (c *ownCopy) verify(ctx context.Context) (*memory.VerifyCopy, error) {
	if c == nil {
		return nil, nil
	}
	out := &memory.VerifyCopy{Node: c.n.dir.node.NodeID}
	if err := c.pass(ctx, 0, func(n int64) { out.Bytes += uint64(n); out.Files++ }); err != nil {
		return nil, err
	}
	st := c.Status()
	if out.OK = st.Damage == ""; !out.OK {
		out.Problem, out.Hint = st.Damage, copyHint
		c.ask()
	}
	return out, nil
}

// settled looks whether damage is over, as after a repair, which puts another stream in the
// place of the one that was damaged.
func (c *ownCopy) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.damage != nil && c.damage.Still() {
		return false
	}
	c.damage, c.told = nil, memory.CopyStatus{Running: c.under > 0}
	return true
}

// waits tells why the damage does not end yet.
func (c *ownCopy) waits(why string) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = c.told.Waits != why
	c.told.Waits = why
	return changed
}

// copyReport is what a node says of its own copy to the others.
type copyReport struct {
	memory.CopyStatus
	Ended  uint64 `json:"ended,omitempty"` // the number of its last pass that ended; 0: it makes none
	Claims bool   `json:"claims,omitempty"`
}

func (c *ownCopy) report() copyReport {
	if c == nil {
		return copyReport{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return copyReport{c.told, c.ended, c.claims.Load()}
}
