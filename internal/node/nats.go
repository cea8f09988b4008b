package node

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// natsServer is the NATS that keeps the log: the one in this process, or one that
// somebody else runs.
type natsServer interface {
	// Conn is the node's own connection, for the log.
	Conn() *nats.Conn
	// CallersConn is another one, for what callers send and get: the server cuts it
	// when they send more than is taken.
	CallersConn() *nats.Conn
	// ClientURL is where agents publish.
	ClientURL() string
	// EndCallers ends the connections of agents, and says how many there were. Who is let in
	// to an external NATS is not ours to say: none ends there.
	EndCallers() (int, error)
	// HasCallers reports whether agents are connected, or may be.
	HasCallers() bool
	// Wanted reports whether anybody may have subscribed to a subject.
	Wanted(subject string) bool
	// Holds says what this node's own copy of a stream holds, and whether that is
	// current; 0 and false without one.
	Holds(stream string) (last uint64, current bool)
	// RemoveServer takes the server of a node that is gone out of those that keep the log.
	RemoveServer(ctx context.Context, node string) error
	// Fault says why the log takes no writes now, or nil.
	Fault() *memory.Error
	Close(ctx context.Context) error
}

// ExternalNATSServer is one server of an external NATS.
type ExternalNATSServer = eventlog.ExternalServer

// ExternalNATSConfig is the configuration file that it needs.
func ExternalNATSConfig(s ExternalNATSServer) string { return eventlog.ExternalConfig(s) }

// callers say who may connect to the embedded NATS, and how.
type callers struct {
	admit eventlog.ClientAuth // nil admits everybody
	tls   *tls.Config         // nil is in clear
}

// nobody may, as long as the node itself does not run.
var nobody = callers{admit: func(_, _, _ string) bool { return false }}

// openNATS starts the embedded NATS, or connects to the external one, and says how
// logs are kept there.
func (c *core) openNATS(ctx context.Context, from callers) (natsServer, eventlog.StreamConfig, error) {
	cfg := eventlog.StreamConfig{ClusterID: c.dir.node.ClusterID}
	if c.cfg.NATSURL != "" {
		return c.openExternal(ctx, cfg)
	}
	if err := c.peers.sameKindOfLog(); err != nil {
		return nil, cfg, err
	}
	opt := eventlog.ServerOptions{Dir: c.dir.nats(), Addr: c.cfg.NATSAddr, Auth: from.admit, TLS: from.tls, Logger: c.cfg.Logger}
	c.peers.shareLog(&opt, &cfg)
	server, err := eventlog.StartServer(ctx, opt)
	if err != nil {
		return nil, cfg, startError("embedded NATS", err)
	}
	cfg.Fault = server.WriteFault
	s := &embeddedNATS{Server: server}
	if s.conn, err = server.NodeConn(ctx); err == nil {
		s.callers, err = server.NodeConn(ctx)
	}
	if err == nil && !server.SyncAlways() && !c.cfg.Dev {
		err = errors.New("it does not sync before it acknowledges")
	}
	if err != nil {
		return nil, cfg, errors.Join(startError("embedded NATS", err), s.Close(context.WithoutCancel(ctx)))
	}
	return s, cfg, nil
}

// embeddedNATS is the server in this process.
type embeddedNATS struct {
	*eventlog.Server
	conn, callers *nats.Conn
}

func (s *embeddedNATS) Conn() *nats.Conn        { return s.conn }
func (s *embeddedNATS) CallersConn() *nats.Conn { return s.callers }

// Close leaves the server time to stop where draining has used up all of ctx.
func (s *embeddedNATS) Close(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < natsStop {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), natsStop)
		defer cancel()
	}
	return s.Shutdown(ctx)
}

const natsStop = 3 * time.Second

func (s *embeddedNATS) Fault() *memory.Error {
	if err := s.WriteFault(); err != nil {
		return memory.Errorf(memory.CodeUnavailable, "the log cannot write: %v", err).WithHint("free disk space if it is full, then restart the node")
	}
	return nil
}
