package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// trickle is a light load: one memory after the other, each at another node, sent again
// under its id until some node has acknowledged it.
type trickle struct {
	tm   *team
	stop func()

	mu    sync.Mutex
	acked map[string]string // id to record
	last  error
}

// trickleTo begins one whose ids have a prefix, beside those that acked holds.
func trickleTo(ctx context.Context, tm *team, prefix string, acked map[string]string) *trickle {
	l := &trickle{tm: tm, acked: acked}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	l.stop = sync.OnceFunc(func() { cancel(); <-done })
	tm.t.Cleanup(l.stop)
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			l.write(ctx, fmt.Sprintf("%s%04d", prefix, i), i)
			pause(ctx, 20*time.Millisecond)
		}
	}()
	return l
}

// write returns when a memory was acknowledged, or ctx ended.
func (l *trickle) write(ctx context.Context, id string, at int) {
	for ; ctx.Err() == nil; at++ {
		p := l.tm.nodes[at%len(l.tm.nodes)]
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		resp, err := p.client.Capture(try, "default", memory.Capture{Agent: "a", ID: id, Text: "memory " + id}, client.CaptureOptions{})
		cancel()
		l.mu.Lock()
		if l.last = err; err == nil {
			l.acked[id] = resp.Results[0].RecordID
		}
		l.mu.Unlock()
		if err == nil {
			return
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// more waits until so many more memories were acknowledged.
func (l *trickle) more(ctx context.Context, n int) {
	l.tm.t.Helper()
	l.mu.Lock()
	want := len(l.acked) + n
	l.mu.Unlock()
	for {
		l.mu.Lock()
		have, last := len(l.acked), l.last
		l.mu.Unlock()
		if have >= want {
			return
		}
		if ctx.Err() != nil {
			l.tm.t.Fatalf("%d were acknowledged, %d were to be: %v", have, want, last)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// everywhere compares what was acknowledged with what each node has, after the load.
func (l *trickle) everywhere(ctx context.Context) {
	l.tm.t.Helper()
	l.tm.same(ctx)
	for _, p := range l.tm.alive() {
		for id, record := range l.acked {
			if rec, err := p.client.Get(ctx, "default", record, client.GetOptions{}); err != nil || rec.Text != "memory "+id {
				l.tm.t.Errorf("%s at %s: %+v %v", id, p.id, rec, err)
			}
		}
		texts := map[string]bool{}
		for cursor, more := "", true; more; more = cursor != "" {
			list, err := p.client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200, Cursor: cursor}})
			must(l.tm.t, err)
			for _, rec := range list.Records {
				if texts[rec.Text] {
					l.tm.t.Errorf("%s holds %q twice", p.id, rec.Text)
				}
				texts[rec.Text] = true
			}
			cursor = list.Cursor
		}
		// What was under way when one of the two loads ended may be there too.
		if n := len(texts) - len(l.acked); n < 0 || n > 2 {
			l.tm.t.Errorf("%s has %d records, acknowledged were %d", p.id, len(texts), len(l.acked))
		}
	}
}

// settled waits until a node shows so many nodes, all of which answer and have a vote, and
// as many whole copies of the log.
func (p *process) settled(ctx context.Context, nodes, copies int) {
	p.team.t.Helper()
	for {
		st, err := p.client.Cluster().Status(ctx)
		if err == nil && len(st.Nodes) == nodes && st.Shards[0].Copies != nil && *st.Shards[0].Copies == (memory.LogCopies{Have: copies, Want: copies}) &&
			!slices.ContainsFunc(st.Nodes, func(n memory.ClusterNode) bool { return !n.Reachable || n.Role != memory.RoleVoter }) {
			return
		}
		if ctx.Err() != nil {
			p.team.t.Fatalf("want %d nodes and copies, %s shows %+v %+v %v\n%s", nodes, p.id, st, st.Shards, err, p.out)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// Two nodes join a cluster that three have founded, under writes. The log follows them:
// then two of the nodes that founded it, the one that leads among them, are killed at once,
// and the others write on. Later two nodes are removed, and a cluster of three is left.
func TestThreeNodesBecomeFiveAndThreeAgain(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 5)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	founders, others := tm.nodes[:3], tm.nodes[3:]
	for _, p := range tm.nodes {
		p.expect, p.joins = len(founders), slices.Contains(others, p)
	}
	for _, p := range founders {
		p.begin()
	}
	for _, p := range founders {
		p.ready(ctx)
	}
	load := trickleTo(ctx, tm, "a", map[string]string{})
	founders[0].settled(ctx, 3, 3)
	began := time.Now()
	for _, p := range others {
		p.begin()
	}
	for _, p := range others {
		p.ready(ctx)
	}
	others[1].settled(ctx, 5, 5)
	t.Logf("three nodes were five, with five copies of the log, after %v", time.Since(began).Round(time.Millisecond))
	load.more(ctx, 20)

	killed := []*process{tm.leader(ctx)}
	for _, p := range founders {
		if len(killed) < 2 && p != killed[0] {
			killed = append(killed, p)
		}
	}
	began = time.Now()
	for _, p := range killed {
		must(t, p.cmd.Process.Kill())
	}
	for _, p := range killed {
		p.kill()
	}
	load.more(ctx, 2)
	t.Logf("without %s and %s: written after %v", killed[0].id, killed[1].id, time.Since(began).Round(time.Millisecond))
	load.more(ctx, 20)
	for _, p := range killed {
		p.begin()
	}
	for _, p := range killed {
		p.ready(ctx)
	}
	others[0].settled(ctx, 5, 5)
	load.stop()
	load.everywhere(ctx)

	again := trickleTo(ctx, tm, "b", load.acked)
	operator, err := others[0].operator(ctx)
	must(t, err)
	defer operator.Close()
	began = time.Now()
	for _, p := range killed {
		p.term()
		_, err := operator.Cluster().Remove(ctx, memory.RemoveNode{Node: p.id})
		must(t, err)
	}
	others[0].settled(ctx, 3, 3)
	fewer := func(p *process) bool { return strings.Contains(p.out.String(), "copies=3 before=5 nodes=3") }
	for !slices.ContainsFunc(tm.alive(), fewer) {
		if ctx.Err() != nil {
			t.Fatal("nobody had the log get three copies again")
		}
		pause(ctx, 50*time.Millisecond)
	}
	t.Logf("five nodes were three, with three copies of the log, after %v", time.Since(began).Round(time.Millisecond))
	last := tm.leader(ctx)
	last.kill()
	again.more(ctx, 2)
	last.begin()
	last.ready(ctx)
	others[0].settled(ctx, 3, 3)
	again.stop()
	again.everywhere(ctx)
}
