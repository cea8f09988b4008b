package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"mneme/memory"
)

// nemesis is one kind of fault. It happens while a load runs, lasts a while, and is over
// when it returns: all nodes run, and all links are whole.
type nemesis struct {
	name string
	// does returns what shows that the fault was there; "" fails the run.
	does func(ctx context.Context, f *fault) (bit string)
}

// fault is one occurrence of a nemesis.
type fault struct {
	tm     *team
	random *rand.Rand
	lead   *process // who led when it began
	term   uint64
}

// nemeses is the table of faults, by name.
var nemeses = []nemesis{
	{"kill the leader", func(ctx context.Context, f *fault) string { return f.killed(ctx, f.lead) }},
	{"kill a follower", func(ctx context.Context, f *fault) string { return f.killed(ctx, f.follower()) }},
	{"kill all", func(ctx context.Context, f *fault) string { return f.killed(ctx, f.tm.nodes...) }},
	{"pause the leader", func(ctx context.Context, f *fault) string { return f.paused(ctx, f.lead) }},
	{"pause a follower", func(ctx context.Context, f *fault) string { return f.paused(ctx, f.follower()) }},
	{"cut the leader off", func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.lead}, bothPlanes...), f.lead)
	}},
	{"cut a follower off", func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.follower()}, bothPlanes...), nil)
	}},
	{"cut the leader off from Raft", func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.lead}, raftPlane), f.lead)
	}},
	{"cut the leader off from NATS", func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.lead}, logPlane), f.lead)
	}},
	{"cut what the leader sends", func(ctx context.Context, f *fault) string {
		return f.cut(ctx, between([]*process{f.lead}, f.tm.without(f.lead), bothPlanes...), f.lead)
	}},
	{"cut what the leader receives", func(ctx context.Context, f *fault) string {
		return f.cut(ctx, between(f.tm.without(f.lead), []*process{f.lead}, bothPlanes...), f.lead)
	}},
	{"cut one pair", func(ctx context.Context, f *fault) string {
		a, b := []*process{f.lead}, []*process{f.follower()}
		return f.cut(ctx, append(between(a, b, bothPlanes...), between(b, a, bothPlanes...)...), nil)
	}},
	{"cut links at random, again and again", func(ctx context.Context, f *fault) string { return f.flap(ctx) }},
	{"slow links that lose", func(ctx context.Context, f *fault) string { return f.slow(ctx) }},
	{"kill the leader while a follower is cut off", func(ctx context.Context, f *fault) string { return f.killedBehindCut(ctx) }},
	{"restart one after the other", func(ctx context.Context, f *fault) string { return f.rolled(ctx) }},
	{"wipe a node", func(ctx context.Context, f *fault) string { return f.wiped(ctx) }},
}

// follower is a node that did not lead, by chance.
func (f *fault) follower() *process {
	rest := f.tm.without(f.lead)
	return rest[f.random.IntN(len(rest))]
}

// last lets the fault be for a while.
func (f *fault) last(ctx context.Context) {
	pause(ctx, time.Duration(2000+f.random.IntN(4000))*time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// led waits until the nodes agree on a leader, which must not be one of some, and says
// who it is and since which term.
func (tm *team) led(ctx context.Context, not *process) (lead *process, term uint64) {
	tm.t.Helper()
	for {
		for _, p := range tm.nodes {
			if p == not {
				continue
			}
			try, cancel := context.WithTimeout(ctx, attempt)
			st, err := p.client.Cluster().Status(try)
			cancel()
			if err != nil || len(st.Shards) == 0 {
				continue
			}
			for _, other := range tm.nodes {
				if st.Shards[0].Leader == other.id && other != not {
					return other, st.Shards[0].Term
				}
			}
		}
		if ctx.Err() != nil {
			tm.t.Fatal("nobody leads")
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// deposed waits until another node leads, and says so.
func (f *fault) deposed(ctx context.Context) string {
	lead, term := f.tm.led(ctx, f.lead)
	return fmt.Sprintf("%s led in term %d, %s in term %d", f.lead.id, f.term, lead.id, term)
}

// killed kills nodes, and starts them again.
func (f *fault) killed(ctx context.Context, some ...*process) (bit string) {
	for _, p := range some {
		p.kill()
		bit += p.id + " was killed; "
	}
	if len(some) == 1 {
		f.last(ctx)
		if some[0] == f.lead {
			bit += f.deposed(ctx)
		}
	}
	for _, p := range some {
		p.begin()
	}
	for _, p := range some {
		p.ready(ctx)
	}
	return bit
}

// paused stops a process and has it go on. A request to it waits as long.
func (f *fault) paused(ctx context.Context, p *process) (bit string) {
	proceed := p.pause()
	defer proceed()
	try, cancel := context.WithTimeout(ctx, time.Duration(2000+f.random.IntN(4000))*time.Millisecond)
	defer cancel()
	if _, err := p.client.Status(try); try.Err() == nil {
		return "" // it answered
	} else {
		bit = fmt.Sprintf("%s did not answer: %s", p.id, memory.CodeOf(err))
	}
	if p == f.lead {
		bit += "; " + f.deposed(ctx)
	}
	return bit
}

// cut cuts links. Where the leader cannot go on leading, another node must.
func (f *fault) cut(ctx context.Context, links []link, deposed *process) (bit string) {
	held := f.tm.net.held.Load()
	f.tm.net.set(rule{cut: true}, links...)
	defer f.tm.net.heal()
	f.last(ctx)
	if deposed != nil {
		bit = f.deposed(ctx) + "; "
	}
	if held = f.tm.net.held.Load() - held; held == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d connections were held", bit, held)
}

// flap cuts and heals single directions at random.
func (f *fault) flap(ctx context.Context) string {
	held := f.tm.net.held.Load()
	defer f.tm.net.heal()
	for range 12 {
		for _, l := range between(f.tm.nodes, f.tm.nodes, bothPlanes...) {
			f.tm.net.set(rule{cut: f.random.IntN(3) == 0}, l)
		}
		pause(ctx, time.Duration(200+f.random.IntN(1000))*time.Millisecond)
	}
	if held = f.tm.net.held.Load() - held; held == 0 {
		return ""
	}
	return fmt.Sprintf("%d connections were held", held)
}

// slow makes all links slow, and lose a part of what is sent.
func (f *fault) slow(ctx context.Context) string {
	late := f.tm.net.late.Load()
	f.tm.net.set(rule{delay: time.Duration(1+f.random.IntN(20)) * time.Millisecond, lose: 0.03}, between(f.tm.nodes, f.tm.nodes, bothPlanes...)...)
	defer f.tm.net.heal()
	f.last(ctx)
	if late = f.tm.net.late.Load() - late; late == 0 {
		return ""
	}
	return fmt.Sprintf("%d pieces came late", late)
}

// killedBehindCut kills the leader while one of the others does not hear what it says, so
// that the rest alone knows it.
func (f *fault) killedBehindCut(ctx context.Context) string {
	behind := f.follower()
	held := f.tm.net.held.Load()
	f.tm.net.set(rule{cut: true}, f.tm.around([]*process{behind}, bothPlanes...)...)
	f.last(ctx)
	f.lead.kill()
	pause(ctx, time.Duration(f.random.IntN(1000))*time.Millisecond)
	f.tm.net.heal()
	bit := f.deposed(ctx)
	f.lead.begin()
	f.lead.ready(ctx)
	if f.tm.net.held.Load() == held {
		return ""
	}
	return bit
}

// rolled restarts every node, one after the other, each once the one before serves again.
func (f *fault) rolled(ctx context.Context) (bit string) {
	for _, p := range f.tm.nodes {
		pid := p.pid.Load()
		p.term()
		p.begin()
		p.ready(ctx)
		if p.pid.Load() == pid {
			return ""
		}
		bit += p.id + " "
	}
	return bit + "were restarted"
}

// wiped removes a node's data, and the node, which comes back empty.
func (f *fault) wiped(ctx context.Context) string {
	p := f.follower()
	if f.random.IntN(2) == 0 {
		p = f.lead
	}
	other := f.tm.without(p)[0]
	p.kill()
	must(f.tm.t, os.RemoveAll(p.dir))
	var removed memory.NodeRemoval
	for {
		operator, err := other.client.Operator(ctx)
		if err == nil {
			removed, err = operator.Cluster().Remove(ctx, memory.RemoveNode{Node: p.id})
			_ = operator.Close()
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			f.tm.t.Fatalf("remove %s: %v", p.id, err)
		}
		pause(ctx, 200*time.Millisecond)
	}
	p.begin()
	p.ready(ctx)
	p.voter(ctx, other)
	return fmt.Sprintf("%v was removed, and %s joined anew", removed.Removed, p.id)
}
