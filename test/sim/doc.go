// Package sim runs one to five replicas of a shard in one goroutine, from one
// seed: the writer of ingest as a step function, the state on a file system that
// loses what was not synced, and its views, over models of the Raft group
// (raftmodel) and of the log (log_test.go). Clients capture, revise, forget, erase
// and read, and send again what they do not know the outcome of, while everything
// below fails in the ways that the real parts do. What clients were told is
// compared with what is there.
//
// A seed draws what its run is made of (world_test.go: shapes): one replica, three that
// are always the same and have one keyring, or a cluster of three or five nodes to begin
// with, each with a keyring of its own in a second Raft group (site_test.go).
//
// A failing run prints the line that replays it:
//
//	go test ./test/sim -run TestSimulation -sim.seed=N -sim.shape=cluster3 -v
//
// # What fails
//
// The log refuses, loses acknowledgements and messages, stores late, twice, or at
// another sequence than expected, is full, is not reached, and shows a tail that
// lags; where there are several servers, also one that is behind what its reader has seen. In every third run it also loses what it had synced: a few of its last
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
// In a cluster nodes join without a vote and get one once they have caught up, are removed,
// lose their disk and come back with nothing under another incarnation, and are put back
// from an older copy: then the others say what they remember of it, and a node that has
// forgotten a promise comes back with nothing, too. The power goes also in the middle of
// what is done to the files of a snapshot, while it is taken, received or restored. Keys are
// made and destroyed through the second group, to whose leader each keyring's command goes;
// nodes lag behind in it, take its snapshots, and serve only once they have taken in what
// was agreed on while they were away. What decides is the code of packages cluster
// (Admission, Judge, Promises, MajorityWithout), keygroup, keyring and replica.
//
// One node at a time is wiped, put back or removed, while all others serve, and before a
// copy is put back they have told each other what they saw of the node. That is what a
// cluster needs: a vote that nobody who answers remembers cannot be missed.
//
// # What is checked
//
// At each step: states at one sequence are one (cursor and hash); no replica
// halts; no state goes back; what Raft committed stays, and a term has one leader
// (raftmodel); a writer that opens a round finds its beginning in the state, and one that
// was shown a frame of a higher term writes nothing more; a
// duplicate is told the first record and position; where a writer answers by its state alone,
// that shows all that was acknowledged by then; a read after a write, one at a
// position, a local one, and a linearizable one, also of a node that does not lead, show
// all that they have to. In a cluster: a frame of the log is sealed under keys that their
// group has committed; a node's keyring has the keys of all that its state holds; keyrings
// at one index are one; a node that has taken in the keys has none that was destroyed
// before it started; what was erased is shown by nobody who has come so far. At the end: every
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
// Of runs of a cluster of three, on 2026-11-23: a range that does not wait for its keys
// 122, a snapshot that does not 157, a node that takes part though it has forgotten a
// promise 19, entries that are no part of a promise 22, a destroyed key that stays 10, ended
// keys that are not destroyed 10, a snapshot without the membership 32.
//
// # What is not simulated
//
// The raft library, the NATS server, bolt's file, vectors, transports, a restored backup,
// and the forming of a cluster. That a node was removed, all others hear at once. What a
// node remembers of the others it stores at once, and not once a second. The order of
// goroutines: there is one, but for Pebble's own and those of a replay, which change no
// answer.
package sim
