package raftmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/raftfsm"
)

// Changes of the membership, one server at a time, as in Ongaro's dissertation, section
// 4.1: a membership holds from when it is in a log, and the next one may be proposed once
// it is committed and the leader's term has begun.

// ErrChanging: the change before is not committed, or the membership is not the one that
// was looked at.
var ErrChanging = errors.New("raft model: the membership has changed or is changing")

// Add makes a replica that is in no group: it has an empty log, and waits until a leader
// adds it. disk is as of Options.Disks.
func (m *Model) Add(name string, machine raftfsm.Machine, disk vfs.FS) (*Replica, error) {
	r := m.make(name)
	m.live = append(m.live, r)
	return r, r.start(machine, disk)
}

// Retire ends a replica for good: nothing of it comes back.
func (m *Model) Retire(r *Replica) {
	if !r.down {
		r.Crash()
	}
	m.live = slices.DeleteFunc(m.live, func(o *Replica) bool { return o == r })
}

// named finds a replica.
func (m *Model) named(name string) int {
	id, ok := m.ids[name]
	if !ok {
		panic("raft model: no replica has the name " + name)
	}
	return id
}

// Membership is the calls of a Group that change who is in it.
type Membership struct{ *Replica }

// Disk is a copy of what the disk of entries, term and vote keeps now.
func (c Membership) Disk() *raftfsm.MemDisk { return c.disk.Copy() }

// PutBack gives a replica whose process has ended the disk of an older copy. That takes
// longer than any message of before may be on its way.
func (c Membership) PutBack(disk *raftfsm.MemDisk) {
	c.disk = disk.Copy()
	c.m.network = slices.DeleteFunc(c.m.network, func(msg message) bool { return msg.from == c.id })
}

// Promised opens the files of a replica whose process has ended, and says what they tell.
func (c Membership) Promised(fsys vfs.FS) (p raftfsm.Promise, err error) {
	l, err := raftfsm.OpenLocal(nil, fsys, c.m.dir(), c.disk)
	if err != nil {
		return p, err
	}
	return l.Promise()
}

// Number is where Model.Replica finds the replica.
func (c Membership) Number() int { return c.id }

// Committed is the highest index that the replica knows as committed.
func (c Membership) Committed() uint64 { return c.commit }

// Members is Group.Members.
func (c Membership) Members() ([]raftfsm.Member, uint64) {
	now := c.members()
	return slices.Clone(now.Members), now.Index
}

// AddNonvoter is Group.AddNonvoter. The future's error is raftfsm.ErrNotLeader,
// ErrChanging, or that the outcome is unknown.
func (c Membership) AddNonvoter(id, addr string, prevIndex uint64) *raftfsm.Future {
	return c.change(prevIndex, id, &raftfsm.Member{ID: id, Addr: addr})
}

// Promote is Group.Promote.
func (c Membership) Promote(id, addr string, prevIndex uint64) *raftfsm.Future {
	return c.change(prevIndex, id, &raftfsm.Member{ID: id, Addr: addr, Voter: true})
}

// Remove is Group.Remove.
func (c Membership) Remove(id string, prevIndex uint64) *raftfsm.Future {
	return c.change(prevIndex, id, nil)
}

// change proposes the membership in which a replica is what is given; nil = it is not in it.
func (c Membership) change(prevIndex uint64, id string, is *raftfsm.Member) *raftfsm.Future {
	r := c.Replica
	now := r.members()
	if !r.down && r.halted == nil && r.begun && (now.Index > r.commit || prevIndex != 0 && prevIndex != now.Index) {
		f, resolve := raftfsm.NewFuture()
		resolve(nil, 0, fmt.Errorf("%w: %w", raftfsm.ErrRefused, ErrChanging))
		return f
	}
	next := slices.DeleteFunc(slices.Clone(now.Members), func(m raftfsm.Member) bool { return m.ID == id })
	if is != nil {
		next = append(next, *is)
	}
	if !r.begun && r.role == leader { // its term has not begun
		f, resolve := raftfsm.NewFuture()
		resolve(nil, 0, fmt.Errorf("raft model: %w", raftfsm.ErrNotLeader))
		return f
	}
	return r.propose(context.Background(), entry{members: next})
}

// follow lets a leader begin to know the peers that a membership brought.
func (m *Model) follow(r *Replica) {
	for _, id := range r.peers() {
		if _, known := r.next[id]; !known {
			r.next[id] = r.last()
		}
	}
}
