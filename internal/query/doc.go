// Package query is every read of a node: search, records, history, timeline,
// audit, events, namespaces.
//
// What reads open is in package views, and how candidates are scored in package
// rank. A Reader is one view, and answers the reads of memories. A Service answers
// what needs no capability for memories or opens several views.
//
// Invariants:
//   - There is no read of a memory without a capability. Neither a score, nor a
//     count of a term, nor an error message depends on what it does not open.
//   - A record is searchable when its acknowledgement is given.
//   - A search never returns fewer results than exist up to its limit.
//   - Plaintext lives for one answer. Of what is opened only vectors are kept.
//
// Not its job: who may act as which agent (auth), transports, writing, opening
// models (embed).
package query
