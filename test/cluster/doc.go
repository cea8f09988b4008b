// Package cluster tests several nodes together. Its first tests put the parts of a
// node together by themselves, in one process: the log on three servers, the Raft
// groups over their ports, a replica on each.
package cluster
