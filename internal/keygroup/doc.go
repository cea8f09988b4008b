// Package keygroup keeps the keyrings of a cluster's nodes equal: they are the machines
// of one Raft group.
//
// Invariants:
//   - A command is in the Raft log of a majority, synced, and applied on the node that
//     proposed it, before that node is told so.
//   - A node that joins gets everything by Raft's snapshot. No log of the group has an
//     entry that a blank keyring could apply.
//   - What a command destroyed is, some time after the command was applied, in no file
//     of the group here: neither the log nor a snapshot, see [Group.Renewed].
//   - Nothing of it lies in clear on a disk: snapshots go through a file system that
//     encrypts, values of the log are sealed, and commands are sealed by themselves.
//
// Not its job: what a command means (keyring), who is a member (cluster), which ranges
// need which keys (replica).
package keygroup
