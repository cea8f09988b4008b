package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/settings"
	"mneme/internal/storage/encfs"
)

// core is a node's durable half: data directory, keys, log, state and Raft. It
// stands before anything is served and after everything is drained.
type core struct {
	cfg      Config
	dir      *dataDir
	space    *space
	clock    *ingest.Clock // the writers', of all shards and terms; nil while the node is stopped
	keys     *keyring.Keyring
	files    *encfs.FS // for all that is derived; under the keyring's storage keys
	settings *settings.Cache
	peers    *peers // nil for a node on its own
	nats     natsServer
	nc       *nats.Conn // the server's
	shards   []*shard

	damaged   []*damagedState // what earlier attempts of a start found; mostly none
	restoring *dirLock        // of the directory that a restore fills; nil otherwise
	closers   []closer        // in the order they were opened
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

// openDir locks the data directory and opens the keyring.
func (c *core) openDir(mustExist bool) error {
	if err := c.openFolder(mustExist); err != nil {
		return err
	}
	if err := c.makeShards(); err != nil {
		return err
	}
	return c.openKeys(mustExist)
}

// openFolder locks the data directory.
func (c *core) openFolder(mustExist bool) error {
	dir, err := c.lockedDir(mustExist)
	if err != nil {
		return err
	}
	c.dir = dir
	if !mustExist {
		if err := dir.beginAnew(events.NewIDSource(c.cfg.Now, nil), c.cfg.Logger); err != nil {
			return err
		}
	}
	c.space = &space{fs: c.cfg.FS, dir: dir.path, reserve: uint64(max(c.cfg.ReserveBytes, 0)), now: c.cfg.Now}
	return dir.refuseWithoutLog(c.cfg.NATSURL)
}

// openKeys opens the keyring.
func (c *core) openKeys(mustExist bool) error {
	dir := c.dir
	keys, err := keyring.Open(keyring.Options{Dir: dir.keys(), AllowCreate: dir.fresh && !mustExist,
		AllowNewStorage: !dir.has("shards"), Master: c.cfg.MasterKey, FS: c.cfg.FS, Log: c.cfg.Logger,
		Group: dir.grouped(), Blank: c.peers != nil && !c.peers.founds()})
	if err != nil {
		return c.lostKeys(err)
	}
	c.keys, c.settings = keys, settings.NewCache(keys)
	c.files = encfs.New(c.cfg.FS, keys.Storage())
	c.onClose("keyring", func(context.Context) error { return keys.Close() })
	return nil
}

// lockedDir opens the data directory, which a restore has locked already.
func (c *core) lockedDir(mustExist bool) (*dataDir, error) {
	ids := events.NewIDSource(c.cfg.Now, nil)
	if c.restoring != nil {
		return c.restoring.open("", ids, mustExist)
	}
	dir, err := openDataDir(c.cfg.FS, c.cfg.DataDir, c.cfg.clusterID(), ids, mustExist)
	if err == nil {
		c.onClose("data directory", func(context.Context) error { return dir.close() })
	}
	return dir, err
}

// openLog starts the embedded NATS, or connects to the external one.
func (c *core) openLog(ctx context.Context, from callers) error {
	server, cfg, err := c.openNATS(ctx, from)
	if err != nil {
		return err
	}
	c.nats, c.nc = server, server.Conn()
	c.onClose("NATS", server.Close)
	for _, s := range c.shards {
		s.openLog(cfg)
	}
	return nil
}
