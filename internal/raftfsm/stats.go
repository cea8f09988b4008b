package raftfsm

import (
	"strconv"
	"time"
)

// Stats is a picture of the group for people and metrics. Its fields are read
// one after the other.
type Stats struct {
	State    string // Follower, Candidate, Leader, Shutdown
	Term     uint64
	LeaderID string
	Voters   int
	// LeaderChanges counts how often another leader was heard of, or this replica began to
	// lead, since the start. LastContact is when the leader was last heard of; zero: never,
	// and of the leader itself.
	LeaderChanges uint64
	LastContact   time.Time
	FirstIndex    uint64 // of the log; 0 if empty
	LastIndex     uint64
	CommitIndex   uint64
	AppliedIndex  uint64 // how far this replica has come, no-ops included
	MachineIndex  uint64 // the machine's own cursor
	SnapshotIndex uint64
	Snapshots     int
	FSMPending    uint64 // batches that wait for the machine
	Halted        bool
	// Durations of writes to the Raft log: the last one, the longest, and the one
	// under way (0 if none). A watchdog looks at the last of these.
	StoreLast, StoreMax, StoreUnderWay time.Duration
	// Repair is what Open had to do.
	Repair Repair
}

// Repair says what Open did to make log and state fit each other.
type Repair struct {
	// Reason is empty if nothing was done.
	Reason string
	// MovedTo is where a damaged raft.db lies now, if there was one.
	MovedTo string
	// RestoredFrom is the snapshot that the machine was restored from, if any.
	RestoredFrom string
}

// Stats returns the current numbers.
func (g *Group) Stats() Stats {
	all := g.raft.Stats()
	num := func(key string) uint64 {
		n, _ := strconv.ParseUint(all[key], 10, 64) // raft formats them itself
		return n
	}
	id, _ := g.Leader()
	first, _ := g.store.FirstIndex()
	last, _ := g.store.LastIndex()
	machine, _ := g.opt.Machine.AppliedIndex()
	s := Stats{
		State: all["state"], Term: num("term"), LeaderID: id, Voters: countVoters(g.configuration()),
		FirstIndex: first, LastIndex: last, CommitIndex: num("commit_index"),
		AppliedIndex: g.fsm.progress.reached(), MachineIndex: machine,
		SnapshotIndex: num("last_snapshot_index"), Snapshots: g.snaps.count(),
		FSMPending: num("fsm_pending"), Halted: g.Halted() != nil, Repair: g.repaired,
	}
	s.LeaderChanges = g.leads.changes.Load()
	if s.LeaderID != g.opt.ID {
		s.LastContact = g.raft.LastContact()
	}
	s.StoreLast, s.StoreMax, s.StoreUnderWay = g.store.times()
	return s
}
