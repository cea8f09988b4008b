// Package query is every read of a node: search, records, history, timeline,
// audit, events, namespaces.
//
// Service owns the vector view and opens Readers. A Reader is one capability
// over one consistent view of the state: it sees the team's partition of one
// namespace and, for an agent, that agent's own.
//
// Invariants:
//   - There is no read of a memory without a Capability, and what it does not
//     open is not read: not a score, not a count of a term, not an error message
//     depends on it.
//   - A record is searchable when its ack is given: OnApply brings the vector
//     view forward before the result of the apply is told, and at_least waits
//     for this package's own position.
//   - A search never returns fewer results than exist up to its limit.
//   - Plaintext lives for one answer; nothing that is opened is kept but vectors.
//
// Not its job: who may act as which agent (auth), transports, writing,
// opening models (embed).
//
// # Scores
//
// text: BM25 brought to 0..1 as x/(x+c), where c grows with the number of query
// terms and the logarithm of the number of documents that the reader can see
// (see textScale): monotone, the same for every filter and limit, and a
// function of visible documents only. vector: the cosine, 0 where negative.
// Weighted fusion compares like with like: a candidate that only one source
// brought gets its other part computed exactly before it can be among the
// results. Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009) uses k = 60
// and is scaled so that the first in every list has 1.
package query
