// Package text is the text index of a shard: BM25 over postings in Pebble, one
// index per partition. It sees analysed terms and integers, never the texts. Its rows
// hold terms in clear; the files that they are in are encrypted below it.
//
// Writer adds and removes documents inside the shard's single apply goroutine
// and a batch of its caller. Searcher reads, concurrently, from a snapshot or the
// database, and Vocabulary lists the terms that there are. They share only the
// formats in keys.go, row.go, document.go, tailrow.go, forward.go, names.go and
// stats.go.
//
// Invariants:
//   - What is written is a function of the arguments and of the rows before: no
//     clock, no map order, no floats. Ids do not depend on batches either.
//   - A term is in the dictionary exactly while it has postings, and an id never
//     means two terms.
//   - Search results do not depend on how documents were grouped into ranges, nor
//     on flushes and compactions, to the bit.
//   - A score depends on nothing outside the partitions of the call: N, average
//     lengths and term counts are exact sums over them, without the removed.
//   - A search gives what scoring every document would give.
//   - A damaged row is ErrCorrupt, never a panic.
//
// Not its job: analysis of text, which documents live (the caller's live set says
// so), which partitions may be read, the order of words, snippets, fusion, facts (the
// caller hashes what EncodeDoc gives).
//
// # Decisions and trade-offs
//
//   - Postings lie under the terms themselves: keys share prefixes, a range of keys
//     is a range of the vocabulary, and nothing is computed for a term.
//   - A document with postings has a row of ids, a fifth of what its terms take.
//     Only who removes or erases it reads that row, and looks the names up. So a
//     search needs no dictionary: ids are for the Writer alone, which remembers
//     those it met.
//   - Names are rows of up to 64 terms that were new together: one row for each
//     tail instead of one for each term.
//   - The newest documents of a partition are searched in their own rows and
//     inverted 64 at a time (tail.go). A capture writes one row instead of one for
//     each term, and a reader meets one operand where there were 64. The price is
//     a longer Apply for one document in 64. A tail ends at 256 KiB too, for the
//     longer Apply would otherwise grow with the length of the documents.
//   - Operands are concatenated when read and packed when Pebble stores them (flush
//     and compaction), in the background, by the merge operator. A packed row is a
//     function of its postings alone. Sealing blocks in Apply instead would read
//     and write them in the one goroutine that everything waits for.
//   - Postings are packed in chunks of 128, in columns of bytes, not in deltas or
//     bits: any of them can be read alone, so that asking for one document costs a
//     binary search, and the inner loop has no shifts. Numbers of just the bits
//     they need were 5 bytes a document smaller, of 348; columns and remembered
//     scores took a fifth off a search of eight frequent terms. A posting carries
//     its field length, so that scoring reads no document row.
//   - Chunks carry the pairs (tf, length) that no other posting of theirs beats, not
//     a score: they stay right as N and average lengths change.
//   - Term counts n exclude the removed: Remove adds to a counter in the rows of the
//     document's terms. So n is known before any posting is read, which skipping
//     needs.
//   - Top-k is MaxScore in windows of 4,096 DocIDs with an accumulator of 32 KiB:
//     no heap of cursors, and queries of hundreds of terms stay linear. Filters
//     cost one AND per 64 documents, or, if they leave few, a probe per document.
//   - Summands are rounded to a grid on which sums are exact, so that the order of
//     adding, and with it all pruning, changes no bit of a score.
//   - Rows of the tail are in clear, with a byte of each term's hash in front: a
//     search looks at those bytes and reads only the terms that may be its own.
//   - The removed mark is a row of its own, so that removing rewrites nothing.
package text
