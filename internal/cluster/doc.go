// Package cluster makes single nodes into one cluster, takes later ones into it, and
// keeps what a node knows of the others: who they are and where they are reached. It
// answers the calls of service "cluster" at the peer port.
//
// Invariants: of nodes that expect each other, one founds, and founds once, whatever
// is lost, restarted or late; a vote, the cluster's id and what is known of members
// are on stable storage before anybody is told; nothing that a node has said of its
// addresses replaces something newer; a replica gets a vote in a Raft group only once
// it has caught up, by one change of the membership at a time; the name of a node that
// was removed never comes back.
//
// Not its job: what the cluster does, and who leads.
package cluster
