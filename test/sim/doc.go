// Package sim runs one to three replicas of a shard in one goroutine, from one
// seed: the writer of ingest as a step function, the state on a file system that
// loses what was not synced, and its views, over models of the Raft group
// (raftmodel) and of the log (log_test.go). Clients capture, revise, forget and
// read, and send again what they do not know the outcome of, while everything
// below fails in the ways that the real parts do. What clients were told is
// compared with what is there.
//
// A failing run prints the line that replays it:
//
//	go test ./test/sim -run TestSimulation -sim.seed=N -v
//
// Not simulated: Raft's own files and membership, the NATS server, keys that
// differ between replicas, vectors, transports, and a log that lost messages,
// after which a person has to decide.
package sim
