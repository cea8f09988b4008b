// Package e2e holds the tests of whole processes: memnode and memctl as built
// from this checkout, on free loopback ports, in temporary directories.
//
// Its job: to break a node from outside in every way that a user or a machine
// can (bad input, kills, cut files, flipped bits, taken ports, lost keys), to
// prove that the fault bit, and to hold the node to what is promised.
//
// Not its job: faults that need a clock, a limit or a hook inside the process
// (package node tests those), or the logic of one package.
package e2e
