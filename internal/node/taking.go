package node

import (
	"context"
	"sync"
	"time"

	"mneme/internal/api/natsapi"
	"mneme/internal/ingest"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/replica"
	"mneme/memory"
)

// taking has one node of several take what agents publish to an external NATS: the one
// that leads. Its servers would else give one agent's captures to the nodes in turn, and
// they would be written in another order than they were sent. Whoever led before goes on
// taking, and forwards, until the next leader has it cease.
type taking struct {
	n   *Node
	bus chan *natsapi.Server // holds it once it serves

	mu   sync.Mutex
	term uint64 // the latest in which this node heard who takes
}

const (
	ceaseFor   = 2 * time.Second
	ceaseAgain = time.Second
)

func newTaking(n *Node) *taking { return &taking{n: n, bus: make(chan *natsapi.Server, 1)} }

// workers are what the leader of a shard of several has beside those of a node on its own.
func (p *peers) workers(s *served) []replica.Worker {
	out := []replica.Worker{duties{s}}
	if p.taking != nil && s.id == shard0 {
		out = append(out, p.taking)
	}
	if p.server() != "" {
		out = append(out, replication{s})
	}
	return out
}

// takesInTurn reports whether one node takes for all.
func (p *peers) takesInTurn() bool { return p != nil && p.taking != nil }

// served hands over the surface that takes.
func (t *taking) served(bus *natsapi.Server) {
	if t != nil {
		t.bus <- bus
	}
}

// wait gives the surface as soon as it serves.
func (t *taking) wait(ctx context.Context) *natsapi.Server {
	select {
	case bus := <-t.bus:
		t.bus <- bus
		return bus
	case <-ctx.Done():
		return nil
	}
}

// heard notes that captures are taken in a term, and reports whether that is none before
// the latest.
func (t *taking) heard(term uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if term < t.term {
		return false
	}
	t.term = term
	return true
}

// Work implements replica.Worker: it takes while this node leads.
func (t *taking) Work(ctx context.Context, _ *ingest.Writer) {
	bus := t.wait(ctx)
	term := t.n.served[shard0].replica.Group().Term()
	if bus == nil || !t.heard(term) {
		return
	}
	var release func()
	for {
		var err error
		if release, err = bus.Take(); err == nil {
			break
		}
		t.n.cfg.Logger.Warn("what agents publish is not taken yet", "err", err)
		if sleep(ctx, ceaseAgain) != nil {
			return
		}
	}
	defer release()
	left := map[string]bool{}
	for _, m := range t.n.peers.cluster.Facts().Members {
		left[m.Name] = m.Name != t.n.dir.name()
	}
	for {
		for _, name := range t.tell(ctx, term, left) {
			delete(left, name)
		}
		release()
		if sleep(ctx, ceaseAgain) != nil {
			return
		}
	}
}

// tell has the others cease that have not said that they did, and names those that have.
func (t *taking) tell(ctx context.Context, term uint64, left map[string]bool) (ceased []string) {
	ctx, cancel := context.WithTimeout(ctx, ceaseFor)
	defer cancel()
	var mu sync.Mutex
	var telling sync.WaitGroup
	for _, m := range t.n.peers.cluster.Facts().Members {
		if !left[m.Name] {
			continue
		}
		telling.Go(func() {
			if t.n.peers.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, callCease, term, nil) == nil {
				mu.Lock()
				defer mu.Unlock()
				ceased = append(ceased, m.Name)
			}
		})
	}
	telling.Wait()
	return ceased
}

// cease answers a leader that takes from now on.
func (t *taking) cease(ctx context.Context, from peer.Identity, term uint64) (struct{}, error) {
	if t == nil {
		return struct{}{}, memory.Errorf(memory.CodeConflict, "this node keeps the log itself")
	}
	if !t.heard(term) {
		return struct{}{}, memory.Errorf(memory.CodeConflict, "%s led in term %d, which is over", from.Node, term)
	}
	select {
	case bus := <-t.bus:
		t.bus <- bus
		return struct{}{}, bus.Cease(ctx)
	default:
		return struct{}{}, nil // it has not begun
	}
}
