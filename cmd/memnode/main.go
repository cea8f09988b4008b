// Command memnode runs one node of Mneme: flags, environment and file in, a
// node out, and for every way that it can end one clear line and an exit code.
//
// Invariants: a flag wins over the environment, which wins over the file, which
// wins over the default; an unknown name in any of them ends the program before
// anything is opened; config.yaml is never written; secrets are never printed;
// the first line on standard output means that the node answers.
//
// It is memctl, too, where it is asked to be: memctl itself has no node in it, and has memnode go
// on with what opens data directories and backups.
//
// Not its job: anything that a node does (internal/node), or a verb (cmd/memctl/verbs).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mneme/cmd/memctl/verbs"
	"mneme/internal/monitor"
)

func main() {
	if args, asked := memctl(os.Args); asked {
		os.Exit(verbs.Main(args, openDirectly))
	}
	_ = monitor.Yield() // without it requests take longer, and nothing else
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // never comes on Windows
	os.Exit(run(context.Background(), osSystem(signals, hangups), os.Args[1:]))
}
