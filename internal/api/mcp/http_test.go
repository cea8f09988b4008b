package mcp_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/api/mcp"
	"mneme/memory"
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

// TestRefusalsWerePlainText: what was no message, and a method that nobody knows, was answered in
// plain text with a status, on which some clients wait for their answer for ever.
func TestRefusalsWerePlainText(t *testing.T) {
	w := newWorld(t)
	const parse, invalid, method, params = -32700, -32600, -32601, -32602
	for _, c := range []struct {
		body     string
		id       any
		status   int
		code     int
		accept   string
		revision string
	}{
		{body: "", status: 400, code: parse},
		{body: "{", status: 400, code: parse},
		{body: pingLine + pingLine, status: 400, code: parse},
		{body: "null", status: 400, code: invalid},
		{body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"memory_store\",\"arguments\":{\"text\":\"a\xffb\"}}}", status: 400, code: parse},
		{body: `{"jsonrpc":"1.0","id":7,"method":"ping"}`, id: 7.0, status: 400, code: invalid},
		{body: `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, id: 1.5, status: 400, code: invalid},
		{body: `{"jsonrpc":"2.0","id":null,"method":"ping"}`, status: 400, code: invalid},
		{body: `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, id: 1.0, status: 400, code: invalid},
		{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`, id: 1.0, status: 400, code: params},
		{body: `{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, id: 1.0, status: 400, code: invalid},
		{body: `{"jsonrpc":"2.0","method":"tools/list"}`, status: 400, code: invalid},
		{body: `{"jsonrpc":"2.0","id":"a","method":"no/such"}`, id: "a", status: 200, code: method},
		{body: `{"jsonrpc":"2.0","id":"a","method":"no/such"}`, id: "a", status: 200, code: method, revision: "2025-06-18"},
		{body: `{"jsonrpc":"2.0","method":"notifications/new"}`, status: 202},
		{body: pingLine, id: "next", status: 400, code: invalid, accept: "application/json"},
		{body: pingLine, id: "next", status: 200},
	} {
		accept := cmp.Or(c.accept, "application/json, text/event-stream")
		status, body := w.post(c.revision, "?namespace=team", c.body, "Accept", accept)
		var got response
		_, data, event := strings.Cut(body, "data: ")
		if !event {
			data = body
		}
		if err := json.Unmarshal([]byte(data), &got); err != nil && status != 202 {
			t.Errorf("%s: %v in %d %s", c.body, err, status, body)
		}
		if status != c.status || got.ID != c.id || (got.Error != nil) != (c.code != 0) || got.Error != nil && got.Error.Code != c.code || c.status == 202 && body != "" {
			t.Errorf("%s: %d %s, want %d, and the code %d for %v", c.body, status, body, c.status, c.code, c.id)
		}
	}
	if status, body := w.post("", "?profile=huge", pingLine); status != 400 || !json.Valid([]byte(body)) || !strings.Contains(body, "micro, lite") {
		t.Errorf("another profile: %d %s", status, body)
	}
	if l, err := w.api.List(t.Context(), "team", client.ListOptions{}); err != nil || len(l.Records) != 0 {
		t.Errorf("%d memories were made of what is no text, %v", len(l.Records), err)
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

// TestProfilesNameToolsThatTheyLack: a client of the profile micro was sent to memory_timeline and
// memory_forget, and was not told who has the tool that it asked for.
func TestProfilesNameToolsThatTheyLack(t *testing.T) {
	w := newWorld(t)
	toolNames := regexp.MustCompile(`\bmemory_[a-z]+`)
	for _, profile := range []string{"micro", "lite", "full"} {
		s := w.connect("?namespace=team&profile="+profile, nil)
		list, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		said := s.InitializeResult().Instructions
		offered := map[string]bool{}
		for _, tool := range list.Tools {
			offered[tool.Name] = true
			said += tool.Description
		}
		prompt, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "remember"})
		if err != nil {
			t.Fatal(err)
		}
		said += prompt.Messages[0].Content.(*sdk.TextContent).Text
		if text, failed := call(t, s, "memory_get", map[string]any{"ids": []string{"zzzzzz"}}, nil); failed {
			said += text
		}
		for _, name := range toolNames.FindAllString(said, -1) {
			if !offered[name] {
				t.Errorf("the profile %s names %s, which it does not have", profile, name)
			}
		}
		if !offered["memory_search"] || !strings.Contains(said, "memory_search") {
			t.Errorf("%s: %v", profile, offered)
		}
	}
	for _, c := range []struct{ profile, tool, has string }{
		{"lite", "read_graph", "full or graph"}, {"micro", "memory_forget", "lite or full"}, {"graph", "memory_search", "micro or lite or full"}, {"micro", "memory_revise", "the profile full ("},
	} {
		_, err := w.connect("?namespace=team&profile="+c.profile, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: c.tool, Arguments: map[string]any{}})
		if err == nil || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%s in the profile %s: %v", c.tool, c.profile, err)
		}
	}
	if _, err := w.connect("?namespace=team", nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "nonsense"}); err == nil || strings.Contains(err.Error(), "profile") {
		t.Errorf("a tool that nobody has: %v", err)
	}
}

// TestStructuredContentHidText: what the quoted text left out stood in what some hosts show a model
// instead of it.
func TestStructuredContentHidText(t *testing.T) {
	w := newWorld(t)
	const text, seen = "The staging database\u202e is called heron\U000e0061\U000e0100\u3164.", "The staging database is called heron."
	s := w.connect("?namespace=team&profile=full", nil)
	var kept ided
	if text, failed := call(t, s, "memory_store", map[string]any{"text": text, "tags": []string{"a\u202eb"}}, &kept); failed {
		t.Fatal(text)
	}
	for tool, in := range map[string]map[string]any{
		"memory_get": {"ids": []string{kept.ID}}, "memory_search": {"query": "staging database heron"}, "memory_list": {}, "memory_timeline": {"id": kept.ID}, "memory_recall": {"query": "staging database heron"},
	} {
		var out any
		shown, failed := call(t, s, tool, in, &out)
		b, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		for where, got := range map[string]string{"the text": shown, "the structured content": string(b)} {
			if failed || !strings.Contains(got, seen) || strings.ContainsAny(got, "\u202e\U000e0061\U000e0100\u3164") {
				t.Errorf("%s, %s: %+q", tool, where, got)
			}
		}
	}
	if rec, err := w.api.Get(t.Context(), "team", kept.ID, client.GetOptions{}); err != nil || rec.Text != text {
		t.Errorf("the memory itself is %+q, %v", rec.Text, err)
	}
	if text, failed := call(t, s, "create_entities", map[string]any{"entities": []any{memory.GraphEntity{Name: "e\u202e\U000e0061", Type: "t", Observations: []string{}}}}, nil); failed {
		t.Fatal(text)
	}
	var g struct{ Entities []memory.GraphEntity }
	shown, _ := call(t, s, "read_graph", nil, &g)
	if !strings.Contains(shown, `"e\u202e\udb40\udc61"`) || len(g.Entities) != 1 || g.Entities[0].Name != "e\u202e\U000e0061" || json.Unmarshal([]byte(shown), &g) != nil || g.Entities[0].Name != "e\u202e\U000e0061" {
		t.Errorf("%+q, %+v", shown, g)
	}
}

// TestEachCallWasLogged: three lines at INFO told of the connection that a call is to the SDK.
func TestEachCallWasLogged(t *testing.T) {
	var log bytes.Buffer // the handler writes one line at a time
	h, err := mcp.NewHandler(func(http.Header) (mcp.Caller, error) { return mcp.Caller{}, errors.New("no node") }, "1", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	if rec.Code != 200 || log.Len() > 0 {
		t.Errorf("%d, and the log says %s", rec.Code, log.String())
	}
}
