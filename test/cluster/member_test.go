package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// churned removes a node and has it join anew while links are cut at random and another
// node is killed, as nats-server's issue 7545 lost what it had acknowledged.
func (f *fault) churned(ctx context.Context) string {
	p := f.victim()
	held := f.tm.net.held()
	defer f.tm.net.heal()
	rest := f.tm.without(p)
	cuts := func(nodes []*process) {
		for _, l := range between(nodes, nodes, bothPlanes...) {
			f.tm.net.set(rule{cut: f.random.IntN(4) == 0}, l)
		}
		pause(ctx, time.Duration(100+f.random.IntN(900))*time.Millisecond)
	}
	p.kill()
	must(f.tm.t, os.RemoveAll(p.dir))
	cuts(rest)
	tries := 1
	removed := f.remove(ctx, p, func() {
		if tries++; tries > 8 {
			f.tm.net.heal() // it may be refused as long as the others do not reach each other
			pause(ctx, time.Second)
			return
		}
		cuts(rest)
	})
	p.begin()
	again := rest[f.random.IntN(len(rest))]
	for i := range 8 {
		if i == 4 {
			again.kill()
		}
		if i == 6 {
			again.begin()
		}
		cuts(f.tm.nodes)
	}
	f.tm.net.heal()
	again.ready(ctx)
	p.ready(ctx)
	p.voter(ctx, again)
	if f.tm.net.held() == held {
		return ""
	}
	return fmt.Sprintf("%v was removed at attempt %d, %s joined anew, %s was killed meanwhile, %d connections were held", removed, tries, p.id, again.id, f.tm.net.held()-held)
}

// notFive says why a fault needs more nodes, "" if there are enough.
func notFive(tm *team) string {
	if len(tm.nodes) < 5 {
		return "needs five nodes"
	}
	return ""
}

// two are the leader, as often as not, and other nodes.
func (f *fault) two() []*process {
	some := []*process{f.victim()}
	rest := f.tm.without(some...)
	return append(some, rest[f.random.IntN(len(rest))])
}

// twoAway has two of five nodes be away at once, in two ways by chance.
func (f *fault) twoAway(ctx context.Context) string {
	two := f.two()
	a, b := two[0], two[1]
	var bits []string
	held := f.tm.net.held()
	f.tm.net.set(rule{cut: true}, f.tm.around([]*process{a}, bothPlanes...)...)
	defer f.tm.net.heal()
	if f.random.IntN(2) == 0 {
		b.kill()
		bits = append(bits, b.id+" was killed")
		f.last(ctx)
		b.begin()
	} else {
		proceed := b.pause()
		bits = append(bits, b.id+" stood still")
		f.last(ctx)
		proceed()
	}
	if f.tm.net.held() == held {
		return ""
	}
	f.tm.net.heal()
	b.ready(ctx)
	return strings.Join(append(bits, f.called(a)+" was cut off"), ", ")
}

// cutTwo cuts two of five nodes off, together.
func (f *fault) cutTwo(ctx context.Context) string {
	two := f.two()
	deposed := f.lead
	if two[0] != f.lead && two[1] != f.lead {
		deposed = nil
	}
	return f.cut(ctx, f.tm.around(two, bothPlanes...), deposed)
}

// shrunk removes two of five nodes, which leaves a cluster of three, and has two join.
func (f *fault) shrunk(ctx context.Context) string {
	two := f.two()
	var removed []string
	for _, p := range two {
		p.kill()
		must(f.tm.t, os.RemoveAll(p.dir))
		removed = append(removed, f.remove(ctx, p, nil)...)
	}
	f.last(ctx)
	rest := f.tm.without(two...)
	st, err := rest[0].client.Cluster().Status(ctx)
	must(f.tm.t, err)
	if len(st.Nodes) != len(rest) {
		f.tm.t.Errorf("without %v the nodes are %+v", removed, st.Nodes)
	}
	for _, p := range two {
		p.begin()
	}
	for _, p := range two {
		p.ready(ctx)
		p.voter(ctx, rest[0])
	}
	return fmt.Sprintf("%v were removed, three nodes were left, and two joined", removed)
}
