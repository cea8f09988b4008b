package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/eventlog"
	"mneme/internal/node"
	"mneme/memory"
)

func TestMain(m *testing.M) {
	eventlog.ShortenElections()
	m.Run()
}

// world is a node with one namespace, and a client of its API.
type world struct {
	t    *testing.T
	node *node.Node
	api  *client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	n, err := node.Open(t.Context(), node.Config{DataDir: t.TempDir(), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	api, err := client.New(n.HTTPAddr(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	if _, err := api.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "team"}); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, node: n, api: api}
}

// connect opens a session over HTTP; query is that of the address.
func (w *world) connect(query string, opt *sdk.ClientOptions) *sdk.ClientSession {
	w.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "Test Client", Version: "1"}, opt)
	s, err := c.Connect(w.t.Context(), &sdk.StreamableClientTransport{Endpoint: "http://" + w.node.HTTPAddr() + "/mcp" + query}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool; out takes the structured content unless it is nil.
func call(t *testing.T, s *sdk.ClientSession, name string, in map[string]any, out any) (text string, failed bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range res.Content {
		text += c.(*sdk.TextContent).Text
	}
	if res.IsError || out == nil {
		return text, res.IsError
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatalf("%s: %v in %s", name, err, b)
	}
	return text, false
}

type ided struct {
	ID string `json:"id"`
}

func TestOneAgentEndToEnd(t *testing.T) {
	w := newWorld(t)
	first := w.connect("?namespace=team", nil)
	var kept ided
	if text, failed := call(t, first, "memory_store", map[string]any{"text": "We deploy the billing service on Tuesdays, never on Fridays.", "kind": "decision", "tags": []string{"deploys"}}, &kept); failed {
		t.Fatal(text)
	}
	rec, err := w.api.Get(t.Context(), "team", kept.ID, client.GetOptions{})
	if err != nil || rec.Agent != "test-client" || rec.Kind != memory.KindDecision {
		t.Fatalf("%+v, %v", rec, err)
	}

	second := w.connect("?namespace=team&agent=bob&profile=micro", nil)
	var hits struct {
		Results []struct {
			ID, Text, Agent string
			Score           float64
		}
	}
	text, _ := call(t, second, "memory_search", map[string]any{"query": "when do we deploy billing?"}, &hits)
	if len(hits.Results) != 1 || hits.Results[0].ID != kept.ID || !strings.Contains(text, "> We deploy the billing service on Tuesdays") {
		t.Fatalf("%+v\n%s", hits, text)
	}
	if text, _ := call(t, second, "memory_get", map[string]any{"ids": []string{kept.ID[:8], "zzzzzzzzzz"}}, nil); !strings.Contains(text, "never on Fridays") || !strings.Contains(text, "zzzzzzzzzz: ") {
		t.Error(text)
	}

	third := w.connect("?namespace=team&agent=carol", nil)
	if text, _ := call(t, third, "memory_recall", map[string]any{"query": "favourite colour of the office cat"}, nil); text != "Nothing in memory fits this." {
		t.Errorf("a question that nothing fits got %q", text)
	}
	if text, _ := call(t, third, "memory_recall", map[string]any{"query": "billing service -deploys \"deploys nowhere\""}, nil); !strings.Contains(text, "<relevant-memories>") || !strings.Contains(text, "Tuesdays") {
		t.Error(text)
	}
	if text, failed := call(t, third, "memory_forget", map[string]any{"id": kept.ID}, nil); failed {
		t.Error(text)
	}
	if text, _ := call(t, third, "memory_search", map[string]any{"query": "when do we deploy billing?"}, nil); text != "Nothing in memory fits this." {
		t.Errorf("it was forgotten, and found: %s", text)
	}
}
