// Package ingest is the way of an event from a caller to the state: admit,
// seal, append, derive, propose.
//
// Admission happens in the caller's goroutine: who speaks, is it well-formed,
// which record and which key. A queue that is bounded and fair between
// namespaces feeds a sequencer, which decides against state and frames in
// flight, stamps times and seals. A round puts one frame after the other into the
// log, derives it and proposes it; the fold's verdict answers the caller.
//
// A Writer writes for one Raft term. Its rounds follow each other: each catches
// up with the log, writes leader.began, and admits once that is applied. round is
// a step function without I/O, clock or goroutines; loop drives it.
//
// Beside the writer, Backfill gives records the vectors that derivation did not.
//
// Invariants:
//   - A caller is told "accepted" only when the log has the event, "applied"
//     only when the state has it.
//   - What admission finds to be a duplicate or a conflict is not appended; the
//     fold repeats the verdict as the authority.
//   - Derive is a pure function of (pipeline version, event, keys).
//   - Nothing that leaves this package for the log is plaintext. What a command
//     carries to Raft beside the frames is in clear, as the rows are that it becomes:
//     both are encrypted where they are kept.
//
// Not its job: what follows from an event (derive), transport, who is authenticated, what the rows look like.
package ingest
