package node

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// trio is the nodes of one cluster in this process, mostly three, each with a disk of its own.
type trio struct {
	t     *testing.T
	cfgs  []Config
	disks []*smallDisk
	nodes []*Node
}

func newTrio(t *testing.T) *trio { return newTrioOf(t, 0) }

// newTrioOf founds a cluster with as many shards, of which the other nodes hear.
func newTrioOf(t *testing.T, shards int) *trio {
	t.Helper()
	tr := trioOf(t, func(i int, cfg *Config) {
		if i == 0 {
			cfg.Shards = shards
		}
	})
	tr.openAll()
	return tr
}

// trioOf is three nodes that are not opened yet, each with a configuration that change may
// alter. They are closed with the test.
func trioOf(t *testing.T, change func(i int, cfg *Config)) *trio {
	t.Helper()
	return foundersOf(t, 3, change)
}

// foundersOf is trioOf of as many nodes, which found the cluster.
func foundersOf(t *testing.T, count int, change func(i int, cfg *Config)) *trio {
	t.Helper()
	tr := &trio{t: t, nodes: make([]*Node, count)}
	certs, ids, join, addrs := t.TempDir(), []string{}, []string{}, testaddr.Reserve(t, 3*count)
	for i := range count {
		ids, join = append(ids, fmt.Sprintf("n%d", i+1)), append(join, addrs[3*i+1])
	}
	if _, err := devca.Make(devca.Options{Dir: certs, Nodes: ids, Valid: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		disk := newSmallDisk()
		cfg := disk.config(filepath.Join(t.TempDir(), "data"))
		cfg.HTTPAddr = addrs[3*i]
		cfg.Cluster = &ClusterConfig{NodeID: id, PeerAddr: addrs[3*i+1], RouteAddr: addrs[3*i+2], Join: join, Certs: certs, Expect: count}
		if change != nil {
			change(i, &cfg)
		}
		tr.cfgs, tr.disks = append(tr.cfgs, cfg), append(tr.disks, disk)
	}
	t.Cleanup(func() {
		var closing sync.WaitGroup
		for _, n := range tr.nodes {
			if n != nil {
				closing.Go(func() { shut(t, n) })
			}
		}
		closing.Wait()
	})
	return tr
}

// openAll starts all nodes at once.
func (tr *trio) openAll() {
	tr.t.Helper()
	var opening sync.WaitGroup
	for i := range tr.cfgs {
		opening.Go(func() { tr.open(i) })
	}
	opening.Wait()
	if tr.t.Failed() {
		tr.t.FailNow()
	}
}

// open starts a node.
func (tr *trio) open(i int) {
	ctx, cancel := context.WithTimeout(tr.t.Context(), patience)
	defer cancel()
	n, err := Open(ctx, tr.cfgs[i])
	if err != nil {
		tr.t.Errorf("%s: %v", tr.cfgs[i].Cluster.NodeID, err)
		return
	}
	tr.nodes[i] = n
}

// leader waits until a node leads the shard with an open writer, and returns its number.
func (tr *trio) leader() (at int) {
	tr.t.Helper()
	await(tr.t, "a leader", func() bool {
		for i, n := range tr.nodes {
			if n != nil && n.served[0].replica.Leads() {
				at = i
				return true
			}
		}
		return false
	})
	return at
}

// writes captures one memory at a node, as a client does that sends again what failed.
func (tr *trio) writes(i int, id, text string) (r memory.CaptureResult) {
	tr.t.Helper()
	var last error
	give := time.Now().Add(patience)
	for time.Now().Before(give) {
		resp, err := tr.nodes[i].changes.Capture(tr.t.Context(), "default", []memory.Capture{{Agent: "a", ID: id, Text: text}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		if last = err; err == nil {
			if e := resp.Results[0].Error; e == nil {
				return resp.Results[0]
			}
			last = fmt.Errorf("%+v", resp.Results[0].Error)
		}
		time.Sleep(20 * time.Millisecond) // as a client does
	}
	tr.t.Fatalf("%s at node %d: %v", id, i+1, last)
	return r
}

// same waits until the nodes stand at one position, and compares their states.
func (tr *trio) same() {
	tr.t.Helper()
	for _, s := range tr.nodes[0].served {
		tr.sameOf(s.id)
	}
}

func (tr *trio) sameOf(shard uint16) {
	tr.t.Helper()
	var hashes map[string]string
	await(tr.t, "all nodes at one position", func() bool {
		hashes = map[string]string{}
		at := map[string]bool{}
		for i, n := range tr.nodes {
			r := n.served[shard].report()
			at[r.Replica.Position] = true
			hashes[r.Replica.StateHash] = tr.cfgs[i].Cluster.NodeID
		}
		return len(at) == 1
	})
	if len(hashes) != 1 {
		tr.t.Errorf("at one position the state hashes of shard %d are %v", shard, hashes)
	}
}
