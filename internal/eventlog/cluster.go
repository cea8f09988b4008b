package eventlog

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A node that is paused stays in queue groups, and requests to it are lost, until its
// routes notice; with the server's defaults that takes more than a minute.
const (
	routePing     = 500 * time.Millisecond
	routePings    = 2
	routeTLSLimit = 5.0 // seconds

	// routePool is how many connections two servers have for all accounts but the system's,
	// which has one of its own: what the servers agree on never waits behind what callers
	// send. The server's default of three is for many accounts, and each connection is
	// pinged from both ends.
	routePool = 1
)

var shortened sync.Once

// apply makes o the options of a server with others; nil is one of its own.
func (c *ClusterOptions) apply(o *server.Options) error {
	if c == nil {
		return nil
	}
	if c.Name == "" || len(c.Peers) == 0 || o.ServerName == "" {
		return errors.New("a cluster needs a name, a name of this server, and the addresses of all")
	}
	host, port, err := hostPort(c.Addr)
	if err != nil {
		return err
	}
	if c.Advertise != "" {
		if _, _, err := hostPort(c.Advertise); err != nil {
			return err
		}
	}
	for _, peer := range c.Peers {
		if _, _, err := hostPort(peer); err != nil {
			return err
		}
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: peer})
	}
	o.Cluster = server.ClusterOpts{
		Name: c.Name, Host: host, Port: port, Advertise: c.Advertise,
		// Clients would learn the addresses of nodes that they may not reach.
		NoAdvertise:  true,
		PingInterval: routePing, MaxPingsOut: routePings, PoolSize: routePool,
		TLSConfig: c.TLS, TLSTimeout: routeTLSLimit,
	}
	ShortenElections()
	return nil
}

// hostPort reads host:port; port 0 becomes the server's number for any.
func hostPort(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", addr, err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", addr, err)
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}
