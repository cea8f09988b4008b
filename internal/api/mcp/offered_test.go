package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
	"mneme/internal/api/mcp"
	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/tools.json anew")

// TestToolsAreAsWritten: what a model is told of the tools is in testdata/tools.json, with the schemas of
// what they take and answer, so that whoever changes it sees what clients will see.
func TestToolsAreAsWritten(t *testing.T) {
	w := newWorld(t)
	told := map[string][]*sdk.Tool{}
	for _, profile := range []string{"micro", "full"} {
		list, err := w.connect("?namespace=team&profile="+profile, nil).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		told[profile] = slices.DeleteFunc(list.Tools, func(tool *sdk.Tool) bool { return !strings.HasPrefix(tool.Name, "memory_") }) // the others have a file of their own
	}
	got, err := json.MarshalIndent(told, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const path = "testdata/tools.json"
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gots, wants := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(gots), len(wants)) {
		if !bytes.Equal(gots[i], wants[i]) {
			t.Fatalf("line %d of %s is\n%s\nand was\n%s\nIf that is meant: go test ./internal/api/mcp -run %s -rewrite", i+1, path, gots[i], wants[i], t.Name())
		}
	}
	if len(gots) != len(wants) {
		t.Fatalf("%d lines, not the %d of %s", len(gots), len(wants), path)
	}
}

// Of more ids than a completion may have, it has the newest, and says that there are more.
func TestACompletionSaysThatThereAreMore(t *testing.T) {
	w := newWorld(t)
	items := make([]memory.Capture, 101)
	for i := range items {
		items[i] = memory.Capture{Agent: "ann", Text: fmt.Sprint("note ", i)}
	}
	kept, err := w.api.CaptureBatch(t.Context(), "team", items, client.CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	newest := kept.Results[100].RecordID
	s := w.connect("?namespace=team", nil)
	for prefix, c := range map[string]struct {
		values int
		more   bool
	}{"": {100, true}, newest: {1, false}} {
		res, err := s.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/resource", URI: "mneme://memories/{id}"}, Argument: sdk.CompleteParamsArgument{Name: "id", Value: prefix}})
		if err != nil || len(res.Completion.Values) != c.values || res.Completion.HasMore != c.more || !slices.Contains(res.Completion.Values, newest) {
			t.Errorf("%q: %+v, %v", prefix, res, err)
		}
	}
}

// What names no memory is a resource that is not there, and no argument that is wrong.
func TestAResourceThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	kept, _ := storing(t, w.connect("?namespace=team", nil), map[string]any{"text": "The lighthouse shines red."})
	if _, err := w.api.Forget(t.Context(), "team", kept.ID, client.WriteOptions{As: "ann"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{kept.ID, "01M8BA5VCEPF42W55CG2R4PF3W", "no id"} {
		_, body := w.post("2025-11-25", "?namespace=team", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"mneme://memories/`+id+`"}}`)
		if !strings.Contains(body, `"message":"Resource not found"`) {
			t.Errorf("%s: %s", id, body)
		}
	}
}

// silent answers nothing until whoever asks gives up.
type silent struct{ asked, gaveUp chan struct{} }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	close(s.asked)
	<-r.Context().Done()
	close(s.gaveUp)
	return nil, r.Context().Err()
}

// A client of the newest revision takes a call back by going away: what was asked for it ends then. Of
// those before, that is no cancellation.
func TestACallEndsWithItsConnection(t *testing.T) {
	quiet := silent{make(chan struct{}), make(chan struct{})}
	api, err := client.New("http://127.0.0.1:1", client.Options{HTTPClient: &http.Client{Transport: quiet}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	h, err := mcp.NewHandler(func(http.Header) (mcp.Caller, error) { return mcp.Caller{Client: api, Namespace: "team"}, nil }, "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"x"},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	for name, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "memory_search"} {
		r.Header.Set(name, v)
	}
	served := make(chan struct{})
	go func() { defer close(served); h.ServeHTTP(httptest.NewRecorder(), r) }()
	await := func(what string, c chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("not within a minute: ", what)
		}
	}
	await("the node is asked", quiet.asked)
	leave()
	await("the question ends", quiet.gaveUp)
	await("the call ends", served)
}

// What stands in front of a node on its own machine hands on the name by which clients know it: the API
// checks names, and takes those that it was told.
func TestAProxyOfThisMachineHandsOnItsName(t *testing.T) {
	h, err := mcp.NewHandler(func(http.Header) (mcp.Caller, error) { return mcp.Caller{}, nil }, "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "mneme.example"
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s", resp.Status)
	}
}
