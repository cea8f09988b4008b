// Package derive computes what follows from one event and its keys: terms,
// attributes, the uri and vectors, in clear. What it gives is encrypted where
// it is stored, as files (see docs/security.md).
//
// Derive is a pure function of (pipeline version, event, keys): the leader, a
// failover and a rebuild get the same bytes. It reads no clock, no network and
// no configuration; the only state it follows are the directory events that
// pass through it in log order, because a namespace's vector space is chosen
// by an event.
//
// It also holds the reader's side of one agreement: which words and times
// become terms, so that query finds what ingest wrote.
//
// Not its job: admitting (ingest), rows (projections), models outside this
// process (embed; their vectors are events).
package derive
