package eventlog

import "time"

// What callers may hold open at an embedded or an external server. A subscription
// costs about 2.5 KB, so that all together stay below 200 MB.
const (
	maxCallers      = 2048 // connections of the account PUBLIC
	maxCallerSubs   = 32   // subscriptions of each
	reservedConns   = 64   // connections beyond those, for the node and for who is not admitted yet
	callersOfFiles  = 4    // callers get one of so many of the files that the process may open
	fewestOfCallers = 16
)

// What callers may make the server keep.
const (
	// maxControlLine is the longest line of the protocol in bytes. A publish to
	// mem.in takes 164 beside its reply subject, which is about 50 in the common
	// clients and is kept until the message is answered.
	maxControlLine = 1024
	// responseThreshold is how long the server keeps the way back for a message
	// that nobody answers, because it was dropped: the node answers what it took
	// within 30 s.
	responseThreshold = 35 * time.Second
	// discoveryThreshold is the same for questions of discovery, of which each node may
	// answer one: the server keeps the way back for all of this time, whether it was
	// used or not, at about 1 KB a question.
	discoveryThreshold = 500 * time.Millisecond
	// Whoever sends nothing for pingInterval is asked, and is cut off after maxPings
	// unanswered questions: until then the server keeps what came of its message.
	pingInterval = 20 * time.Second
	maxPings     = 2
)

// callersWithin is how many callers there may be when the process may open so many
// files, 0 if that is not known. The other files are for HTTP, the admin socket,
// the log and the state.
func callersWithin(files uint64) int {
	if files == 0 || files/callersOfFiles > maxCallers {
		return maxCallers
	}
	return max(fewestOfCallers, int(files/callersOfFiles))
}
