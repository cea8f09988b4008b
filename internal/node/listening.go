package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"mneme/internal/slots"
)

// exposure is what others than this machine could do to a node, or hear of it.
type exposure struct {
	addr string // that they reach
	why  string
	try  []string // flags with which the node starts
}

// exposed says what is open to others; nil where nothing is. Off loopback a caller has
// to prove who it is, by the token or by a certificate, and the token must not cross the
// network in clear.
func (c *Config) exposed() *exposure {
	addr := ""
	for _, a := range c.listens() {
		if host, _, err := net.SplitHostPort(a); err == nil && !isLoopback(host) {
			addr = a
			break
		}
	}
	verified := c.TLS != nil && c.TLS.ClientCA != ""
	switch {
	case addr == "":
		return nil
	case c.Auth == "off" && c.TLS == nil:
		return &exposure{addr, "auth is off: whoever reaches it may read and write everything", []string{"--auth", "token", "--insecure-listen"}}
	case c.Auth == "off" && !verified:
		return &exposure{addr, "auth is off: whoever reaches it may read and write everything, over TLS, too", []string{"--auth", "token"}}
	case c.TLS == nil:
		return &exposure{addr, "there is no TLS: the token and all memories would cross the network in clear", []string{"--insecure-listen"}}
	}
	return nil
}

// listens are the addresses at which clients are taken.
func (c *Config) listens() []string {
	if c.NATSURL != "" {
		return []string{c.HTTPAddr}
	}
	return []string{c.HTTPAddr, c.NATSAddr}
}

// checkListening refuses addresses that cannot be, and those that are open to others
// unless that is wanted.
func (c *Config) checkListening() error {
	addrs := c.listens()
	if c.HealthAddr != "" {
		addrs = append(addrs, c.HealthAddr)
	}
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return usage(fmt.Sprintf("address %q is not host:port", addr), "")
		}
	}
	open := c.exposed()
	if open == nil || c.Insecure {
		return nil
	}
	e := usage(fmt.Sprintf("%s can be reached from other machines, and %s", open.addr, open.why),
		"--auth token with --tls-cert and --tls-key is safe (memctl cluster certs --out certs --server mneme makes a certificate for development); --insecure-listen is for a network that is trusted")
	e.Try = open.try
	return e
}

// warnListening says at each start what is open to others because it is wanted.
func (c *Config) warnListening() {
	if open := c.exposed(); open != nil {
		c.Logger.Warn("this node can be reached from other machines", "address", open.addr, "why", open.why,
			"hint", "--auth token with --tls-cert and --tls-key closes it; it is open because of --insecure-listen")
	}
}

// portsFree refuses a start where somebody else has a port that the server of the log
// needs. That one listens only once this node is a member of its cluster, and the others
// would wait for a member that has ended. Errors: *StartError of StartAddress.
func (c *Config) portsFree() error {
	if c.NATSURL != "" { // somebody else's server
		return nil
	}
	for _, addr := range []string{c.NATSAddr, c.Cluster.RouteAddr} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return addressError(addr, err)
		}
		defer l.Close()
	}
	return nil
}

// maxProbes bounds the connections of probes, each of which takes probeTimeout to ask.
const (
	maxProbes    = 64
	probeTimeout = time.Second
)

// openHealth answers /livez and /readyz at an address of their own, in clear, and nothing
// else: whoever probes a node has no certificate to show, as the kubelet. Before the node
// is ready it lives.
func openHealth(n *Node) error {
	if n.cfg.HealthAddr == "" {
		return nil
	}
	l, err := net.Listen("tcp", n.cfg.HealthAddr)
	if err != nil {
		return addressError(n.cfg.HealthAddr, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if n.ready.Load() {
			if ok, _ := n.doctor.Ready(); ok {
				_, _ = io.WriteString(w, "ok\n")
				return
			}
		}
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	})
	server := n.newServer(mux)
	server.ReadHeaderTimeout, server.WriteTimeout = probeTimeout, 2*probeTimeout
	server.SetKeepAlivesEnabled(false) // a probe is one request: 64 idle connections would shut out all others
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(newLimited(l, slots.New(maxProbes), false)) // it ends with stop
	}()
	n.front.health = l.Addr().String()
	n.onClose("health address", func(ctx context.Context) error {
		err := server.stop(ctx)
		<-done
		return err
	})
	return nil
}
