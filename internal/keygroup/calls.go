package keygroup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mneme/internal/keyring"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// What nodes ask each other for.
const (
	methodPropose = "propose" // of the leader: a command → what became of it
	methodIndex   = "index"   // of the leader: an index with everything that was acknowledged
)

// proposal is a command on its way to the leader. It is sealed.
type proposal struct {
	Command []byte `json:"command"`
}

// verdict is the leader's answer to a proposal.
type verdict struct {
	Verdict keyring.Verdict `json:"verdict"`
	Created []keyring.KeyID `json:"created,omitempty"`
	Index   uint64          `json:"index"`
}

// position is the leader's answer to methodIndex.
type position struct {
	Index uint64 `json:"index"`
}

// Methods are what the node answers for Service.
func (g *Group) Methods() map[string]rpc.Method {
	return map[string]rpc.Method{
		methodPropose: rpc.Handle(func(ctx context.Context, _ peer.Identity, in proposal) (verdict, error) {
			ctx, cancel := g.bounded(ctx)
			defer cancel()
			a, index, err := g.proposeHere(ctx, in.Command)
			return verdict{a.Verdict, a.Created, index}, err
		}),
		methodIndex: rpc.Handle(func(ctx context.Context, _ peer.Identity, _ struct{}) (position, error) {
			ctx, cancel := g.bounded(ctx)
			defer cancel()
			index, err := g.raft.LinearizableIndex(ctx)
			if err != nil {
				return position{}, unavailable(err, "%s", g.notLeading(err))
			}
			return position{index}, nil
		}),
	}
}

// bounded ends what a peer asked for with the group, and with the patience that the peer
// has at most.
func (g *Group) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, g.opt.Patience)
	stop := context.AfterFunc(g.running, cancel)
	return ctx, func() { stop(); cancel() }
}

// proposeThere hands a command to the replica that leads.
func (g *Group) proposeThere(ctx context.Context, id, addr string, command []byte) (keyring.Answer, uint64, error) {
	var out verdict
	err := g.opt.Call(ctx, target(id, addr), methodPropose, proposal{command}, &out)
	return keyring.Answer{Verdict: out.Verdict, Created: out.Created}, out.Index, called(id, err)
}

// target is where the node of a replica is called. An address in the group names the
// replica, too.
func target(id, addr string) rpc.Target {
	if named, hostport, ok := strings.Cut(addr, "@"); ok && named == id {
		addr = hostport
	}
	return rpc.Target{Addr: addr, Node: id}
}

// called gives the error of a call its code.
func called(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpc.ErrNotReached):
		return unavailable(err, "node %s, which leads the group of keys, is not reached: %v", id, err)
	case errors.Is(err, rpc.ErrNoAnswer):
		return unknown(err, "node %s, which leads the group of keys, did not answer: %v", id, err)
	case memory.CodeOf(err) == memory.CodeNotFound: // the node is still starting, or it is closing
		return unavailable(err, "node %s does not serve the group of keys: %v", id, err)
	}
	return err
}

// CatchUp returns once this keyring has everything that was acknowledged anywhere before
// the call. It waits for a leader, and for this replica to be in the group. Errors:
// raftfsm.ErrHalted, raftfsm.ErrClosed, ctx's with why the last try failed.
func (g *Group) CatchUp(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.running, func() { cancel(errClosed) })()
	for {
		changed := g.leaderChanged()
		index, err := g.indexOnce(ctx)
		if err == nil {
			if err = g.raft.WaitApplied(ctx, index); err == nil {
				return nil
			}
		}
		if !g.pause(ctx, changed) {
			return fmt.Errorf("catch up with the keys: %w", errors.Join(g.raft.Halted(), context.Cause(ctx), err))
		}
	}
}

func (g *Group) indexOnce(ctx context.Context) (uint64, error) {
	id, addr := g.raft.Leader()
	switch id {
	case "":
		return 0, unavailable(nil, "nobody leads the group of keys")
	case g.opt.ID:
		return g.raft.LinearizableIndex(ctx)
	}
	var out position
	err := g.opt.Call(ctx, target(id, addr), methodIndex, struct{}{}, &out)
	return out.Index, called(id, err)
}
