package raftfsm

import (
	"os"
	"path/filepath"
	"testing"
)

// A replica that was killed between its newest snapshot and making its state durable is
// restored from it at the start. Where nothing new is agreed on, it renews its files all
// the same; it said that it had not caught up until it was started again.
func TestRenewAfterRestoreAtTheStart(t *testing.T) {
	c := openCluster(t, 3)
	c.shards[0].putMany(t, 0, 20)
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	lead := c.leader(t)
	index, err := lead.group.LinearizableIndex(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	i := 2
	if err := c.shards[i].group.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	c.shards[i].close(t)
	if err := os.RemoveAll(filepath.Join(c.dirs[i], "state")); err != nil {
		t.Fatal(err)
	}
	c.open(t, i)
	if err := c.shards[i].group.WaitApplied(ctx, index); err != nil {
		t.Fatal(err)
	}
	if err := c.shards[i].group.Renew(ctx); err != nil {
		t.Fatal(err)
	}
}

// ahead is a machine that has an entry more than its snapshot when it is first asked, as where raft
// hands over the first entry of a run after it said that there is nothing to take a snapshot of.
type ahead struct {
	Machine
	asked int
}

func (m *ahead) AppliedIndex() (index, term uint64) {
	index, term = m.Machine.AppliedIndex()
	if m.asked++; m.asked == 1 {
		index++
	}
	return index, term
}

// Renew said that the replica had not caught up where its first entry came between two looks.
func TestRenewWhileTheFirstEntryComes(t *testing.T) {
	c := openCluster(t, 3)
	c.shards[0].putMany(t, 0, 20)
	c.join(t, 1)
	c.join(t, 2)
	index, err := c.leader(t).group.LinearizableIndex(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	at := 2
	if err := c.shards[at].group.Renew(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	for i, s := range c.shards {
		s.close(t)
		c.shards[i] = nil
	}
	c.open(t, at) // alone, so that raft hands over nothing
	g := c.shards[at].group
	m := &ahead{Machine: g.fsm.machine}
	g.fsm.mu.Lock()
	g.fsm.machine = m
	g.fsm.mu.Unlock()
	if err := g.freshSnapshot(); err != nil || m.asked < 2 {
		t.Errorf("asked %d times: %v", m.asked, err)
	}
}
