package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/peer/rpc"
)

// balanceEvery is how often a node looks whether it leads more shards than another one,
// to which it then gives one. It is seldom, for who writes waits for a moment each time.
const balanceEvery = 30 * time.Second

// balance gives shards away, one at a time, until no node leads two more than another
// one that could lead. Of one shard there is nothing to give.
func (l leading) balance(ctx context.Context) {
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.giveOne(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// giveOne gives one shard to a node that leads fewer, if there is one that is fit.
func (l leading) giveOne(ctx context.Context) {
	p := l.n.peers
	leaders := make([]string, len(l.n.served))
	for i, s := range l.n.served {
		leaders[i], _ = s.replica.Group().Leader()
	}
	members := p.cluster.Facts().Members
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	shard, heirs := surplus(p.cluster.Self().Name, leaders, names)
	for _, heir := range heirs {
		to := members[slices.IndexFunc(members, func(m cluster.Member) bool { return m.Name == heir })]
		if !p.fit(ctx, to) {
			continue
		}
		l.n.cfg.Logger.Info("this node leads more shards than another one, which gets one of them", "shard", shard, "to", to.ID)
		err := within(ctx, handOverFor, func(ctx context.Context) error { return l.n.served[shard].handOver(ctx, heir) })
		if err != nil && ctx.Err() == nil {
			l.n.cfg.Logger.Info("the shard was not given away", "shard", shard, "err", err)
		}
		return
	}
}

// surplus says which shard a node should give away, and to which nodes, those first that
// lead the fewest. It gives none where a shard has no leader, and none for a difference of
// one: that would go back and forth.
func surplus(self string, leaders, members []string) (shard int, heirs []string) {
	leads := map[string]int{}
	for i, name := range leaders {
		if name == "" {
			return 0, nil
		}
		if leads[name]++; name == self {
			shard = i
		}
	}
	for _, name := range members {
		if leads[name]+1 < leads[self] {
			heirs = append(heirs, name)
		}
	}
	slices.SortStableFunc(heirs, func(a, b string) int { return cmp.Compare(leads[a], leads[b]) })
	return shard, heirs
}

// fit asks another node whether it could lead.
func (p *peers) fit(ctx context.Context, m cluster.Member) bool {
	var fit bool
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	err := p.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, callFit, struct{}{}, &fit)
	return err == nil && fit
}
