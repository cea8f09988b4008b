// Package eventlog keeps a shard's log on NATS JetStream: the embedded server
// or an external one, the stream, the leader's writer, reading from our own
// cursor, and what to do when log and state disagree.
//
// Invariants:
//   - One writer has at most one publish in flight. A publish carries the last
//     sequence that the writer expects and no message id; an ack counts only at
//     the predicted sequence.
//   - After anything but a clean ack the writer reads the tail and adopts what
//     is there before it writes again. While it cannot read, it does not write.
//   - Reading goes through a cursor of the caller, never through a durable
//     consumer. A sequence that is missing is an error, never skipped.
//   - Streams refuse deleting and purging. Nothing here removes a message; only
//     Repair may replace a whole stream, after it has proved that everything in
//     it can be written again.
//   - Clients of the embedded server are either the node, which may do
//     everything, or the public, which cannot reach log or system subjects.
//
// Not its job: what events mean (projections), who may say them (auth), sealing
// (keyring), and deciding what to do with messages that the writer adopts.
package eventlog
