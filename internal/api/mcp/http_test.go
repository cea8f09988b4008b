package mcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// post sends one body to /mcp by the revision that the header names; "" names none.
func (w *world) post(revision, query, body string, headers ...string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", "http://"+w.node.HTTPAddr()+"/mcp"+query, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if revision != "" {
		req.Header.Set("Mcp-Protocol-Version", revision)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("%v after %q", err, b)
	}
	return resp.StatusCode, string(b)
}

// TestBatchTookAllMemory: one request of 21 KB, a batch of 200 read_graph, held 4 GB.
func TestBatchTookAllMemory(t *testing.T) {
	w := newWorld(t)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, revision := range []string{"", "2025-03-26", "2025-11-25"} {
		for _, batch := range []string{"[" + ping + "]", " \r\n\t[" + ping + "," + ping + "]", "[]", "["} {
			code, body := w.post(revision, "?namespace=team", batch)
			var got struct {
				ID    any
				Error struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil || code != 400 || got.ID != nil || got.Error.Code != -32600 || !strings.Contains(got.Error.Message, "by itself") {
				t.Errorf("revision %q, %s: %d %s", revision, batch, code, body)
			}
		}
		if code, body := w.post(revision, "?namespace=team", ping); code != 200 || !strings.Contains(body, `"result":{}`) {
			t.Errorf("revision %q, one message: %d %s", revision, code, body)
		}
	}
}

// TestListeningShutMCP: 256 clients that waited for changes of lists, which never come, took all
// calls that may be under way.
func TestListeningShutMCP(t *testing.T) {
	w := newWorld(t)
	const revision = "2026-07-28"
	for _, profile := range []string{"lite", "graph"} {
		code, body := w.post(revision, "?namespace=team&profile="+profile, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{
			"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["memory://knowledge-graph"]},
			"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"Mcp-Method", "subscriptions/listen")
		if code != 200 || !strings.Contains(body, "notifications/subscriptions/acknowledged") || !strings.Contains(body, `"id":1,"result"`) {
			t.Errorf("%s: %d %s", profile, code, body)
		}
		if strings.Contains(body, "Changed\":true") {
			t.Errorf("%s: changes are promised, and none come: %s", profile, body)
		}
	}
	s := w.connect("?namespace=team", nil)
	if caps := s.InitializeResult().Capabilities; caps.Tools == nil || caps.Tools.ListChanged || caps.Prompts == nil || caps.Prompts.ListChanged || caps.Resources == nil || caps.Resources.ListChanged || caps.Completions == nil {
		t.Errorf("%+v", caps)
	}
}
