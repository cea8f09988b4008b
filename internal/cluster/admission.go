package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Admission decides who has a place in a group, for its leader: a node comes in without
// a vote, gets one once it has caught up, and never comes in after it was removed, nor
// beside another incarnation of itself. It is safe for concurrent use.
type Admission struct {
	group    Group
	removed  func(name string) bool
	changing sync.Mutex // one change of the membership at a time
}

// NewAdmission is for a group; removed says who was removed from the cluster.
func NewAdmission(g Group, removed func(name string) bool) *Admission {
	return &Admission{group: g, removed: removed}
}

// admit brings a replica one or two steps further: into the group without a vote, and
// to a vote once it has caught up. false without error: it has not caught up yet.
func (a *Admission) admit(ctx context.Context, id string, in joinCall, waitApplied func(index uint64) error) (voter bool, err error) {
	is, err := a.Place(ctx, in.Group, id, in.Addr)
	if err != nil || is.Voter {
		return is.Voter, err
	}
	for {
		index, err := a.group.LinearizableIndex(ctx)
		if err != nil {
			return false, err
		}
		began := time.Now()
		if err := waitApplied(index); err != nil {
			return false, nil // it asks again
		}
		if time.Since(began) < caughtUpIn {
			break
		}
	}
	return a.Promote(ctx, id, in.Addr)
}

// Place makes a replica a member at its address; name is the group's. Errors:
// memory.CodeConflict, the group's.
func (a *Admission) Place(ctx context.Context, name, id, addr string) (raftfsm.Member, error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	is := raftfsm.Member{ID: id}
	if a.removed(id) {
		return is, removedCall(id)
	}
	members, index := a.group.Members()
	for _, m := range members {
		switch {
		case m.ID == id:
			is = m
		case idOf(m.ID) == idOf(id):
			// One that does not lead any more may not know that it was removed.
			if _, err := a.group.LinearizableIndex(ctx); err != nil {
				return is, err
			}
			return is, memory.Errorf(memory.CodeConflict, "the node %s is a member of the group %s under another incarnation, %s", idOf(id), name, m.ID).
				WithHint("if that one is lost for ever, remove it first: memctl cluster remove %s", m.ID)
		}
	}
	var err error
	switch {
	case is.Addr == addr:
		return is, nil
	case is.Voter:
		err = a.group.Promote(ctx, id, addr, index)
	default:
		err = a.group.AddNonvoter(ctx, id, addr, index)
	}
	is.Addr = addr
	return is, err
}

// Promote gives a vote to a replica that has its place and has caught up. false without
// error: it has no place any more, or has it at another address.
func (a *Admission) Promote(ctx context.Context, id, addr string) (voter bool, err error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	members, index := a.group.Members()
	if !slices.Contains(members, raftfsm.Member{ID: id, Addr: addr}) {
		return false, nil
	}
	err = a.group.Promote(ctx, id, addr, index)
	assert.Sometimes(err == nil, "a replica that has caught up gets its vote", nil)
	return err == nil, err
}

// Remove takes a replica's place away, if it has one.
func (a *Admission) Remove(ctx context.Context, id string) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	members, index := a.group.Members()
	if !slices.ContainsFunc(members, func(m raftfsm.Member) bool { return m.ID == id }) {
		return nil
	}
	assert.Reachable("a replica is removed", nil)
	return a.group.Remove(ctx, id, index)
}

// MajorityWithout refuses the removal of a node unless the others that answer are a
// majority of the present voters: they have to lead the group, and to commit the removal,
// without it.
func MajorityWithout(name string, replicas []raftfsm.Member, answers map[string]bool) error {
	if !slices.ContainsFunc(replicas, func(r raftfsm.Member) bool { return r.ID == name && r.Voter }) {
		return nil
	}
	up, down := 0, []string{}
	for _, r := range replicas {
		switch {
		case !r.Voter || r.ID == name:
		case answers[r.ID]:
			up++
		default:
			down = append(down, idOf(r.ID))
		}
	}
	voters := up + len(down) + 1
	if up >= voters/2+1 {
		return nil
	}
	err := memory.Errorf(memory.CodeConflict, "of %d nodes with a vote %d answer beside %s: they could agree on nothing, nor on its removal", voters, up, idOf(name))
	if len(down) == 0 {
		return err.WithHint("one of two cannot be removed: start it again, or let a third node join before")
	}
	return err.WithHint("start these again first: %s", strings.Join(down, ", "))
}
