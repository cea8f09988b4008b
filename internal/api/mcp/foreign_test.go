package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/client"
)

// proxied answers the requests of a method below a path as a proxy does.
type proxied struct {
	method, path string
	status       int
	asked        int
}

func (p *proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != p.method || !strings.Contains(r.URL.Path, p.path) {
		return http.DefaultTransport.RoundTrip(r)
	}
	p.asked++
	return &http.Response{StatusCode: p.status, Status: http.StatusText(p.status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>")), Request: r}, nil
}

// behind is a session whose node is reached through a proxy.
func (w *world) behind(p *proxied) *sdk.ClientSession {
	w.t.Helper()
	api, err := client.New(w.node.HTTPAddr(), client.Options{HTTPClient: &http.Client{Transport: p}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = api.Close() })
	return w.beside(api)
}

// TestAProxysAnswerPassedForAMemnodes: its 404 said that an id names no memory, its 410 had a store try one id after
// the other for 20 s, and its 409 passed for others that change the memory.
func TestAProxysAnswerPassedForAMemnodes(t *testing.T) {
	w := newWorld(t)
	const said = "Deploys happen on Tuesdays."
	first, _ := storing(t, w.connect("?namespace=team&agent=ann", nil), map[string]any{"text": said})
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusGone} {
		p := &proxied{method: http.MethodGet, path: "/records/", status: status}
		s := w.behind(p)
		text, failed := call(t, s, "memory_get", map[string]any{"ids": []string{first.ID}}, nil)
		if !failed || !strings.HasPrefix(text, "unavailable: ") || !strings.Contains(text, "is that a memnode?") || strings.Contains(text, "memory_search") {
			t.Errorf("get, %d: %s", status, text)
		}
		if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "mneme://memories/" + first.ID}); err == nil || !strings.Contains(err.Error(), "unavailable: ") {
			t.Errorf("resource, %d: %v", status, err)
		}
		if text, failed := call(t, s, "memory_store", map[string]any{"text": said}, nil); !failed || !strings.HasPrefix(text, "unavailable: ") {
			t.Errorf("store of what is there, %d: %s", status, text)
		}
		p = &proxied{method: http.MethodPost, path: "/events", status: status}
		if text, failed := call(t, w.behind(p), "memory_store", map[string]any{"text": "Nobody deploys on Fridays."}, nil); !failed || !strings.HasPrefix(text, "unavailable: ") || p.asked != 1 {
			t.Errorf("store, %d, asked %d times: %s", status, p.asked, text)
		}
		p = &proxied{method: http.MethodPatch, path: "/records/", status: status}
		if text, failed := call(t, w.behind(p), "memory_store", map[string]any{"text": said}, nil); !failed || !strings.HasPrefix(text, "unavailable: ") || p.asked != 1 {
			t.Errorf("count, %d, asked %d times: %s", status, p.asked, text)
		}
	}
	if there := w.all(said); len(there) != 1 {
		t.Errorf("it is there %d times", len(there))
	}
}
