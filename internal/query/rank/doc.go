// Package rank scores what a search has found. It reads nothing: a Plan says what
// the query asks for, a Ranking takes what the sources found, says what else it
// needs to know, and orders the candidates.
//
// A score is a sum of parts, each a value from 0 to 1 with a weight:
//
//   - text is BM25 beside that of a document that holds each of the query's words
//     as often as can be.
//   - vector is the cosine of the best chunk, 0 where it is negative.
//   - neighbours is what the messages around it in its conversation add, by their
//     words and by their vectors; conversation is the same for all of it.
//   - speaker and dates say whether the query names its agent or its time.
//
// A candidate that only one source found gets the values of the other parts
// computed exactly. Weighted fusion then adds the parts up, and calibration maps
// the sum to how likely the candidate is relevant. Reciprocal rank fusion
// (Cormack, Clarke and Büttcher 2009) uses k = 60 and is scaled so that the first
// in every list has 1.
//
// Invariants: what a filter leaves out changes no value of a document, only what
// may be a candidate; only documents that the reader sees contribute.
//
// Not its job: finding candidates (index/text, index/vector), opening records,
// what a namespace's settings are.
package rank
