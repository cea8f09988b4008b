package rest

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"mneme/memory"
)

// Guard says by which names a node may be called, and by pages of which other sites. It may
// be set while requests are checked.
type Guard struct {
	listen string
	now    atomic.Pointer[guard]
}

// NewGuard makes a guard of a node that listens at a host:port, see Options.
func NewGuard(listen string, hosts, origins []string) (*Guard, error) {
	g := &Guard{listen: listen}
	return g, g.Set(hosts, origins)
}

// Set has other names count; after an error those before do.
func (g *Guard) Set(hosts, origins []string) error {
	next, err := newGuard(g.listen, hosts, origins)
	if err == nil {
		g.now.Store(&next)
	}
	return err
}

// guard keeps pages of other sites out. A browser sends any request to
// 127.0.0.1 that a page asks for; what gives such a page away is the Host
// header (after DNS rebinding it names the attacker's domain) or the Origin.
type guard struct {
	hosts   []string // lower case, without port
	origins []string // scheme://host[:port], lower case
	anyHost bool
	anyIP   bool // the listener is on every interface, whose addresses are not known here
}

func newGuard(listen string, hosts, origins []string) (guard, error) {
	g := guard{}
	if listen != "" {
		host, _, err := net.SplitHostPort(listen)
		if err != nil {
			return guard{}, fmt.Errorf("rest: listen address %q: %w", listen, err)
		}
		ip, err := netip.ParseAddr(host)
		switch {
		case host == "" || err == nil && ip.IsUnspecified():
			g.anyIP = true
		default:
			g.hosts = append(g.hosts, strings.ToLower(host))
		}
	}
	for _, h := range hosts {
		if h == "*" {
			g.anyHost = true
			continue
		}
		g.hosts = append(g.hosts, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return guard{}, memory.Errorf(memory.CodeInvalid, "allowed origin %q is not of the form scheme://host[:port]", o)
		}
		g.origins = append(g.origins, strings.ToLower(u.Scheme+"://"+u.Host))
	}
	return g, nil
}

// hostName is the name in a Host header, without port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func (g *guard) checkHost(r *http.Request) error {
	name := hostName(r.Host)
	if g.anyHost || name == "localhost" || slices.Contains(g.hosts, name) {
		return nil
	}
	if ip, err := netip.ParseAddr(name); err == nil && (g.anyIP || ip.Unmap().IsLoopback()) {
		return nil
	}
	return memory.Errorf(memory.CodeForbidden, "this node does not answer to the host name %.100q", name).
		WithHint("use the address it listens on, or start memnode with --allowed-host %.100s", name)
}

// checkOrigin lets a browser's request pass if its page came from this node,
// or from an allowed origin, which is then returned.
func (g *guard) checkOrigin(r *http.Request) (allowed string, err error) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" && !safe {
			return "", memory.Errorf(memory.CodeForbidden, "pages of another site may not call this node").
				WithHint("its browser did not say which site; --allowed-origin admits a named one")
		}
		return "", nil
	}
	if slices.Contains(g.origins, strings.ToLower(origin)) {
		return origin, nil
	}
	u, perr := url.Parse(origin)
	if perr != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return "", g.foreign(origin)
	}
	return "", nil
}

func (g *guard) foreign(origin string) error {
	return memory.Errorf(memory.CodeForbidden, "pages from %.100q may not call this node", origin).
		WithHint("start memnode with --allowed-origin %.100s if it should", origin)
}
