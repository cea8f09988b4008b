// Package raftfsm runs one Raft group for one shard and feeds what the group
// has committed to a state machine that it knows only as [Machine].
//
// Its job: order commands, keep them until the machine has them on stable
// storage, elect a leader, take and restore snapshots, and say at which index
// a replica stands.
//
// Invariants:
//   - A command is handed to the machine in index order, in batches, and never
//     twice: entries at or below Machine.AppliedIndex are left out.
//   - An entry leaves the Raft log only after Machine.Flush has returned for a
//     state that contains it, and a snapshot of such a state is on disk.
//   - What a vote consists of (term and candidate) is stored as one value.
//   - Every value in raft.db is sealed (or, in tests, carries a CRC32C); the file
//     is checked page by page before it is opened for writing.
//   - Whatever else the group writes goes through Options.FS, and what it says is
//     durable survives a file system that loses all that was not synced.
//   - A group with a single voter survives the loss of raft.db or damage to it:
//     the file is moved aside and a new log starts at the machine's index, in a
//     term above all that log, state and owner know. With more than one voter
//     nothing is moved or removed: Open answers with a [RejoinError], since a
//     voter that forgot its vote may elect two leaders.
//   - After [Group.Renew] nothing older than the call is on disk.
//   - Raft indexes come from this package alone; what else counts commands (the
//     event log's sequences) is never taken for one.
//   - An error or a panic in the machine halts this group and nothing else, until it is
//     opened again or a command makes the machine able to go on, see [Resumer].
//     The owner of a halted leader with peers hands over (HaltedCh, TransferLeadership).
//   - A committed entry that becomes unreadable while the group is open halts a
//     group without peers. With peers the raft library panics on it: a stand-in
//     entry could be replicated.
//
// Not its job: what a command means, duplicates and stale proposals (commands
// fence themselves), the JetStream log, peers' TLS, queries.
package raftfsm
