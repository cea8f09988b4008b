// Package vector is the in-memory vector index of one (partition, space).
//
// Its job: keep unit vectors under ascending IDs and answer "which k are
// nearest to q", always over everything added so far. A [Set] is a flat store
// of vectors, a graph over a prefix of it (HNSW: Malkov & Yashunin 2018), and a
// tail that the graph does not hold yet and every search scans exactly. A
// background builder moves the tail into the graph.
//
// Invariants:
//
//   - A vector is found by the next Search after Add, a deleted one by none
//     after Delete.
//   - A search never returns fewer than min(k, allowed live vectors).
//   - Vectors stand in slots 0..n-1 in ID order; a slot is written once, before
//     n passes it, so that readers need no lock.
//   - The graph is a function of IDs, vectors and Params: levels come from a
//     hash of the ID and one goroutine inserts in ID order.
//   - Every node is reachable on the ground layer: each holds a two-way link to
//     a parent which no pruning may cut (see hnsw_insert.go).
//   - No graph answers before the recall guard has compared it with an exact
//     scan, nor after it fell below the threshold.
//
// Not its job: embedding, sealing, persistence of vectors (Save and Load carry
// links and IDs only), mapping IDs to records, clamping scores to 0..1.
//
// Scores are float32 sums whose last bits depend on the processor. They live
// in memory views and must never reach replicated state.
package vector
