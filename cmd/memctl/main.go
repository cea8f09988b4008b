// Command memctl is Mneme's command line: one verb a file, parse → call →
// print.
//
// Invariants: a verb touches the world through the system it was given, so that
// tests run it in-process; answers go to standard output, everything else to
// standard error; with --json each is one JSON document; text out of memories
// never reaches a terminal with control characters; exit codes are those of
// memory.Code.
//
// Not its job: deciding anything about memories. It has no state apart from
// what `memctl use` remembers.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	log.SetOutput(io.Discard) // net/http prints what a server says that is none
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, osSystem(newOfflineNode(os.Getenv)), os.Args[1:])
	stop()
	os.Exit(code)
}
