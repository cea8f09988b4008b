package raftfsm

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// refusing is a transport of a replica that cannot store entries every now and then.
type refusing struct {
	*watched
	taken   chan raft.RPC
	refuses atomic.Int32 // how many requests with entries are refused from now on
}

func newRefusing(t Transport) *refusing {
	r := &refusing{watched: t.(*watched), taken: make(chan raft.RPC)}
	r.work.Go(func() {
		for {
			select {
			case rpc := <-r.watched.Consumer():
				if req, ok := rpc.Command.(*raft.AppendEntriesRequest); ok && len(req.Entries) > 0 {
					time.Sleep(2 * time.Millisecond) // as a disk takes; more is to be sent by then
					if r.refuses.Load() > 0 {
						r.refuses.Add(-1)
						rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: req.RPCHeader, Term: req.Term}, errors.Join(ErrStorage, syscall.ENOSPC))
						continue
					}
				}
				select {
				case r.taken <- rpc:
				case <-r.ended:
					rpc.Respond(nil, raft.ErrTransportShutdown)
					return
				}
			case <-r.ended:
				return
			}
		}
	})
	return r
}

// Consumer implements raft.Transport.
func (r *refusing) Consumer() <-chan raft.RPC { return r.taken }

// A replica that could not store some entries, say on a full disk, was sent heartbeats
// for ever and entries never again, until another one led: raft's pipeline waited for an
// answer that nobody took (github.com/hashicorp/raft/issues/612).
func TestReplicaThatRefusedEntriesGetsThemLater(t *testing.T) {
	var refuses *refusing
	c := openClusterOver(t, newPorts(t, 3), 3, func(o *Options) {
		if o.ID == replicaID(1) {
			refuses = newRefusing(o.Transport)
			o.Transport = refuses
		}
	})
	c.join(t, 1)
	c.join(t, 2)
	lead := c.leader(t)
	for round := range 20 {
		refuses.refuses.Store(3)
		var puts sync.WaitGroup
		for range 8 { // each entry is sent as soon as it is there
			puts.Go(func() {
				for range 20 {
					if _, _, err := lead.group.Propose(testCtx(t), []byte("k=v")).Wait(testCtx(t)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		puts.Wait()
		index, err := lead.group.LinearizableIndex(testCtx(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.shards[1].group.WaitApplied(testCtx(t), index); err != nil {
			t.Fatalf("round %d: what the leader has does not come: %v", round, err)
		}
	}
	if left := refuses.refuses.Load(); left == 3 {
		t.Error("nothing was refused")
	}
}
