package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// ends waits until the node ends by itself with a code, and says what it printed since
// it began.
func (p *process) ends(ctx context.Context, code int, words ...string) {
	p.team.t.Helper()
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.team.t.Fatalf("%s does not end\n%s", p.id, p.out)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.team.t.Errorf("%s ended with %d, want %d", p.id, got, code)
	}
	for _, w := range words {
		if !strings.Contains(p.out.String(), w) {
			p.team.t.Errorf("%s does not say %q:\n%s", p.id, w, p.out)
		}
	}
	p.cmd, p.out = nil, nil
}

// voter waits until a node counts in every group and its server has a copy of the log
// that is whole, as it says itself.
func (p *process) voter(ctx context.Context, via *process) {
	p.team.t.Helper()
	for {
		st, err := via.client.Cluster().Status(ctx)
		whole, votes := 0, false
		if err == nil {
			for _, s := range st.Shards {
				if p.copyWhole(s) {
					whole++
				}
			}
			for _, n := range st.Nodes {
				votes = votes || n.ID == p.id && n.Role == memory.RoleVoter
			}
		}
		if votes && whole > 0 && whole == len(st.Shards) {
			return
		}
		select {
		case <-ctx.Done():
			p.team.t.Fatalf("%s is not whole: %+v %v\n%s", p.id, st, err, p.out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// copyWhole reports whether the node's copy of a shard's log is, as it says itself. An external
// NATS says that of none.
func (p *process) copyWhole(s memory.ClusterShard) bool {
	var most, last uint64
	current := false
	for _, r := range s.Replicas {
		most = max(most, r.Log.Last)
		if r.Node == p.id {
			last, current = r.Log.Last, r.Log.Current
		}
	}
	return p.team.servers != nil || current && last == most && most > 0
}

// A node is lost with its data. It is refused until the lost one is removed; then it
// joins anew and holds everything, so that another one can be lost. The old data
// directory, put back, starts nothing any more.
func TestALostNodeIsReplaced(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	tm.start(ctx)
	acked := map[string]string{}
	write := func() {
		t.Helper()
		for _, p := range tm.alive() {
			for range 10 {
				id := fmt.Sprintf("c%03d", len(acked))
				acked[id] = p.capture(ctx, id, "memory "+id).RecordID
			}
		}
	}
	n1, n3 := tm.nodes[0], tm.nodes[2]
	for _, p := range tm.nodes {
		p.voter(ctx, n1)
	}
	write()
	n3.kill()
	old := n3.dir + ".old"
	must(t, os.Rename(n3.dir, old))
	write()

	n3.out = nil
	n3.begin()
	n3.ends(ctx, 7, "under another incarnation", "memctl cluster remove n3-")
	write()

	began := time.Now()
	operator, err := n1.operator(ctx)
	must(t, err)
	defer operator.Close()
	removal, err := operator.Cluster().Remove(ctx, memory.RemoveNode{Node: "n3"})
	must(t, err)
	t.Logf("removed %v after %v", removal.Removed, time.Since(began).Round(time.Millisecond))
	write()

	// What was lost turns up again.
	empty := n3.dir
	n3.dir = old
	n3.begin()
	n3.ends(ctx, 7, removal.Removed[0], "was removed from the cluster", "empty data directory")
	n3.dir = empty

	began = time.Now()
	n3.begin()
	n3.ready(ctx)
	ready := time.Since(began)
	n3.voter(ctx, n1)
	t.Logf("joined again: ready after %v, with a vote and a whole copy of the log after %v", ready.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	write()
	tm.same(ctx)

	// It starts once more, at other addresses.
	n3.term()
	free := testaddr.Reserve(t, 2)
	n3.addrs.peer, n3.addrs.route = free[0], free[1]
	write()
	n3.begin()
	n3.ready(ctx)
	n3.voter(ctx, n1)
	tm.same(ctx)

	tm.leader(ctx).kill()
	write()
	tm.same(ctx)
	for _, p := range tm.alive() {
		for id, record := range acked {
			if rec, err := p.client.Get(ctx, "default", record, client.GetOptions{}); err != nil || rec.RecordID != record {
				t.Errorf("%s at %s: %+v %v", id, p.id, rec, err)
			}
		}
		list, err := p.client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200}})
		if err != nil || len(list.Records) != len(acked) {
			t.Errorf("%s has %d records, acknowledged were %d: %v", p.id, len(list.Records), len(acked), err)
		}
	}
}
