// Package rank scores what a search has found. It reads nothing: a Plan says what
// the query asks for, a Ranking takes what the sources found, says what else it
// needs to know, and orders the candidates.
//
// The query is a list of concepts: a word, and what else stands for it. What a document
// has of a concept is what its best alternative gives. Each candidate has one row of
// features (sum.go), their weighted sum, and the logistic function of the sum as its score.
//
// A candidate that only one source found gets the values of the other parts
// computed exactly, so a score does not depend on the limit, the filter or what else was
// found.
//
// Invariants: what a filter leaves out changes no value of a document, only what
// may be a candidate; only documents that the reader sees contribute.
//
// Not its job: finding candidates (index/text, index/vector), opening records,
// what a namespace's settings are.
package rank
