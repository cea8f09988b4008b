package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"mneme/memory"
)

// DefaultAddr is where a memnode listens unless it was told otherwise.
const DefaultAddr = "http://127.0.0.1:8787"

// dialTimeout bounds how long one of several nodes may take to be connected to.
const dialTimeout = 3 * time.Second

// maxConnections is how many connections a client opens to a node, which takes some 2,000 of
// all clients: calls beyond wait for one. Feeds that are followed have their own beside them.
const maxConnections = 256

// Options configures a Client. The zero value talks to a node without auth.
type Options struct {
	// Token is sent as a bearer token if it is not empty.
	Token string
	// Agent is who acts when a call does not say: the reader of reads, the
	// author of captures without an agent, the actor of revisions.
	Agent string
	// UserAgent names the program; empty means "mneme-client".
	UserAgent string
	// TLS is how nodes with an https address are met; nil is as the files below say, or else
	// as the system does: its authorities, and no certificate.
	TLS *tls.Config
	// CAFile holds the authorities of the nodes' certificates, instead of the system's.
	// CertFile and KeyFile are the certificate that the client shows and its key, which are
	// read for each connection. All are in PEM.
	CAFile, CertFile, KeyFile string
	// HTTPClient sends the requests; redirects are not followed. It must not set a
	// Timeout, which would also end event streams. Nil means a client of its own.
	HTTPClient *http.Client
	// DialContext makes the connections of a client of its own; nil is as net/http does, with a
	// bound on time where several nodes are known. An error of it that is an *Error of package memory is the error of the call.
	DialContext Dial
	// NewID makes idempotency keys: visible ASCII, at most 100 characters,
	// never the same twice. Nil means 128 random bits.
	NewID func() string
	// ConnectTimeout is for how long a call tries again where none of the nodes can be
	// reached, as while they start, or while a network does not know yet who asks. Nothing
	// of the call was sent then. Zero means that each node is tried once.
	ConnectTimeout time.Duration
}

// Dial makes a connection.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Client talks to a node, or to the nodes of a cluster. It is safe for concurrent use.
type Client struct {
	nodes *nodes
	http  *http.Client
	feeds *http.Client    // of feeds that are followed, of which each holds a connection
	owned *http.Transport // to close; nil if the caller gave the HTTP client
	opts  Options
}

// New makes a client for the node at addr: "host:port" or an http or https URL, where tls
// means https; a /v1 at its end is left out; or unix:///PATH, the admin socket of a node on
// this machine, which needs no token. An empty addr is DefaultAddr. New does not connect.
//
// Several addresses, separated by commas, are those of one cluster. The client talks to
// one node for as long as that takes its calls, and goes on with the next one when it does
// not: a call that was not carried out is sent there, and so is a read that got no
// answer. What concerns one node, such as Doctor or Rebuild, is done by the one that the
// client talks to then.
func New(addr string, opts Options) (*Client, error) {
	nodes, err := parseAddrs(addr)
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
	secure, err := opts.tlsConfig()
	if err != nil {
		return nil, err
	}
	if base := nodes.list[0]; base.Scheme == socketScheme {
		if err := checkNamed(base.Path); err != nil {
			return nil, err
		}
		opts.Token = "" // the socket asks for none
		return newOverSocket(base.Path, opts), nil
	}
	c := &Client{nodes: nodes, opts: opts}
	if opts.HTTPClient != nil {
		c.http = withoutRedirects(*opts.HTTPClient)
		c.feeds = c.http
	} else {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			c.owned = t.Clone()
		} else {
			c.owned = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
		c.owned.TLSClientConfig = secure
		if len(nodes.list) > 1 { // a machine that is away must not hold up the others for long
			c.owned.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
		}
		if opts.DialContext != nil {
			c.owned.DialContext = opts.DialContext
		}
		feeds := c.owned.Clone()
		feeds.DisableKeepAlives = true // so that none is left to close
		c.feeds = withoutRedirects(http.Client{Transport: feeds})
		c.owned.MaxConnsPerHost = maxConnections
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

// Addr is the address that the client talks to; of several, the present one.
func (c *Client) Addr() string {
	base, _ := c.nodes.now()
	return addrOf(base)
}

func addrOf(base *url.URL) string {
	if base.Scheme == socketScheme {
		return base.Path
	}
	return base.String()
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
	if path, is := strings.CutPrefix(full, socketScheme+"://"); is {
		if !filepath.IsAbs(path) {
			return nil, memory.Errorf(memory.CodeInvalid, "%q does not name a socket by its whole path", addr).
				WithHint("it looks like unix:///var/lib/mneme/admin.sock")
		}
		return &url.URL{Scheme: socketScheme, Host: "localhost", Path: path}, nil
	}
	if strings.HasPrefix(full, socketScheme+":") { // which would be a host of that name
		return nil, memory.Errorf(memory.CodeInvalid, "%q does not name a socket", addr).WithHint("it looks like unix:///var/lib/mneme/admin.sock")
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
	if u.Scheme == "tls" { // as memnode prints its NATS address
		u.Scheme, bare = "https", true
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, memory.Errorf(memory.CodeInvalid, "address %q: scheme %q is not http, https, tls or unix", addr, u.Scheme).
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
