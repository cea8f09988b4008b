package raftfsm

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// A snapshot that a leader sent, and gave up, comes late: the replica has more by then.
func TestSnapshotThatComesLateTookAReplicaBack(t *testing.T) { overBoth(t, 3, lateSnapshot) }

func lateSnapshot(t *testing.T, net network) {
	few := func(o *Options) { o.TrailingLogs = -1 }
	c := openClusterOver(t, net, 3, unhurried, few)
	lead := c.shards[0]
	lead.putMany(t, 0, 40)
	if err := lead.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	list, _ := lead.group.snaps.List()
	meta, r, err := lead.group.snaps.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	old, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	c.join(t, 1)
	c.join(t, 2)
	lead = c.leader(t)
	lead.putMany(t, 40, 80)
	for _, s := range c.shards {
		index, err := lead.group.LinearizableIndex(testCtx(t))
		if err != nil {
			t.Fatal(err)
		}
		c.same(t, index)
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	lead.putMany(t, 80, 90)
	index, err := lead.group.LinearizableIndex(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	at := 1
	if lead == c.shards[1] {
		at = 2
	}
	self := raft.ServerID(lead.group.opt.ID)
	a := lead.group.opt.Transport.(*announcer)
	addr := a.EncodePeer(self, a.LocalAddr())
	req := &raft.InstallSnapshotRequest{
		RPCHeader:       raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(self), Addr: addr},
		SnapshotVersion: meta.Version, Term: lead.group.raft.CurrentTerm(), Leader: addr,
		LastLogIndex: meta.Index, LastLogTerm: meta.Term, Peers: meta.Peers, Size: meta.Size,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex,
	}
	var resp raft.InstallSnapshotResponse
	err = a.InstallSnapshot(raft.ServerID(replicaID(at)), raft.ServerAddress(c.net.addr(at)), req, &resp, bytes.NewReader(old))
	if err == nil || !strings.Contains(err.Error(), errOlderSnapshot.Error()) {
		t.Errorf("%v, %+v", err, resp)
	}
	if m, _ := c.shards[at].group.Members(); len(m) != 3 {
		t.Errorf("it goes by %v", m)
	}
	lead.putMany(t, 90, 95)
	if index, err = lead.group.LinearizableIndex(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
}
