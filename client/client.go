package client

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"mneme/memory"
)

// DefaultAddr is where a memnode listens unless it was told otherwise.
const DefaultAddr = "http://127.0.0.1:8787"

// Options configures a Client. The zero value talks to a node without auth.
type Options struct {
	// Token is sent as a bearer token if it is not empty.
	Token string
	// Agent is who acts when a call does not say: the reader of reads, the
	// author of captures without an agent, the actor of revisions.
	Agent string
	// UserAgent names the program; empty means "mneme-client".
	UserAgent string
	// HTTPClient sends the requests; redirects are not followed. It must not set a
	// Timeout, which would also end event streams. Nil means a client of its own.
	HTTPClient *http.Client
	// NewID makes idempotency keys: visible ASCII, at most 100 characters,
	// never the same twice. Nil means 128 random bits.
	NewID func() string
}

// Client talks to one node. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	http  *http.Client
	owned *http.Transport // to close; nil if the caller gave the HTTP client
	opts  Options
}

// New makes a client for the node at addr: "host:port" or an http or https URL; a /v1 at
// its end is left out.
// An empty addr is DefaultAddr. New does not connect.
func New(addr string, opts Options) (*Client, error) {
	base, err := parseAddr(addr)
	if err != nil {
		return nil, err
	}
	if opts.Agent != "" {
		if err := memory.CheckName("agent", opts.Agent); err != nil {
			return nil, err
		}
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "mneme-client"
	}
	if opts.NewID == nil {
		opts.NewID = randomID
	}
	c := &Client{base: base, opts: opts}
	if opts.HTTPClient != nil {
		c.http = withoutRedirects(*opts.HTTPClient)
	} else {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			c.owned = t.Clone()
		} else {
			c.owned = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
		c.http = withoutRedirects(http.Client{Transport: c.owned})
	}
	return c, nil
}

// withoutRedirects gives a client that follows none. A node sends none, and what
// does must not have the request and its token sent on to another place.
func withoutRedirects(c http.Client) *http.Client {
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// Addr is the address that the client talks to.
func (c *Client) Addr() string {
	if c.base.Scheme == socketScheme {
		return c.base.Path
	}
	return c.base.String()
}

// Close drops idle connections. Calls under way are not interrupted.
func (c *Client) Close() error {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
	return nil
}

func parseAddr(addr string) (*url.URL, error) {
	full := strings.TrimSpace(addr)
	if full == "" {
		full = DefaultAddr
	}
	if strings.HasPrefix(full, ":") {
		full = "127.0.0.1" + full
	}
	bare := !strings.Contains(full, "://")
	if bare {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return nil, memory.Errorf(memory.CodeInvalid, "%q is not an address", addr).
			WithHint("an address looks like %s", DefaultAddr)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, memory.Errorf(memory.CodeInvalid, "address %q: scheme %q is not http or https", addr, u.Scheme).
			WithHint("an address looks like %s", DefaultAddr)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, memory.Errorf(memory.CodeInvalid, "address of %q may hold a scheme, host, port and path only", u.Host)
	}
	if bare && u.Port() == "" { // a name alone is a node's, not a web server's
		u.Host = strings.TrimSuffix(u.Host, ":") + DefaultAddr[strings.LastIndexByte(DefaultAddr, ':'):]
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.Path = strings.TrimRight(strings.TrimSuffix(u.Path, "/v1"), "/") // it is added to each call
	return u, nil
}

// randomID never fails: crypto/rand.Read ends the program rather than return
// bytes that are not random.
func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
