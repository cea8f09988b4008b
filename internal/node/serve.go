package node

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mneme/internal/api/natsapi"
	"mneme/internal/api/rest"
	"mneme/internal/api/web"
	"mneme/memory"
)

// Bounds of an HTTP connection before and between requests.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	maxConnections = 2048
)

// serve opens the transports. They are closed first.
func (n *Node) serve(ctx context.Context) error {
	registry, metrics := n.metrics()
	page, err := web.New()
	if err != nil {
		return err
	}
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	n.onClose("event streams", func(context.Context) error { drain(); return nil })
	handler, err := rest.New(rest.Options{Writer: n, Reader: n, Admin: n, Health: n, Rejecter: n, Auth: n.gate,
		Metrics: metrics, Registerer: registry, Web: page, Logger: n.cfg.Logger, ListenAddr: n.HTTPAddr(),
		AllowedHosts: n.cfg.AllowedHosts, AllowedOrigins: n.cfg.AllowedOrigins, Draining: draining, Now: n.cfg.Now})
	if memory.CodeOf(err) == memory.CodeInvalid {
		return usage(err.Error(), "an origin looks like https://app.example:8443")
	}
	if err != nil {
		return err
	}
	// It is closed after HTTP, whose closing ends the event streams of both.
	if err := n.openAdminSocket(handler); err != nil {
		return err
	}
	n.http = &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes}
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		if err := n.http.Serve(newLimited(n.listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			n.end(err)
		}
	}()
	n.onClose("HTTP", func(ctx context.Context) error {
		drain()
		return n.http.Shutdown(ctx)
	})
	bus, err := natsapi.Start(natsapi.Options{Conn: n.nc, Writer: n, Reader: n, Rejecter: n, Feed: n.feed, Version: n.cfg.Version, Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	n.bus.Store(bus)
	n.onClose("NATS subjects", bus.Close)
	return nil
}
