package embed

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
)

func TestDetect(t *testing.T) {
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/tags" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	for _, c := range []struct {
		status  int
		body    string
		models  []string // nil with found: none
		found   bool
		command string
	}{
		{200, `{"models":[{"name":"qwen3:8b","details":{"family":"qwen3"}},{"name":"nomic-embed-text:latest"},{"name":"all-minilm:22m","details":{"family":"bert"}},{"name":"bge-m3:567m"}]}`,
			[]string{"all-minilm:22m", "bge-m3:567m", "nomic-embed-text"}, true, "memctl embedder switch --provider ollama --model all-minilm:22m"},
		{200, `{"models":[]}`, nil, true, "memctl embedder switch --provider ollama --model embeddinggemma"},
		{200, `{"other":1}`, nil, false, ""},
		{200, `<html>`, nil, false, ""},
		{500, `{"models":[]}`, nil, false, ""},
		{302, ``, nil, false, ""},
	} {
		status, body = c.status, c.body
		got := Detect(t.Context(), server.URL, Options{})
		if !c.found {
			if got != nil {
				t.Errorf("%s: %v", c.body, got)
			}
			continue
		}
		want := []Suggestion{{Provider: ProviderOllama, BaseURL: server.URL, Models: c.models}}
		if !reflect.DeepEqual(got, want) || got[0].Command() != c.command {
			t.Errorf("got %v %s", got, got[0].Command())
		}
	}
	if got := (Suggestion{}).Command(); got == "" {
		t.Error("no command")
	}
}

type refusing struct{ asked int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked++
	return nil, errors.New("refused")
}

func TestDetectStaysOnThisMachine(t *testing.T) {
	for host, asked := range map[string]int{"": 1, "localhost:5": 1, "[::1]": 1, "10.0.0.1": 0, "example.com": 0, "https://ollama.com": 0, "http://%zz": 0} {
		transport := &refusing{}
		if got := Detect(t.Context(), host, Options{HTTPClient: &http.Client{Transport: transport}}); got != nil || transport.asked != asked {
			t.Errorf("%q: %v, asked %d times", host, got, transport.asked)
		}
	}
}
