package client

import (
	"context"
	"io"
	"net/url"
	"os"
	"strconv"

	"mneme/memory"
)

// Local looks into the process of a node. The node answers on its admin socket only, whoever
// has to prove what elsewhere.
type Local struct{ c *Client }

// OpenLocal reaches a node through the socket at path, or, if that is "", through the one that
// c's address is, or that the node there names, which must be on this machine. The caller
// closes it.
func OpenLocal(ctx context.Context, c *Client, path string) (*Local, error) {
	if base, _ := c.nodes.now(); path == "" && base.Scheme == socketScheme {
		return &Local{newOverSocket(base.Path, c.opts)}, nil
	}
	if path != "" {
		if err := checkOwner(path, os.Geteuid()); err != nil {
			return nil, err
		}
		return &Local{newOverSocket(path, c.opts)}, nil
	}
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	base, _ := c.nodes.now()
	switch {
	case !onThisMachine(base):
		return nil, memory.Errorf(memory.CodeForbidden, "%s is not on this machine, and this is done through the node's admin socket only", base).
			WithHint("run memctl on the machine of the node, or in its container; --socket FILE names the socket, admin.sock in the data directory")
	case status.AdminSocket == "":
		return nil, memory.Errorf(memory.CodeUnavailable, "the node at %s has no admin socket", base).WithHint("memctl doctor says why")
	}
	over, err := over(ctx, c, base, status)
	return &Local{over}, err
}

// Close releases the connection.
func (l *Local) Close() error { return l.c.Close() }

// DebugBundle writes what a report about the node needs, without secrets: a tar archive,
// compressed by gzip. An error means that what was written is not whole.
func (l *Local) DebugBundle(ctx context.Context, w io.Writer) error {
	return l.download(ctx, w, call{method: "GET", path: []string{"admin", "debug", "bundle"}})
}

// Profile writes a profile of the node's process: goroutine, heap, allocs, block, mutex,
// threadcreate, cpu or trace. seconds is for the last two.
func (l *Local) Profile(ctx context.Context, w io.Writer, kind string, seconds int) error {
	return l.download(ctx, w, call{method: "GET", path: []string{"admin", "debug", "profile", kind}, query: url.Values{"seconds": {strconv.Itoa(seconds)}}})
}

func (l *Local) download(ctx context.Context, w io.Writer, rc call) error {
	rc.accept = "application/octet-stream"
	resp, err := l.c.send(ctx, rc)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return memory.Errorf(memory.CodeUnavailable, "the answer broke off: %w", err).WithHint("what was written is not whole; run it again")
	}
	return nil
}
