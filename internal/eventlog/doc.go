// Package eventlog keeps a shard's log on NATS JetStream: the embedded server
// or an external one, the stream, appending, reading from our own
// cursor, and what to do when log and state disagree.
//
// Invariants:
//   - A publish carries the last sequence that its writer expects and no message
//     id; an ack counts only at the predicted sequence.
//   - Reading goes through a cursor of the caller, never through a durable
//     consumer. A sequence that is missing is an error, never skipped.
//   - Streams refuse deleting and purging. Nothing here removes a message; a whole
//     stream is removed only once another one has taken its place (Log).
//   - Clients of the embedded server are either the node, which may do
//     everything, or the public, which cannot reach log or system subjects.
//
// Not its job: what events mean (projections), who may say them (auth), sealing
// (keyring), and writing a leader's frames: a round of ingest appends them, and
// decides what an answer of the log means and what becomes of other messages.
package eventlog
