// Package verbs is memctl: one verb a file, parse → call → print. Both programs link it,
// memnode for those that open data directories.
//
// Invariants: a verb touches the world through the system it was given, so that
// tests run it in-process; answers go to standard output, everything else to
// standard error; with --json each is one JSON document; text out of memories
// never reaches a terminal with control characters; exit codes are those of
// memory.Code.
//
// Not its job: deciding anything about memories. It has no state apart from
// what `memctl use` remembers.
package verbs

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

// Main is memctl as a process: it returns the exit code. work opens data directories, or has
// another program go on.
func Main(args []string, work func() (offline.Work, error)) int {
	log.SetOutput(io.Discard) // net/http prints what a server says that is none
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	return run(ctx, osSystem(func() (offline.Work, error) {
		if ctx.Err() != nil { // another program would not hear of it
			return nil, memory.Errorf(memory.CodeTimeout, "interrupted").WithCause(ctx.Err())
		}
		return work()
	}), args)
}
