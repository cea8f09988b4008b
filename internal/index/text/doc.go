// Package text is the text index of a shard: BM25 over postings in Pebble, one
// index per partition. It sees term keys (12 opaque bytes, an HMAC made
// elsewhere) and integers, never text.
//
// Writer adds and removes documents inside the shard's single apply goroutine
// and a batch of its caller. Searcher reads, concurrently, from a snapshot or the
// database. The two share only the formats in keys.go, posting.go, forward.go and
// stats.go.
//
// Invariants:
//   - What is written is a function of the arguments and of the rows before: no
//     clock, no map order, no floats.
//   - Search results do not depend on how documents were grouped into ranges, nor
//     on flushes and compactions.
//   - A score depends on nothing outside the partitions of the call: N, average
//     lengths and term counts are exact sums over them.
//   - A damaged row is ErrCorrupt, never a panic.
//
// Not its job: analysis of text, term keys, which documents live (the caller's
// live set says so), which partitions may be read, snippets, fusion.
//
// # Decisions and trade-offs
//
//   - Scoring is term at a time within blocks of 16,384 DocIDs, into a dense
//     accumulator of 128 KiB that stays in cache: no heap of cursors, no maps, and
//     filters cost one AND per 64 documents. Block-max pruning can be added in the
//     Searcher, since postings are grouped by the same blocks.
//   - A posting carries its field length, so that scoring reads no document row.
//   - Term counts n are counted against the live set while reading, because
//     removed documents keep their postings until they are erased.
//   - The removed mark is a row of its own: forward rows never change, so that the
//     caller can hash them as facts.
package text
