package raftfsm

import "github.com/hashicorp/raft"

// Transport reaches the other replicas of a group.
type Transport = raft.Transport

// newLocalTransport is the transport of a node on its own: it has an address,
// reaches nobody and needs no port.
func newLocalTransport(id string) raft.Transport {
	_, t := raft.NewInmemTransport(raft.ServerAddress(id))
	return t
}
