// Package replica is one shard on one node: the shard's log, its Raft group and
// its state, and what a leader runs.
//
// A replica opens as a follower: its state follows the Raft group, and reads are
// answered from it. Leadership is a lifecycle. For each Raft term that the replica
// leads it starts one writer (package ingest) and then the workers that only a
// leader may run; when the term ends they are stopped and waited for before the
// next ones start. A follower has none of them. A writer that ends by itself is
// followed by another one, after a pause, as long as the replica leads; one that
// met a later writer's frame in the log gives up the leadership of the group.
//
// Invariants:
//   - at most one writer at a time, and workers run only while it is open;
//   - the state is replaced (by a snapshot, a rebuild, a copy) under the lock under
//     which commands are applied, and only by one that stands where it stands or
//     further on;
//   - what is kept in memory beside the state is loaded by a goroutine of its own,
//     never by the one that applies. Until it has been loaded, reads see the new
//     rows with the former vectors, and reads that wait for a position wait for it;
//   - with peers nothing on disk is moved aside, removed or built anew: such a
//     replica is refused with a typed error that names the remedy.
//
// Not its job: what a request may do, what is answered (packages api and query),
// and when the log is verified or repaired (package node).
package replica
