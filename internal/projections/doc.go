// Package projections is the state of a shard: pure folds from events to rows.
//
// State implements the machine that Raft drives. Apply takes ApplyRange
// commands (frames of the log with the contributions the leader derived from
// them), folds every event into one Pebble batch together with the cursor, and
// reports what became of each event. Readers open a View: a consistent
// snapshot that names its position.
//
// Invariants:
//   - Same log, same state: Apply reads the command and the rows before it and
//     nothing else: no clock, randomness, network, map order, configuration or
//     key. It opens nothing that is sealed, and computes no floating point.
//   - ApplyRange is compare-and-advance: it does nothing unless it continues
//     exactly where the state stands.
//   - Rows and cursor commit together.
//   - The state hash is the sum modulo 2^256 of SHA-256 over the logical facts;
//     caches, blocks, counters and cursors are no facts.
//
// A projection is a type in a file of its own: log, facts, directory, home,
// partitions, records, data keys, terms, attributes, vectors, graph, audit, read log. DESIGN.md says how an
// event goes through them, how to add one, and lists all rows.
//
// Not its job: deciding what is admitted (ingest), what a reader may see
// (query), opening anything that is sealed (keyring).
package projections
