package eventlog

// What callers may hold open at an embedded or an external server. A subscription
// costs about 2.5 KB, so that all together stay below 700 MB.
const (
	maxCallers      = 2048 // connections of the account PUBLIC
	maxCallerSubs   = 128  // subscriptions of each
	reservedConns   = 64   // connections beyond those, for the node and for who is not admitted yet
	callersOfFiles  = 4    // callers get one of so many of the files that the process may open
	fewestOfCallers = 16
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
