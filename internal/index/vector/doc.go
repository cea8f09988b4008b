// Package vector is the in-memory vector index of one (partition, space).
//
// Its job: keep unit vectors under ascending IDs and answer "which k are
// nearest to q", always over everything added so far. A [Set] is a flat store
// of vectors, a graph over a prefix of it (HNSW: Malkov & Yashunin 2018), and a
// tail that the graph does not hold yet and every search scans exactly. A
// background builder moves the tail into the graph.
//
// A vector takes one byte a component and a scale. Dot products of bytes are
// exact integers, the same on every processor and kernel; walks and scans rank
// by them. What a search returns is scored once more: from full-precision
// vectors, which are not kept here but asked of [Options.Exact], or else with
// the query in the precision of a float32.
//
// Invariants:
//
//   - A vector is found by the next Search after Add, a deleted one by none
//     after Delete.
//   - A search never returns fewer than min(k, allowed live vectors).
//   - Vectors stand in slots 0..n-1 in ID order; a slot is written once, before
//     n passes it, so that readers need no lock.
//   - Several goroutines build a graph, and it does not depend on how many: it is
//     a function of IDs, vectors, Params and of which vectors were there when a
//     batch of insertions began. A graph is a cache of one node: two nodes may
//     hold different ones for the same vectors.
//   - Every node is reachable on the ground layer: each holds a two-way link to
//     a parent which no pruning may cut (see hnsw_insert.go).
//   - No graph answers before the recall guard has compared it with an exact
//     scan, nor after it fell below the threshold.
//
// Not its job: embedding, sealing, persistence of vectors (Save and Load carry
// links and IDs only), mapping IDs to records, clamping scores to 0..1.
//
// Scores are floats which live in memory views and must never reach replicated
// state.
package vector
