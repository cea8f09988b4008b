package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mneme/internal/api/natsapi"
	"mneme/internal/api/rest"
	"mneme/internal/api/web"
	"mneme/internal/auth"
	"mneme/internal/certs"
	"mneme/internal/slots"
	"mneme/memory"
)

// Bounds of an HTTP connection before and between requests.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// front is where a node is reached.
type front struct {
	listener net.Listener
	certs    *certs.Files                   // towards clients; nil is in clear
	health   string                         // the address for probes; "" if there is none
	waiting  *waiting                       // answers until the node serves
	bus      atomic.Pointer[natsapi.Server] // nil until it serves
	admin    net.Listener                   // the admin socket; nil if there is none
	socket   string                         // its path
	trouble  string                         // why there is none
	times    *times                         // how long requests and frames take
	metrics  http.Handler                   // /metrics

	connections slots.Pool    // over HTTP
	queue       atomic.Int64  // see queueLimit
	surface     *rest.Surface // nil until it serves

	guard     *rest.Guard // by which names the node may be called
	reloading sync.Mutex  // one Reload at a time
	allowed   Live        // what counts now; guarded by reloading
}

// serve opens the transports. They are closed first.
func (n *Node) serve(ctx context.Context) error {
	n.doctor.watchCertificates(ctx)
	registry, metrics := n.metrics()
	n.front.metrics, n.front.allowed = metrics, n.cfg.Live
	page, err := web.New()
	if err != nil {
		return err
	}
	n.front.guard, err = rest.NewGuard(n.HTTPAddr(), slices.Concat(n.cfg.AllowedHosts, n.front.names()), n.cfg.AllowedOrigins)
	if memory.CodeOf(err) == memory.CodeInvalid {
		return usage(err.Error(), originHint)
	}
	if err != nil {
		return err
	}
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	n.onClose("event streams", func(context.Context) error { drain(); return nil })
	var issuer *auth.Issuer
	if n.cfg.OAuth != nil {
		if issuer, err = auth.NewIssuer(*n.cfg.OAuth, nil); err != nil {
			return err
		}
	}
	n.front.surface, err = rest.New(rest.Options{Writer: n.changes, Reader: n.reads, Admin: n.operator, Health: n.doctor, Rejecter: n.rejections, Auth: n.gate, OAuth: issuer,
		Metrics: metrics, Registerer: registry, Web: page, MCP: func(inner http.RoundTripper) (http.Handler, error) { return newMCP(n, inner) }, Logger: n.cfg.Logger, Guard: n.front.guard, Draining: draining, Limits: n.cfg.Limits.rest(), Traces: n.cfg.recorder(), Now: n.cfg.Now})
	if err != nil {
		return err
	}
	if err := n.front.waiting.stop(ctx); err != nil {
		return err
	}
	n.serveAdminSocket(n.front.surface) // it is closed after HTTP, whose closing ends the event streams of both
	server := n.newServer(n.front.surface)
	listener := net.Listener(newLimited(n.front.listener, &n.front.connections, n.front.certs == nil))
	if n.cfg.Linger > 0 {
		listener = newLingering(listener, n.cfg.Linger, n.nats.HasCallers, func() { n.end(ErrIdle) })
	}
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		if err := server.Serve(n.front.secure(listener)); !errors.Is(err, http.ErrServerClosed) {
			n.end(err)
		}
	}()
	n.onClose("HTTP", func(ctx context.Context) error {
		drain()
		return server.stop(ctx)
	})
	bus, err := natsapi.Start(natsapi.Options{Conn: n.nats.CallersConn(), Writer: n.changes, Reader: n.reads, Rejecter: n.rejections, Feed: feeds(n.served), Version: n.cfg.Version, Server: n.peers.server(), Later: n.peers.takesInTurn(), Reads: n.cfg.Limits.NATSReads, Traces: n.cfg.recorder(), Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	n.front.bus.Store(bus)
	if n.peers != nil {
		n.peers.taking.served(bus)
	}
	n.onClose("NATS subjects", bus.Close)
	return nil
}
