package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/internal/replica"
	"mneme/internal/settings"
	"mneme/internal/storage/encfs"
)

// core is a node's durable half: data directory, keys, log, state and Raft. It
// stands before anything is served and after everything is drained.
type core struct {
	cfg     Config
	dir     *dataDir
	keys    *keyring.Keyring
	files   *encfs.FS // for all that is derived; under the keyring's storage keys
	book    *settings.Book
	server  *eventlog.Server // nil with an external NATS
	remote  *eventlog.Remote
	nc      *nats.Conn
	stream  *eventlog.Log
	replica *replica.Replica   // nil while the node is stopped
	state   *projections.State // the replica's, or opened by work on a stopped node
	views   *views.Views       // of the state; nil while the node is stopped

	repairStep func(name string) // tests look at the files before each step of a repair

	restoring bool     // the directory is being filled by a restore
	closers   []closer // in the order they were opened
}

type closer struct {
	what  string
	close func(ctx context.Context) error
}

func (c *core) onClose(what string, f func(ctx context.Context) error) {
	c.closers = append(c.closers, closer{what, f})
}

// close undoes everything in reverse order.
func (c *core) close(ctx context.Context) error {
	var errs []error
	for i := len(c.closers) - 1; i >= 0; i-- {
		if err := c.closers[i].close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.closers[i].what, err))
		}
	}
	c.closers = nil
	return errors.Join(errs...)
}

const shard0 = 0

// openDir locks the data directory and opens the keyring.
func (c *core) openDir(mustExist bool) error {
	if err := c.refuseHalfRestored(); err != nil {
		return err
	}
	dir, err := openDataDir(c.cfg.FS, c.cfg.DataDir, events.NewIDSource(c.cfg.Now, nil), mustExist)
	if err != nil {
		return err
	}
	c.dir = dir
	c.onClose("data directory", func(context.Context) error { return dir.close() })
	keys, err := keyring.Open(keyring.Options{Dir: dir.keys(), AllowCreate: dir.fresh && !mustExist,
		AllowNewStorage: !dir.has("shards"), Master: c.cfg.MasterKey, FS: c.cfg.FS, Log: c.cfg.Logger})
	if err != nil {
		return startError("keyring", err)
	}
	c.keys, c.book = keys, settings.NewBook(keys)
	c.files = encfs.New(c.cfg.FS, keys.Storage())
	c.onClose("keyring", func(context.Context) error { return keys.Close() })
	return nil
}

// ExternalNATSConfig is the configuration file that an external nats-server
// needs.
func ExternalNATSConfig() string { return eventlog.ExternalConfig() }

// openLog starts the embedded NATS, or connects to the external one. Which stream
// counts is found out with the state.
func (c *core) openLog(ctx context.Context, auth eventlog.ClientAuth) error {
	cfg := eventlog.StreamConfig{Shard: shard0, ClusterID: c.dir.node.ClusterID}
	if c.cfg.NATSURL != "" {
		remote, err := eventlog.OpenExternal(ctx, eventlog.RemoteOptions{URL: c.cfg.NATSURL, MonitorURLs: c.cfg.NATSMonitors, Dev: c.cfg.Dev, Logger: c.cfg.Logger})
		if err != nil {
			return startError("external NATS", err)
		}
		c.remote, c.nc, cfg.Guard = remote, remote.Conn(), remote.Proven
		c.onClose("NATS connection", func(context.Context) error { remote.Close(); return nil })
	} else {
		server, err := eventlog.StartServer(ctx, eventlog.ServerOptions{Dir: c.dir.nats(), Addr: c.cfg.NATSAddr, Auth: auth, Logger: c.cfg.Logger})
		if err != nil {
			return startError("embedded NATS", err)
		}
		c.server, cfg.Fault = server, server.WriteFault
		c.onClose("embedded NATS", server.Shutdown)
		if c.nc, err = server.NodeConn(ctx); err != nil {
			return startError("embedded NATS", err)
		}
		if !server.SyncAlways() && !c.cfg.Dev {
			return &StartError{Kind: StartOther, Message: "the embedded NATS does not sync before it acknowledges"}
		}
	}
	c.stream = eventlog.NewLog(c.nc, cfg)
	c.onClose("event log", func(context.Context) error { return c.stream.Close() })
	return nil
}

// replicaOptions say where the shard's replica lies and who it is.
func (c *core) replicaOptions() replica.Options {
	return replica.Options{Shard: shard0, ID: c.dir.node.NodeID, Dir: c.dir.shard(shard0), FS: c.files,
		Sealer: encfs.NewBox(c.keys.Storage(), "raft log"), Stream: c.stream, Streams: streams{c}, Keys: c.keys, Book: c.book, Begun: c.keys.HasNamespaces(),
		CacheBytes: c.cfg.CacheBytes, ReserveBytes: c.cfg.ReserveBytes / 2, SnapshotThreshold: c.cfg.SnapshotThreshold,
		Now: c.cfg.Now, Logger: c.cfg.Logger}
}
