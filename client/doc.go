// Package client is the typed Go client of Mneme's REST interface. It needs the
// standard library and the vocabulary in package memory, nothing else.
//
// Its job: one method for each REST resource; problem documents become
// *memory.Error; a network failure says which address was tried and what to do;
// a capture whose answer was lost is sent once more under the same id, which is
// safe because every capture leaves here with one; of several nodes, the next one is
// asked where one does not take a call; what something else answers in the place of a
// memnode is ErrForeign, and no success, whether it is read whole or as it comes.
//
// Invariants: no method keeps or changes a slice, map or pointer that it was
// given; a request never waits longer than its context; nothing is retried that
// could happen twice.
//
// Not its job: validating (the node does), caching, choosing a namespace.
package client
