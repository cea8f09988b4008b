// Package peer carries everything that the nodes of a cluster say to each other, over
// one port: Raft, forwarded requests, snapshots. Each connection is TLS 1.3 with a
// certificate on both sides, names the node it comes from and the service it is for,
// and belongs to that service from then on.
//
// Invariants: no byte of a service passes before both sides have shown a certificate
// of the cluster's authority, each for the id in the name that it says, and the same
// cluster id; a service that admits strangers also takes nodes that have no cluster
// yet; a connection reaches the node that it was opened to, or fails; what an address means is asked at each dial;
// certificates that were replaced on disk count from the next connection on.
//
// Not its job: what is said. It knows no Raft, no requests and no memories.
package peer
