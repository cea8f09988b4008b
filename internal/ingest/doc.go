// Package ingest is the way of an event from a caller to the state: admit,
// seal, append, derive, propose.
//
// Admission happens in the caller's goroutine: who speaks, is it well-formed,
// which record and which key. A queue that is bounded and fair between
// namespaces feeds one sequencer, which decides against state and frames in
// flight, stamps times, seals, and hands frames to one appender; one frame is
// in flight. What was appended is derived and proposed, and the fold's verdict
// answers the caller.
//
// Invariants:
//   - A caller is told "accepted" only when the log has the event, "applied"
//     only when the state has it.
//   - What admission finds to be a duplicate or a conflict is not appended; the
//     fold repeats the verdict as the authority.
//   - Derive is a pure function of (pipeline version, event, keys).
//   - Nothing that leaves this package for the log or for Raft is plaintext.
//
// Not its job: what follows from an event (derive), transport, who is authenticated, what the rows look like.
package ingest
