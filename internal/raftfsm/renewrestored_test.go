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
