// Package node builds one node from its parts and takes it apart again.
//
// It is the only package that knows all of them: data directory, keyring, log,
// Raft group, state, writing and reading side, transports. It decides the order
// in which they start and drain, maps their failures to people, and carries out
// the administrative work that spans them: rebuild, repair, backup, doctor.
//
// Not its job: flags and environment (cmd/memnode), any logic of events, rows or
// queries.
package node
