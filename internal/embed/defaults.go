package embed

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// defaults of one provider.
type defaults struct {
	baseURL  string
	model    string
	keyName  string // of the variable that usually holds the key
	needsKey bool   // at the default address
	timeout  time.Duration
	limits   limits // at the default address
	lanes    int    // requests in flight
}

const (
	openAIURL = "https://api.openai.com/v1"
	geminiURL = "https://generativelanguage.googleapis.com/v1beta"

	defaultRetries = 4
	defaultMaxWait = 30 * time.Second
)

// providerDefaults returns the defaults of a canonical provider name; false if
// there is no such provider.
func providerDefaults(provider string) (defaults, bool) {
	switch provider {
	case ProviderBuiltin, ProviderLocal, ProviderNone:
		return defaults{}, true
	case ProviderOllama:
		return defaults{
			baseURL: OllamaURL(""), model: "embeddinggemma", timeout: 120 * time.Second,
			limits: limits{items: 64, tokens: 32_768, bytes: 1 << 20}, lanes: 1,
		}, true
	case ProviderOpenAI:
		// 2048 texts and 300,000 tokens are allowed; tokens are estimated here,
		// so that a margin is left, and smaller requests cost less to repeat.
		return defaults{
			baseURL: openAIURL, model: "text-embedding-3-small", keyName: "OPENAI_API_KEY", needsKey: true, timeout: 30 * time.Second,
			limits: limits{items: 512, tokens: 200_000, bytes: 2 << 20}, lanes: 4,
		}, true
	case ProviderGemini:
		return defaults{
			baseURL: geminiURL, model: "gemini-embedding-001", keyName: "GEMINI_API_KEY", needsKey: true, timeout: 30 * time.Second,
			limits: limits{items: 100, tokens: 100_000, bytes: 2 << 20}, lanes: 4,
		}, true
	}
	return defaults{}, false
}

// compatibleLimits are for OpenAI-compatible servers that anybody may run: 32
// texts is the smallest default among them (text-embeddings-inference).
func compatibleLimits() limits { return limits{items: 32, tokens: 16_384, bytes: 1 << 20} }

// resolve returns the configuration with every default filled in. It expects a
// valid configuration of a remote provider.
func (c Config) resolve() Config {
	c.Provider = canonicalProvider(c.Provider)
	d, _ := providerDefaults(c.Provider)
	l := d.limits
	if c.BaseURL = strings.TrimRight(c.BaseURL, "/"); c.BaseURL == "" {
		c.BaseURL = d.baseURL
	}
	if c.Provider == ProviderOpenAI && c.BaseURL != d.baseURL {
		l = compatibleLimits()
	}
	setIfZero(&c.Model, d.model)
	setIfZero(&c.Timeout, d.timeout)
	setIfZero(&c.MaxWait, defaultMaxWait)
	setIfZero(&c.Concurrency, d.lanes)
	setIfZero(&c.MaxItems, l.items)
	setIfZero(&c.MaxTokens, l.tokens)
	setIfZero(&c.MaxBytes, l.bytes)
	setIfZero(&c.Encoding, "float")
	switch c.MaxRetries {
	case 0:
		c.MaxRetries = defaultRetries
	case -1:
		c.MaxRetries = 0
	}
	if c.Prefixes == nil {
		known, _ := KnownPrefixes(c.Model)
		c.Prefixes = &known
	}
	return c
}

// limits of a resolved configuration.
func (c Config) limits() limits {
	return limits{items: c.MaxItems, tokens: c.MaxTokens, bytes: c.MaxBytes}
}

func setIfZero[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// ownClient returns a client for one embedder. It uses no proxy, since finding
// one means reading the environment; who needs one passes a client.
func ownClient(lanes int) *http.Client {
	t := &http.Transport{
		MaxIdleConns:          lanes,
		MaxIdleConnsPerHost:   lanes,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
	}
	return &http.Client{Transport: t}
}

// inClear reports whether a key would travel unencrypted over a network.
func inClear(c Config) bool {
	u, err := url.Parse(c.BaseURL)
	return err == nil && u.Scheme == "http" && !c.APIKey.IsZero() && !isLoopback(u.Hostname())
}
