package embed

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// detectTimeout bounds the look for one server: it is on this machine or absent.
const detectTimeout = 500 * time.Millisecond

// Suggestion is a provider that was found on this machine and could be used.
type Suggestion struct {
	Provider string
	BaseURL  string
	Models   []string // that look like embedding models, sorted; may be empty
}

// Command returns the command line that switches to the suggestion.
func (s Suggestion) Command() string {
	model := "MODEL"
	if len(s.Models) > 0 {
		model = s.Models[0]
	} else if d, ok := providerDefaults(s.Provider); ok {
		model = d.model
	}
	return "memctl embedder switch --provider " + s.Provider + " --model " + model
}

// Detect looks for servers on loopback, so that a person can be told of them. It
// sends no text, changes nothing, and returns after about half a second at most.
// ollamaHost is a value of OLLAMA_HOST or empty; an address that is not loopback
// is not contacted.
func Detect(ctx context.Context, ollamaHost string, opt Options) []Suggestion {
	base := OllamaURL(ollamaHost)
	u, err := url.Parse(base)
	if err != nil || !isLoopback(u.Hostname()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	client := opt.HTTPClient
	if client == nil {
		client = ownClient(1)
		defer client.CloseIdleConnections()
	}
	models, ok := ollamaModels(ctx, client, base)
	if !ok {
		return nil
	}
	return []Suggestion{{Provider: ProviderOllama, BaseURL: base, Models: models}}
}

// ollamaModels lists the embedding models of an Ollama server; false if there is none.
func ollamaModels(ctx context.Context, client *http.Client, base string) ([]string, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tags", nil)
	if err != nil {
		return nil, false
	}
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := copied.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	var tags struct {
		Models []struct {
			Name    string `json:"name"`
			Details struct {
				Family string `json:"family"`
			} `json:"details"`
		} `json:"models"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&tags) != nil || tags.Models == nil {
		return nil, false
	}
	var names []string
	for _, m := range tags.Models {
		if _, known := KnownPrefixes(m.Name); known || strings.Contains(m.Name, "embed") || strings.HasSuffix(m.Details.Family, "bert") {
			names = append(names, strings.TrimSuffix(m.Name, ":latest"))
		}
	}
	slices.Sort(names)
	return names, true
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
