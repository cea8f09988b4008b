package mneme_test

import (
	"testing"

	"mneme"
	"mneme/client"
	"mneme/memory"
)

// TestEmbeddedNode does what the package's comment shows.
func TestEmbeddedNode(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	ctx := t.Context()
	n, err := mneme.Open(ctx, mneme.Options{DataDir: t.TempDir(), Token: token, Namespaces: []string{"team"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(n.URL(), client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if n.NATSURL() == "" {
		t.Error("no address for NATS")
	}
	if _, err := c.Capture(ctx, "team", memory.Capture{Agent: "a", Text: "deploys happen on Tuesdays"}, client.CaptureOptions{}); err != nil {
		t.Error(err)
	}
	found, err := c.Search(ctx, "team", memory.SearchRequest{Query: "when do we deploy"})
	if err != nil || len(found.Results) != 1 {
		t.Errorf("%+v, %v", found.Results, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
	<-n.Done()
}
