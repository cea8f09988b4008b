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
// # What fails
//
// The log refuses, loses acknowledgements and messages, stores late, twice, or at
// another sequence than expected, is full, is not reached, and shows a tail that
// lags. In every third run it also loses what it had synced: a few of its last
// messages, one in the middle, or the very frame that Raft takes without saying so;
// sequences that were lost are used again. Raft loses, repeats and reorders messages,
// elects leaders for no reason, leaves a deposed one believing, does not say whether
// it took a command, brings lagging replicas a snapshot, also one that comes late, and
// its disk fails, also while a process starts. Processes lose their power, clocks are set wrong, epochs are raised,
// and ranges of another history are proposed.
//
// Where log and state disagree a writer stops, as it does on a node, or somebody
// compares them. Then the log is repaired into another stream, while everything else
// goes on: repair_test.go takes the steps of package node with the comparison, the
// reservation and the filling that it uses. They are cut short, by crashes too, and
// another leader finishes them. Where the log contradicts the state, a person gives up
// what the log has: what was applied was agreed on. Of a single voter log and state are
// not lost at a time.
//
// # What is checked
//
// At each step: states at one sequence are one (cursor and hash); no replica
// halts; no state goes back; what Raft committed stays, and a term has one leader
// (raftmodel); a writer that opens a round finds its beginning in the state, and one that
// was shown a frame of a higher term writes nothing more; a
// duplicate is told the first record and position; a read after a write, one at a
// position, and a linearizable one show all that they have to. At the end: every
// replica comes to rest at the log's end; what was acknowledged is there once, what was
// refused is not; a fold of the log is the state. In a run whose log lost nothing no
// writer stops. In one that did, what was acknowledged as applied is there all the
// same; what was only accepted may be lost with the log.
//
// # Defects that it finds
//
// TestMutants lists the defects that it must find again, and puts each back with
// -sim.mutants, by an overlay that only the compiler sees:
//
//	go test ./test/sim -run TestMutants -sim.mutants -sim.for=60s -timeout 30m -v
//
// # How soon it finds them
//
// Runs (one seed each) until the first that failed, on 2026-11-22: no chain check 2,
// a read that does not verify the leader 40, a restore that goes back 17, votes
// after an error of the disk 96, a stale answer taken for success 4, the epoch of a
// duplicate 11; once the log lost messages: no chain check on a sequence that is used
// again 139, such a sequence that is not compared 19, a repair that fills behind what
// differs 36. A displaced frame of unknown outcome that is refused, and a void frame of a
// higher term that is adopted, take some thousands of runs; their seeds are kept, and run
// first. A minute of two processors begins about 1,200 runs, and about 110
// with the race detector, so that it may take some minutes there to find one.
//
// # What is not simulated
//
// The raft library, membership, the NATS server, bolt's file, keys that differ
// between replicas, vectors, transports, and a restored backup. The order of
// goroutines: there is one, but for Pebble's own and those of a replay, which change no
// answer.
package sim
