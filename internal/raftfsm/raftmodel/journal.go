package raftmodel

import (
	"slices"

	"mneme/internal/raftfsm"
)

// journal is a replica's log, in memory and on its disk, with the memberships that
// stand in it.
type journal struct {
	m     *Model
	id    int
	disk  *raftfsm.MemDisk // of entries, term and vote
	local *raftfsm.Local   // on it, and on the disk of the snapshots
	base  entry            // the last entry that the newest snapshot holds
	log   []entry
	// groups are the memberships by their index: the first holds at base.
	groups []raftfsm.Membership
}

// load reads the log. What the newest snapshot holds is of no use any more, and
// neither is a log that does not join it: a crash came before it was removed.
func (j *journal) load() error {
	index, term, members := j.local.Newest()
	j.begin(entry{index: index, term: term, chain: j.m.truth.chains[[2]uint64{index, term}]}, members)
	entries, err := j.local.Entries()
	if err != nil || len(entries) == 0 {
		return err
	}
	last := entries[len(entries)-1].Index
	other := slices.ContainsFunc(entries, func(e raftfsm.LogEntry) bool { return e.Index == index && e.Term != term })
	if last < index || other {
		return j.local.Delete(entries[0].Index, last)
	}
	for _, e := range entries {
		if e.Index > index {
			j.push(entry{index: e.Index, term: e.Term, data: e.Data, marker: e.Marker, members: e.Members})
		}
	}
	return nil
}

// begin empties the log behind a base.
func (j *journal) begin(base entry, members raftfsm.Membership) {
	if len(members.Members) == 0 {
		members = j.m.founders
	}
	j.base, j.log, j.groups = base, nil, []raftfsm.Membership{members}
}

// push appends an entry in memory.
func (j *journal) push(e entry) entry {
	e.chain = link(j.lastEntry().chain, e)
	j.log = append(j.log, e)
	if e.members != nil {
		j.groups = append(j.groups, raftfsm.Membership{Index: e.index, Members: e.members})
	}
	return e
}

// add appends an entry, which is on stable storage then, unless the group is a
// single voter. An error means that the disk did not take it.
func (j *journal) add(e entry) error {
	if err := j.local.Store(e.stored()); err != nil {
		return err
	}
	j.m.truth.stored(j.id, j.push(e))
	return nil
}

// cut drops the entries from an index on.
func (j *journal) cut(from uint64) error {
	if from > j.last() {
		return nil
	}
	if err := j.local.Delete(from, j.last()); err != nil {
		return err
	}
	j.log = j.log[:from-j.base.index-1]
	for len(j.groups) > 1 && j.members().Index >= from {
		j.groups = j.groups[:len(j.groups)-1]
	}
	return nil
}

// compact drops the entries up to one that a snapshot holds. What stays on the disk is
// dropped at the next start.
func (j *journal) compact(end entry) {
	_ = j.local.Delete(1, end.index)
	j.log = append([]entry(nil), j.log[end.index-j.base.index:]...)
	for len(j.groups) > 1 && j.groups[1].Index <= end.index {
		j.groups = j.groups[1:]
	}
	j.base = end
}

func (j *journal) last() uint64 { return j.base.index + uint64(len(j.log)) }

// at returns the entry at index; ok is false below the base and behind the end.
func (j *journal) at(index uint64) (e entry, ok bool) {
	switch {
	case index == j.base.index:
		return j.base, true
	case index < j.base.index || index > j.last():
		return entry{}, false
	default:
		return j.log[index-j.base.index-1], true
	}
}

func (j *journal) lastEntry() entry { e, _ := j.at(j.last()); return e }

// members is the newest membership in the log, which holds from when it is appended.
func (j *journal) members() raftfsm.Membership { return j.groups[len(j.groups)-1] }

// membersAt is the membership that holds at an index.
func (j *journal) membersAt(index uint64) raftfsm.Membership {
	for i := len(j.groups) - 1; i > 0; i-- {
		if j.groups[i].Index <= index {
			return j.groups[i]
		}
	}
	return j.groups[0]
}

// votes counts the voters among those that agree.
func (j *journal) votes(agrees func(id int) bool) (yes int) {
	for _, s := range j.members().Members {
		if s.Voter && agrees(j.m.named(s.ID)) {
			yes++
		}
	}
	return yes
}

func (j *journal) quorum() int { return j.votes(func(int) bool { return true })/2 + 1 }

// hasVote reports whether a replica votes, as far as this log knows.
func (j *journal) hasVote(id int) bool {
	return j.votes(func(voter int) bool { return voter == id }) > 0
}

// peers are the other replicas of the group, in their order.
func (j *journal) peers() (ids []int) {
	for _, s := range j.members().Members {
		if id := j.m.named(s.ID); id != j.id {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
