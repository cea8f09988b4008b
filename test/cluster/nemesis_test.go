package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"mneme/memory"
)

// nemesis is one kind of fault. It happens while a load runs, lasts a while, and is over
// when it returns: all nodes run, and all links are whole.
type nemesis struct {
	name string
	// cannot says why there is no such fault here, "" if there is; nil: there is.
	cannot func(tm *team) string
	// does returns what shows that the fault was there; "" fails the run.
	does func(ctx context.Context, f *fault) (bit string)
}

// fault is one occurrence of a nemesis.
type fault struct {
	tm     *team
	random *rand.Rand
	shard  int      // of the load
	lead   *process // who led it when the fault began
	term   uint64
}

// nemeses is the table of faults, by name.
var nemeses = slices.Concat([]nemesis{
	{name: "kill the leader", does: func(ctx context.Context, f *fault) string { return f.killed(ctx, f.lead) }},
	{name: "kill a follower", does: func(ctx context.Context, f *fault) string { return f.killed(ctx, f.follower()) }},
	{name: "kill all", does: func(ctx context.Context, f *fault) string { return f.killed(ctx, f.tm.nodes...) }},
	{name: "pause the leader", does: func(ctx context.Context, f *fault) string { return f.paused(ctx, f.lead) }},
	{name: "pause a follower", does: func(ctx context.Context, f *fault) string { return f.paused(ctx, f.follower()) }},
	{name: "cut the leader off", does: func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.lead}, bothPlanes...), f.lead)
	}},
	{name: "cut a follower off", does: func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.follower()}, bothPlanes...), nil)
	}},
	{name: "cut the leader off from Raft", does: func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.lead}, raftPlane), f.lead)
	}},
	{name: "cut the leader off from NATS", cannot: notOwnLog, does: func(ctx context.Context, f *fault) string {
		return f.cut(ctx, f.tm.around([]*process{f.lead}, logPlane), f.lead)
	}},
	{name: "cut what the leader sends", does: func(ctx context.Context, f *fault) string {
		return f.cut(ctx, between([]*process{f.lead}, f.tm.without(f.lead), bothPlanes...), f.lead)
	}},
	{name: "cut what the leader receives", does: func(ctx context.Context, f *fault) string {
		return f.cut(ctx, between(f.tm.without(f.lead), []*process{f.lead}, bothPlanes...), f.lead)
	}},
	{name: "cut one pair", does: func(ctx context.Context, f *fault) string {
		a, b := []*process{f.lead}, []*process{f.follower()}
		return f.cut(ctx, append(between(a, b, bothPlanes...), between(b, a, bothPlanes...)...), nil)
	}},
	{name: "cut links at random, again and again", does: func(ctx context.Context, f *fault) string { return f.flap(ctx) }},
	{name: "slow links that lose", cannot: notRelayed, does: func(ctx context.Context, f *fault) string { return f.slow(ctx) }},
	{name: "kill the leader while a follower is cut off", does: func(ctx context.Context, f *fault) string { return f.killedBehindCut(ctx) }},
	{name: "restart one after the other", does: func(ctx context.Context, f *fault) string { return f.rolled(ctx) }},
	{name: "wipe a node", does: func(ctx context.Context, f *fault) string { return f.wiped(ctx) }},
	{name: "put an older copy under a node", does: func(ctx context.Context, f *fault) string { return f.older(ctx) }},
	{name: "remove and join while links are cut", does: func(ctx context.Context, f *fault) string { return f.churned(ctx) }},
	{name: "rot in the log while it runs", cannot: notOwnLog, does: func(ctx context.Context, f *fault) string { return f.rotted(ctx) }},
	{name: "fill a disk", cannot: asRoot, does: func(ctx context.Context, f *fault) string { return f.full(ctx) }},
	{name: "slow disk", cannot: notFaulty, does: func(ctx context.Context, f *fault) string { return f.slowDisk(ctx) }},
	{name: "clock that jumps", cannot: notFaulty, does: func(ctx context.Context, f *fault) string { return f.jumped(ctx) }},
	{name: "two away at once", cannot: notFive, does: func(ctx context.Context, f *fault) string { return f.twoAway(ctx) }},
	{name: "cut two off", cannot: notFive, does: func(ctx context.Context, f *fault) string { return f.cutTwo(ctx) }},
	{name: "from five nodes to three and back", cannot: notFive, does: func(ctx context.Context, f *fault) string { return f.shrunk(ctx) }},
	{name: "kill a server of the log", cannot: notExternal, does: func(ctx context.Context, f *fault) string { return f.serverKilled(ctx) }},
	{name: "kill all servers of the log", cannot: notExternal, does: func(ctx context.Context, f *fault) string { return f.serversKilled(ctx) }},
}, flips())

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

// led waits until a node says who leads a shard, which must not be one of them, and returns
// who it is and since which term.
func (tm *team) led(ctx context.Context, shard int, not *process) (lead *process, term uint64) {
	tm.t.Helper()
	for {
		for _, p := range tm.nodes {
			if p == not {
				continue
			}
			try, cancel := context.WithTimeout(ctx, 3*attempt) // it waits for nodes that do not answer
			st, err := p.client.Cluster().Status(try)
			cancel()
			if err != nil || len(st.Shards) <= shard {
				continue
			}
			for _, other := range tm.nodes {
				if st.Shards[shard].Leader == other.id && other != not {
					return other, st.Shards[shard].Term
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
	lead, term := f.tm.led(ctx, f.shard, f.lead)
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
	for range 10 { // the signal takes a moment to reach all threads
		_, err := p.client.Status(try)
		if try.Err() != nil {
			bit = fmt.Sprintf("%s did not answer: %s", p.id, memory.CodeOf(err))
			break
		}
	}
	if bit == "" {
		return ""
	}
	if p == f.lead {
		bit += "; " + f.deposed(ctx)
	}
	return bit
}

// cut cuts links. Where the leader cannot go on leading, another node must.
func (f *fault) cut(ctx context.Context, links []link, deposed *process) (bit string) {
	held := f.tm.net.held()
	f.tm.net.set(rule{cut: true}, links...)
	defer f.tm.net.heal()
	f.last(ctx)
	if deposed != nil {
		bit = f.deposed(ctx) + "; "
	}
	if held = f.tm.net.held() - held; held == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d connections were held", bit, held)
}

// flap cuts and heals single directions at random.
func (f *fault) flap(ctx context.Context) string {
	held := f.tm.net.held()
	defer f.tm.net.heal()
	for range 12 {
		for _, l := range between(f.tm.nodes, f.tm.nodes, bothPlanes...) {
			f.tm.net.set(rule{cut: f.random.IntN(3) == 0}, l)
		}
		pause(ctx, time.Duration(200+f.random.IntN(1000))*time.Millisecond)
	}
	if held = f.tm.net.held() - held; held == 0 {
		return ""
	}
	return fmt.Sprintf("%d connections were held", held)
}

// slow makes all links slow, and lose a part of what is sent.
func (f *fault) slow(ctx context.Context) string {
	late := f.tm.net.late()
	f.tm.net.set(rule{delay: time.Duration(1+f.random.IntN(20)) * time.Millisecond, lose: 0.03}, between(f.tm.nodes, f.tm.nodes, bothPlanes...)...)
	defer f.tm.net.heal()
	f.last(ctx)
	if late = f.tm.net.late() - late; late == 0 {
		return ""
	}
	return fmt.Sprintf("%d pieces came late", late)
}

// killedBehindCut kills the leader while one of the others does not hear what it says, so
// that the rest alone knows it.
func (f *fault) killedBehindCut(ctx context.Context) string {
	behind := f.follower()
	held := f.tm.net.held()
	f.tm.net.set(rule{cut: true}, f.tm.around([]*process{behind}, bothPlanes...)...)
	f.last(ctx)
	f.lead.kill()
	pause(ctx, time.Duration(f.random.IntN(1000))*time.Millisecond)
	f.tm.net.heal()
	bit := f.deposed(ctx)
	f.lead.begin()
	f.lead.ready(ctx)
	if f.tm.net.held() == held {
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
	p := f.victim()
	p.kill()
	return f.replace(ctx, p)
}
