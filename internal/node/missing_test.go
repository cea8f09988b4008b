package node

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"mneme/memory"
)

// Reads said that there is no namespace, writes that it does not exist.
func TestReadsAndWritesOfAMissingNamespaceSayTheSame(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const ns = "/v1/namespaces/nowhere"
	want := memory.NoNamespace("nowhere")
	for _, x := range []struct{ method, path, body string }{
		{"GET", ns, ""},
		{"GET", ns + "/records", ""},
		{"GET", ns + "/audit", ""},
		{"POST", ns + "/search", `{"query":"x"}`},
		{"POST", ns + "/events", `{"text":"x","agent":"ann"}`},
		{"PATCH", ns, `{"settings":{"search.min_score":"0.1"}}`},
		{"DELETE", ns, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), x.method, "http://"+n.HTTPAddr()+x.path, strings.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var p memory.Problem
		if err := json.Unmarshal(body, &p); err != nil {
			t.Errorf("%s %s: %v: %s", x.method, x.path, err, body)
		}
		if resp.StatusCode != http.StatusNotFound || p.Code != want.Code || p.Detail != want.Message || p.Hint != want.Hint {
			t.Errorf("%s %s: %d %s", x.method, x.path, resp.StatusCode, body)
		}
	}
}
