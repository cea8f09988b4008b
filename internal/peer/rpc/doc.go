// Package rpc lets the nodes of a cluster ask each other: a service of the peer port
// has methods, a call takes JSON and gives JSON, and an error keeps its code, message
// and hint on the way.
//
// Invariants: a call goes to the node that is meant or fails; a failure says whether
// the other node can have seen the call; what a method is given names the node that
// asks, as the peer port has checked it; calls that come in, their arrival and answers
// are bounded, in bytes and in time.
//
// Not its job: who may ask for what, and what a call means.
package rpc
