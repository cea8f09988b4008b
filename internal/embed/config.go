package embed

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config says which model to use and how. The zero value is the built-in one;
// the zero value of each field is the provider's default.
type Config struct {
	Provider string // ProviderAuto, ProviderBuiltin, …
	Model    string
	// BaseURL is the address up to and including the version, e.g.
	// "http://127.0.0.1:8080/v1" for an OpenAI-compatible server,
	// "http://127.0.0.1:11434" for Ollama.
	BaseURL string
	APIKey  Secret
	// Dir is the directory of ProviderLocal's model. It is the node's own choice:
	// Model, which a client may send, only checks the model's name.
	Dir string

	// Dimensions asks the server for vectors of that size (models trained for
	// it can shorten). 0 sends nothing and takes the model's own size.
	Dimensions int
	// Prefixes replace those of KnownPrefixes; empty ones switch them off.
	Prefixes *Prefixes
	// Encoding of numbers in the answer, "float" (default) or "base64"; OpenAI
	// protocol only. Some compatible servers refuse base64.
	Encoding string

	Timeout     time.Duration // of one attempt; default 30 s, Ollama 120 s (it loads the model first)
	MaxRetries  int           // attempts after the first; default 4, -1 none
	MaxWait     time.Duration // longest pause between attempts; a server that asks for more gets none; default 30 s
	Concurrency int           // requests in flight; default 4, Ollama 1

	MaxItems  int // texts in a request
	MaxTokens int // estimated tokens in a request
	MaxBytes  int // bytes of text in a request

	// space is set by ForSpace: what is opened has to be exactly this.
	space Space
}

// Bounds of what Validate accepts.
const (
	maxDimensions  = 16384
	maxConcurrency = 64
	maxRetries     = 20
	maxModelName   = 256
	maxPrefix      = 1024
)

// ForSpace returns the configuration that reopens an existing space, e.g. that
// of a namespace which chose its embedder earlier. Address, key and limits are
// kept if they are for the same provider and dropped otherwise. Open then fails
// rather than giving another space, and does not ask the server for its size.
func (c Config) ForSpace(s Space) Config {
	if canonicalProvider(c.Provider) != s.Provider {
		c = Config{Dir: c.Dir}
	}
	if c.Dimensions != s.Dimensions {
		c.Dimensions = 0
		if native := nativeDimensions(s.Model); native != 0 && native != s.Dimensions {
			c.Dimensions = s.Dimensions // the model's own size would be another one
		}
	}
	c.Provider, c.Model = s.Provider, s.Model
	c.Prefixes = &Prefixes{Document: s.DocumentPrefix, Query: s.QueryPrefix}
	c.space = s
	return c
}

// Lookup reads one variable of an environment; os.LookupEnv has this shape.
type Lookup func(name string) (value string, ok bool)

// WithEnvironment fills what is empty from the usual variables of the configured
// provider: OPENAI_API_KEY, OPENAI_BASE_URL, GEMINI_API_KEY, OLLAMA_HOST. It
// never changes the provider.
func (c Config) WithEnvironment(lookup Lookup) Config {
	get := func(name string) string {
		value, _ := lookup(name)
		return strings.TrimSpace(value)
	}
	switch canonicalProvider(c.Provider) {
	case ProviderOpenAI:
		if c.BaseURL == "" {
			c.BaseURL = get("OPENAI_BASE_URL")
		}
		if c.APIKey.IsZero() {
			c.APIKey = NewSecret(get("OPENAI_API_KEY"))
		}
	case ProviderGemini:
		if c.APIKey.IsZero() {
			c.APIKey = NewSecret(get("GEMINI_API_KEY"))
		}
	case ProviderOllama:
		if c.BaseURL == "" {
			c.BaseURL = OllamaURL(get("OLLAMA_HOST"))
		}
	}
	return c
}

// Validate reports the first thing that is wrong, as *Error of kind ErrConfig.
func (c Config) Validate() error {
	provider := canonicalProvider(c.Provider)
	d, ok := providerDefaults(provider)
	if !ok {
		return configError(provider, "unknown provider; one of auto, builtin, local, ollama, openai, gemini, none")
	}
	if provider == ProviderNone {
		return nil
	}
	if err := c.validateNumbers(provider); err != nil {
		return err
	}
	if IsBuiltin(provider) {
		return c.validateBuiltin(provider)
	}
	if len(c.Model) > maxModelName || strings.ContainsFunc(c.Model, isControl) {
		return configError(provider, "model name is too long or has control characters")
	}
	if p := c.Prefixes; p != nil && (len(p.Document) > maxPrefix || len(p.Query) > maxPrefix) {
		return configError(provider, fmt.Sprintf("prefix is longer than %d bytes", maxPrefix))
	}
	if provider == ProviderLocal {
		return c.validateDirectory()
	}
	switch c.Encoding {
	case "", "float":
	case "base64":
		if provider != ProviderOpenAI {
			return configError(provider, "encoding base64 exists only in the OpenAI protocol")
		}
	default:
		return configError(provider, "encoding is neither float nor base64")
	}
	if strings.ContainsFunc(c.APIKey.Reveal(), isControl) {
		return configError(provider, "API key has control characters")
	}
	if c.APIKey.IsZero() && d.needsKey && (c.BaseURL == "" || strings.TrimRight(c.BaseURL, "/") == d.baseURL) {
		return &Error{Kind: ErrConfig, Provider: provider, Endpoint: d.baseURL, Index: -1, Detail: "no API key", Hint: "set " + d.keyName}
	}
	return validateBaseURL(provider, c.BaseURL)
}

func (c Config) validateNumbers(provider string) error {
	for _, n := range []struct {
		name          string
		value, lo, hi int
	}{
		{"dimensions", c.Dimensions, 0, maxDimensions},
		{"max retries", c.MaxRetries, -1, maxRetries},
		{"concurrency", c.Concurrency, 0, maxConcurrency},
		{"max items", c.MaxItems, 0, 1 << 20},
		{"max tokens", c.MaxTokens, 0, 1 << 30},
		{"max bytes", c.MaxBytes, 0, 1 << 30},
	} {
		if n.value < n.lo || n.value > n.hi {
			return configError(provider, fmt.Sprintf("%s is %d, not in %d..%d", n.name, n.value, n.lo, n.hi))
		}
	}
	if c.Timeout < 0 || c.MaxWait < 0 {
		return configError(provider, "a duration is negative")
	}
	return nil
}

// validateBuiltin refuses settings that the built-in embedder would ignore.
func (c Config) validateBuiltin(provider string) error {
	model, ok := builtinByName(c.Model)
	switch {
	case !ok:
		var names []string
		for _, m := range builtinModels() {
			names = append(names, m.Space.Model)
		}
		return configError(provider, fmt.Sprintf("the built-in models are %s, not %q", strings.Join(names, " and "), c.Model))
	case c.Dimensions != 0 && c.Dimensions != model.Space.Dimensions:
		return configError(provider, fmt.Sprintf("vectors of %s have %d dimensions, not %d", model.Space.Model, model.Space.Dimensions, c.Dimensions))
	case c.Prefixes != nil && *c.Prefixes != Prefixes{}:
		return configError(provider, "the built-in model takes no prefixes")
	}
	return nil
}

func validateBaseURL(provider, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		// The parser's own words quote the address, which may hold a password.
		return configError(provider, "base URL is not an http or https address")
	case u.User != nil:
		return configError(provider, "base URL holds credentials; they belong in the API key")
	case u.RawQuery != "" || u.Fragment != "":
		return configError(provider, "base URL has a query or fragment")
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// OllamaURL turns a value of OLLAMA_HOST into a base URL by Ollama's own rules:
// scheme and port may be missing, and an address that means "listen everywhere"
// is reached on loopback. Empty gives the default address.
func OllamaURL(host string) string {
	const defaultPort = "11434"
	host = strings.Trim(strings.TrimSpace(host), `"'`)
	scheme, rest, found := strings.Cut(host, "://")
	port := defaultPort
	switch {
	case !found:
		scheme, rest = "http", host
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	}
	rest, path, _ := strings.Cut(rest, "/")
	name, given, err := net.SplitHostPort(rest)
	if err != nil {
		name = strings.Trim(rest, "[]")
	} else if given != "" {
		port = given
	}
	if name == "" {
		name = "127.0.0.1"
	} else if ip, err := netip.ParseAddr(name); err == nil && ip.IsUnspecified() {
		if name = "127.0.0.1"; ip.Is6() {
			name = "::1"
		}
	}
	return strings.TrimRight(scheme+"://"+net.JoinHostPort(name, port)+"/"+path, "/")
}
