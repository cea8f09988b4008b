package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// The node that leads everything is cut off, in each way in which a network fails: both
// of what nodes use it for or one of them, in both directions or in one. The others write
// meanwhile; what was acknowledged, by whichever side, is on all nodes once it is healed.
func TestPartitions(t *testing.T) {
	t.Parallel()
	tm := newRelayedTeam(t, 3, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	tm.start(ctx)
	acked := map[string]memory.CaptureResult{}
	write := func(count int, nodes ...*process) {
		t.Helper()
		for range count {
			id := fmt.Sprintf("c%03d", len(acked))
			acked[id] = nodes[len(acked)%len(nodes)].capture(ctx, id, "memory "+id)
		}
	}
	for _, c := range []struct {
		name  string
		links func(lead *process, rest []*process) []link
	}{
		{"both", func(lead *process, rest []*process) []link { return tm.around([]*process{lead}, bothPlanes...) }},
		{"raft", func(lead *process, rest []*process) []link { return tm.around([]*process{lead}, raftPlane) }},
		{"nats", func(lead *process, rest []*process) []link { return tm.around([]*process{lead}, logPlane) }},
		{"from the leader", func(lead *process, rest []*process) []link { return between([]*process{lead}, rest, bothPlanes...) }},
		{"to the leader", func(lead *process, rest []*process) []link { return between(rest, []*process{lead}, bothPlanes...) }},
	} {
		write(5, tm.nodes...)
		lead := tm.leader(ctx)
		rest := tm.without(lead)
		held, began := tm.net.held(), time.Now()
		tm.net.set(rule{cut: true}, c.links(lead, rest)...)
		write(1, rest...)
		t.Logf("%s, with %s cut off, which led: written after %v", c.name, lead.id, time.Since(began).Round(time.Millisecond))
		write(5, rest...)
		for tm.leaderAt(ctx, rest[0]) == lead.id { // it still reached what a write needs
			if ctx.Err() != nil {
				t.Fatalf("%s: %s still leads", c.name, lead.id)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if tm.net.held() == held {
			t.Errorf("%s: the links that were cut held nothing", c.name)
		}
		began = time.Now()
		tm.net.heal()
		write(1, lead)
		t.Logf("%s: healed, and written through %s after %v", c.name, lead.id, time.Since(began).Round(time.Millisecond))
		tm.same(ctx)
	}
	if n := tm.net.strangers(); n > 0 {
		t.Errorf("%d connections came from no node", n)
	}
	for _, p := range tm.nodes {
		for id, want := range acked {
			rec, err := p.client.Get(ctx, "default", want.RecordID, client.GetOptions{})
			if err != nil || rec.RecordID != want.RecordID {
				t.Errorf("%s at %s: %+v %v", id, p.id, rec, err)
			}
		}
		list, err := p.client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200}})
		if err != nil || len(list.Records) != len(acked) {
			t.Errorf("%s has %d records, acknowledged were %d: %v", p.id, len(list.Records), len(acked), err)
		}
	}
}

// leaderAt is the node that leads the shard as one node says, "" if it does not say.
func (tm *team) leaderAt(ctx context.Context, p *process) string {
	st, err := p.client.Status(ctx)
	if err != nil || len(st.Shards) == 0 {
		return ""
	}
	return st.Shards[0].Leader
}
