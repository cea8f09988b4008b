// Command memctl is Mneme's command line. What it does is in cmd/memctl/verbs.
//
// Invariant: it links no node. A verb that opens a data directory or a place of backups goes on
// in memnode, which has the same verbs and what they need (decision 0054).
package main

import (
	"os"

	"mneme/cmd/memctl/offline"
	"mneme/cmd/memctl/program"
	"mneme/cmd/memctl/verbs"
)

func main() {
	args := os.Args[1:]
	os.Exit(verbs.Main(args, func() (offline.Work, error) { return nil, program.GoOn(args) }))
}
