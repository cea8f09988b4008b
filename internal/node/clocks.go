package node

import (
	"context"
	"sync"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/ingest"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// The clocks of a cluster's nodes are compared, since the times of the log never go back:
// what one node writes with a clock that is ahead keeps all others from writing until
// theirs have caught up.
const (
	compareClocksEvery = 10 * time.Second
	// lookAtClockEvery is how often a node looks at its own clock; the others are asked where
	// that is refused, and until they were asked once.
	lookAtClockEvery = 250 * time.Millisecond
	// clockWait bounds how long an answer may take that says something: it is off by half of
	// that at most.
	clockWait = 2 * time.Second
)

// compareClocks compares this node's clock with those of the others until ctx ends, and says
// when most of them are gone.
func (n *Node) compareClocks(ctx context.Context) {
	tick := time.NewTicker(lookAtClockEvery)
	defer tick.Stop()
	var gone outage
	for next := time.Duration(0); ; {
		if now := time.Since(n.started); now >= next || n.clock.Doubtful() {
			there := n.compareClock(ctx)
			if now >= next && ctx.Err() == nil {
				switch lost, back := gone.look(there); {
				case lost:
					n.cfg.Logger.Error("most nodes of the cluster are gone", "nodes", there.String(), "hint", there.hint())
				case back:
					n.cfg.Logger.Info("most nodes of the cluster are there again", "nodes", there.String())
				}
				next = now + compareClocksEvery
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// compareClock asks the others once, and tells who answered.
func (n *Node) compareClock(ctx context.Context) present {
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	members := voters(n)
	var mu sync.Mutex
	var others []ingest.OtherClock
	answered := map[string]bool{n.dir.name(): true}
	var asking sync.WaitGroup
	for _, m := range members {
		if m.Name == n.dir.name() {
			continue
		}
		asking.Go(func() {
			asked, before := time.Now(), n.clock.Reading().At
			var r ingest.ClockReading
			err := n.peers.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, callClock, struct{}{}, &r)
			mu.Lock()
			defer mu.Unlock()
			answered[m.Name] = err == nil || memory.CodeOf(err) == memory.CodeNotFound // of another version
			if err != nil {
				return
			}
			others = append(others, ingest.OtherClock{Ahead: before.Add(time.Since(asked) / 2).Sub(r.At), Sound: r.Sound})
		})
	}
	asking.Wait()
	n.clock.Compare(others, len(members))
	return presentOf(members, func(m cluster.Member) bool { return answered[m.Name] })
}
