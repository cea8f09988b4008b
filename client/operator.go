package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"mneme/memory"
)

// Operator returns a client for the operator's verbs: doctor, rejected,
// quarantine, rebuild, log verify and repair, and backups. A node without auth
// takes them only through its admin socket, which its status names: if the node
// runs on this machine and the socket is there, the client goes through it;
// otherwise it is c itself, and the node says what it thinks of that. Another node
// at that socket, as behind a port forward, is refused, and so is a socket of another
// user. The caller closes it like c.
func (c *Client) Operator(ctx context.Context) (*Client, error) {
	if base, _ := c.nodes.now(); base.Scheme == socketScheme || len(c.nodes.list) == 1 && !onThisMachine(base) {
		return c, nil
	}
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	base, _ := c.nodes.now() // of several, the one that answered
	if !onThisMachine(base) {
		return c, nil
	}
	if status.Auth != "off" || status.AdminSocket == "" {
		return c, nil
	}
	if info, err := os.Stat(status.AdminSocket); err != nil || info.Mode()&os.ModeSocket == 0 {
		return c, nil
	}
	return over(ctx, c, base, status)
}

// over returns a client through the socket that the node at base named.
func over(ctx context.Context, c *Client, base *url.URL, status memory.Status) (*Client, error) {
	if err := checkOwner(status.AdminSocket, os.Geteuid()); err != nil {
		return nil, err
	}
	socket := newOverSocket(status.AdminSocket, c.opts)
	there, err := socket.Status(ctx)
	if err == nil && !sameNode(status, there) {
		err = memory.Errorf(memory.CodeForbidden, "%s is another node than the one at %s on this machine", base, status.AdminSocket).
			WithHint("run memctl on the machine of that node, or start it with --auth token; --addr names the one here")
	}
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return socket, nil
}

// sameNode reports whether one node gave both answers.
func sameNode(a, b memory.Status) bool {
	return a.ClusterID == b.ClusterID && slices.EqualFunc(a.Nodes, b.Nodes, func(a, b memory.NodeStatus) bool { return a.ID == b.ID })
}

// socketScheme marks the address of a client that talks over a Unix socket.
const socketScheme = "unix"

func newOverSocket(path string, opts Options) *Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	opts.HTTPClient = nil
	base := &url.URL{Scheme: socketScheme, Host: "localhost", Path: path}
	c := &Client{nodes: &nodes{list: []*url.URL{base}}, http: withoutRedirects(http.Client{Transport: transport}), owned: transport, opts: opts}
	c.feeds = c.http
	return c
}

func onThisMachine(base *url.URL) bool {
	if base.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(base.Hostname())
	return err == nil && ip.IsLoopback()
}
