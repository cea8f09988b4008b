// Command team shows two agents that share a namespace: what one has decided the other finds
// at once, and what one keeps to itself the other does not.
//
//	go run ./client/examples/team
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"mneme/client"
	"mneme/memory"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "team:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	namespace := cmp.Or(os.Getenv("MNEME_NAMESPACE"), "default")
	planner, err := agent("planner")
	if err != nil {
		return err
	}
	builder, err := agent("builder")
	if err != nil {
		return err
	}
	decided, err := planner.Capture(ctx, namespace, memory.Capture{Text: "The API is versioned in its path: /v1, /v2.", Kind: memory.KindDecision}, client.CaptureOptions{})
	if err != nil {
		return err
	}
	fmt.Println("planner decided:", decided.Results[0].Status)
	private, err := planner.Capture(ctx, namespace, memory.Capture{Text: "Ask Ann about the API budget.", Scope: memory.ScopeAgent}, client.CaptureOptions{})
	if err != nil {
		return err
	}
	// The position of the last write: the answer includes it, whichever node gives it.
	for _, reader := range []struct {
		name string
		mem  *client.Client
	}{{"builder", builder}, {"planner", planner}} {
		found, err := reader.mem.Search(ctx, namespace, memory.SearchRequest{Query: "how is the API versioned, and who knows its budget", AtLeast: private.Position})
		if err != nil {
			return err
		}
		fmt.Printf("%s finds:\n", reader.name)
		for _, hit := range found.Results {
			fmt.Printf("- %s, from %s: %s\n", hit.Kind, hit.Agent, hit.Text)
		}
	}
	return nil
}

func agent(name string) (*client.Client, error) {
	return client.New(os.Getenv("MNEME_ADDR"), client.Options{Token: os.Getenv("MNEME_TOKEN"), Agent: name})
}
