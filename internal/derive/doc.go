// Package derive computes what follows from one event and its keys: terms,
// attributes and vectors, as opaque keys and sealed values.
//
// Derive is a pure function of (pipeline version, event, keys): the leader, a
// failover and a rebuild get the same bytes. It reads no clock, no network and
// no configuration; the only state it follows are the directory events that
// pass through it in log order, because a namespace's vector space is chosen
// by an event.
//
// It also holds the reader's side of the same agreements: how a term, an
// attribute or a vector is keyed and sealed, so that query finds what ingest
// wrote.
//
// Not its job: admitting (ingest), rows (projections), models outside this
// process (embed; their vectors are events).
package derive
