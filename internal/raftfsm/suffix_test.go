package raftfsm

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// unhurried elects so late that a busy machine does not lose its leader.
func unhurried(o *Options) { o.HeartbeatTimeout, o.ElectionTimeout = 2*time.Second, 2*time.Second }

// withTail are three replicas of which one, which is closed, has entries at its end that nobody
// else has, and that another one's have replaced since. It returns which, and up to where the
// entries are everybody's.
func withTail(t *testing.T, c *cluster) (at int, common uint64) {
	t.Helper()
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	lead := c.leader(t)
	lead.putMany(t, 0, 20)
	common, err := lead.group.LinearizableIndex(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, common)
	for i, s := range c.shards {
		if s == lead {
			at = i
			continue
		}
		s.close(t)
		c.shards[i] = nil
	}
	for i := range 3 {
		lead.group.Propose(ctx, fmt.Appendf(nil, "lost-%d=1", i))
	}
	for lead.group.Stats().LastIndex < common+3 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the entries are not in its log")
		}
	}
	lead.close(t)
	c.shards[at] = nil
	for i := range c.shards {
		if i != at {
			c.open(t, i, unhurried)
		}
	}
	c.leader(t).putMany(t, 20, 25)
	return at, common
}

// The disk of a replica was full just when entries of its own had been cut off, and those of the
// leader were to take their place. It refused all that came until it was started again.
func TestDiskWasFullBehindACut(t *testing.T) { overBoth(t, 3, fullBehindACut) }

func fullBehindACut(t *testing.T, net network) {
	c := openClusterOver(t, net, 3, unhurried)
	at, common := withTail(t, c)
	full := &faultKV{}
	full.set("store", syscall.ENOSPC)
	c.open(t, at, unhurried, func(o *Options) { o.wrapKV = func(kv boltKV) boltKV { full.boltKV = kv; return full } })
	for ctx := testCtx(t); ; { // until that has happened
		last, err := c.shards[at].group.store.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		full.mu.Lock()
		refused := full.hits > 0
		full.mu.Unlock()
		if refused && last == common {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("its log ends at %d, not at %d", last, common)
		}
	}
	full.set("store", nil)
	index, err := c.leader(t).group.LinearizableIndex(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
}

// A replica whose own entries have yet to be replaced was sent older ones, which it has, with how
// far the leader has committed: it took its own for committed, and applied them.
func TestReplicaTookItsOwnEntriesForCommitted(t *testing.T) { overBoth(t, 3, ownForCommitted) }

func ownForCommitted(t *testing.T, net network) {
	c := openClusterOver(t, net, 3, unhurried)
	at, common := withTail(t, c)
	full := &faultKV{}
	full.set("delete", syscall.ENOSPC)
	c.open(t, at, unhurried, func(o *Options) { o.wrapKV = func(kv boltKV) boltKV { full.boltKV = kv; return full } })
	var lead *shard
	for resp := (raft.AppendEntriesResponse{}); !resp.Success; {
		lead = c.leader(t) // a slow machine's may be another one by then
		var before raft.Log
		if err := lead.group.store.GetLog(common, &before); err != nil {
			t.Fatal(err)
		}
		a, self := lead.group.opt.Transport.(*announcer), raft.ServerID(lead.group.opt.ID)
		addr := a.EncodePeer(self, a.LocalAddr())
		req := &raft.AppendEntriesRequest{ // as raft sends it after many refusals
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: addr},
			Term:      lead.group.raft.CurrentTerm(), Leader: addr, PrevLogEntry: before.Index, PrevLogTerm: before.Term,
			LeaderCommitIndex: lead.group.raft.CommitIndex(),
		}
		if err := a.AppendEntries(raft.ServerID(replicaID(at)), raft.ServerAddress(c.net.addr(at)), req, &resp); err != nil {
			t.Log(err)
		}
		if testCtx(t).Err() != nil {
			t.Fatal("it took no request")
		}
	}
	if commit := c.shards[at].group.raft.CommitIndex(); commit > common {
		t.Errorf("it takes entries up to %d for committed, and has the leader's up to %d", commit, common)
	}
	full.set("delete", nil)
	index, err := lead.group.LinearizableIndex(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
}
