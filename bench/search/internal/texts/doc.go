// Package texts measures text indexes beside each other: ours, bleve (scorch),
// SQLite FTS5 in Go and in C, and Xapian.
//
// Its job: one analysis for all, by the project's analyzer, so that every index
// holds the same terms; rates of building; bytes on disk; latency of queries of
// one to eight terms; our answers against those of a scan.
//
// Invariants: queries run on one thread, in turns between the indexes; an index
// is built into an empty folder, closed, and opened again before it is asked.
//
// Not its job: what is found by meaning, the words of the analysis themselves.
package texts
