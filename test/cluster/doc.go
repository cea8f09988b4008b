// Package cluster tests several nodes together. Its first tests put the parts of a
// node together by themselves, in one process: the log on three servers, the Raft
// groups over their ports, a replica on each. The others run memnode: process_test.go
// starts it, relay_test.go carries what nodes say to each other, and TestRobustness has
// faults (nemesis_test.go) meet clients (load_test.go) whose histories are checked.
package cluster
