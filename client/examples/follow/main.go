// Command follow prints what happens in a namespace, from a position on, for as long as it
// runs. A connection that breaks is opened again where it was.
//
//	go run ./client/examples/follow [POSITION]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"mneme/client"
	"mneme/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	mem, err := client.New(os.Getenv("MNEME_ADDR"), client.Options{Token: os.Getenv("MNEME_TOKEN"), Agent: "follower"})
	if err != nil {
		return err
	}
	from := "p0.0.0.0" // the beginning
	if len(os.Args) > 1 {
		from = os.Args[1]
	}
	for event, err := range mem.Events(ctx, cmp.Or(os.Getenv("MNEME_NAMESPACE"), "default"), client.EventsOptions{From: from}) {
		if err != nil {
			return err
		}
		var said memory.Capture
		if event.Data != nil {
			if err := json.Unmarshal(event.Data, &said); err != nil {
				return err
			}
		}
		verb := strings.TrimSuffix(strings.TrimPrefix(event.Type, "io.mneme."), ".v1")
		fmt.Println(event.Position, verb, said.Agent, said.Text)
	}
	return nil
}
