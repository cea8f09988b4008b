// Package storage opens the Pebble database of one shard and keeps what every
// projection needs of it: ordered key encodings, one merge operator that
// dispatches on the first key byte, typed open errors, checkpoints.
//
// Invariants:
//   - Commits are not synced unless asked: the event log and Raft hold the
//     durable copies. Sync is the fence that lets their owner truncate.
//   - A commit is applied whole or not at all, and a refused one (ErrNoSpace,
//     ErrHalted) changed nothing.
//   - Nothing in here ends the process. What Pebble calls fatal halts this
//     database: later writes give ErrHalted, reads go on.
//   - The key prefix 0x00 belongs to this package. Everything else belongs to
//     the projection that owns the first byte.
//
// Not its job: what the rows mean, who may read them, when to take a
// checkpoint, what to do about a fault.
//
// # When Pebble calls Fatalf
//
// Pebble calls Logger.Fatalf in two situations. (1) On the goroutine of the
// caller: a commit whose write-ahead log failed (it also panics there), or a
// broken iterator invariant. The logger panics with the error; Commit, Sync,
// Flush, Checkpoint and Open recover it and return it. A read that panics is
// left to the caller's own recover. (2) On one of Pebble's own goroutines,
// mostly a manifest that cannot be written. Nobody could recover a panic there,
// so the logger ends that goroutine with runtime.Goexit, which runs Pebble's
// deferred unlocks. Which of the two it is, the root frame of the stack tells.
//
// In both cases the database is halted: locks inside Pebble may stay held and
// flushes may be missing, so Close does not enter Pebble again. It returns
// ErrHalted and leaves the directory locked until the process ends, because
// Pebble's remaining goroutines may still write. A write that was already
// waiting inside Pebble for a flush when case (2) struck may never return;
// Options.OnFault tells the owner.
package storage
