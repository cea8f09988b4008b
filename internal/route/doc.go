// Package route lets any node of a cluster take any write: a node that does not lead
// the shard has the one that does carry it out, by a call over the peer port. A
// linearizable read asks the leader where it stands, and waits until its own state is
// there.
//
// Invariants: a write is carried out by the node that leads, at most once; what may
// have happened is sent again only where twice is the same as once, and is told as
// outcome_unknown otherwise; a call that was forwarded is not forwarded again; what one
// caller sends one after the other is written in that order.
//
// Not its job: who leads, admitting, deciding, waiting for positions.
package route
