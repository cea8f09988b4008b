package node

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mneme/internal/api/natsapi"
	"mneme/internal/api/rest"
	"mneme/internal/api/web"
)

// serve opens the transports. They are closed first.
func (n *Node) serve(ctx context.Context) error {
	registry, metrics := n.metrics()
	page, err := web.New()
	if err != nil {
		return err
	}
	drained := make(chan struct{})
	handler, err := rest.New(rest.Options{Writer: n, Reader: n, Admin: n, Health: n, Rejecter: n, Auth: n.gate,
		Metrics: metrics, Registerer: registry, Web: page, Logger: n.cfg.Logger, ListenAddr: n.HTTPAddr(),
		AllowedHosts: n.cfg.AllowedHosts, Draining: drained, Now: n.cfg.Now})
	if err != nil {
		return err
	}
	n.http = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		if err := n.http.Serve(n.listener); !errors.Is(err, http.ErrServerClosed) {
			n.end(err)
		}
	}()
	n.onClose("HTTP", func(ctx context.Context) error {
		close(drained)
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
