package raftfsm

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// Member is one replica of the group.
type Member struct {
	ID, Addr string
	Voter    bool
}

// Members returns the newest membership known here and its Raft index, which is
// the prevIndex for a change.
func (g *Group) Members() (members []Member, index uint64) {
	f := g.raft.GetConfiguration()
	index, _, _ = g.members.get()
	return toMembers(f.Configuration()), index
}

func toMembers(conf raft.Configuration) (members []Member) {
	for _, s := range conf.Servers {
		members = append(members, Member{ID: string(s.ID), Addr: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return members
}

// AddNonvoter lets a replica follow without a vote: the first step of joining.
// prevIndex, if not zero, is the membership index that must still be current.
// Errors: ErrNotLeader, ErrNoSync (the log must be synced before there are
// peers), ctx's, of raft.
func (g *Group) AddNonvoter(ctx context.Context, id, addr string, prevIndex uint64) error {
	return g.changeMembers(ctx, "add non-voter", func() error {
		return g.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(addr), prevIndex, 0).Error()
	})
}

// Promote gives a replica a vote, which should have caught up. Arguments and
// errors as of AddNonvoter.
func (g *Group) Promote(ctx context.Context, id, addr string, prevIndex uint64) error {
	return g.changeMembers(ctx, "promote", func() error {
		return g.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(addr), prevIndex, 0).Error()
	})
}

// Remove takes a replica out of the group. Arguments and errors as of AddNonvoter.
func (g *Group) Remove(ctx context.Context, id string, prevIndex uint64) error {
	return g.changeMembers(ctx, "remove", func() error {
		return g.raft.RemoveServer(raft.ServerID(id), prevIndex, 0).Error()
	})
}

func (g *Group) changeMembers(ctx context.Context, op string, change func() error) error {
	if g.opt.NoSync {
		return fmt.Errorf("raftfsm %s: %w", op, ErrNoSync)
	}
	// raft keeps a change waiting until its term has begun; here ctx bounds that.
	if _, err := g.begunTerm(ctx, false); err != nil {
		return fmt.Errorf("raftfsm %s: %w", op, err)
	}
	return g.await(ctx, op, func() error {
		g.alone.Store(false)
		return change()
	})
}

func (g *Group) configuration() raft.Configuration { return g.raft.GetConfiguration().Configuration() }

func countVoters(conf raft.Configuration) int {
	n := 0
	for _, s := range conf.Servers {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	return n
}
