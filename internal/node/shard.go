package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"mneme/internal/backup"
	"mneme/internal/eventlog"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/replica"
)

// shard is the durable half of one shard on one node: its log, its replica, its state.
// The rest of a node's durable half is all its shards'.
type shard struct {
	*core
	id      uint16
	log     *slog.Logger // names the shard
	stream  *eventlog.Log
	replica *replica.Replica   // nil while the node is stopped
	state   *projections.State // the replica's, or opened by work on a stopped node
	damaged *damagedState      // why the state is to be built anew before it is opened; mostly nil
	behind  error              // why the state of a stopped node lacks what Raft's log holds; nil where it does not

	repairStep atomic.Pointer[func(name string)] // tests look at the files before each step of a repair
}

// shard0 is the first shard, which holds the directory.
const shard0 = 0

// maxShards bounds the shards of a node: each has a store, a Raft group and a stream.
const maxShards = backup.MaxShards

// makeShards makes as many shards as the data directory has, or is to have.
func (c *core) makeShards() error {
	count, err := c.dir.shards(c.cfg.Shards)
	if err != nil {
		return err
	}
	for id := range count {
		c.shards = append(c.shards, &shard{core: c, id: uint16(id), log: c.cfg.Logger.With("shard", id)})
	}
	for _, d := range c.damaged {
		c.shards[d.shard].damaged = d
	}
	return nil
}

// directory is the shard that says which namespaces there are.
func (c *core) directory() *shard { return c.shards[shard0] }

// checkKeys refuses to go on beside a keyring that lacks keys which the state knows.
func (s *shard) checkKeys(state *projections.State) error {
	v := state.View()
	return startError("keys", errors.Join(ingest.CheckKeys(v, s.keys), v.Close()))
}

// replicaOptions say where the shard's replica lies and who it is.
func (s *shard) replicaOptions() replica.Options {
	opt := replica.Options{Place: ingest.Place{Shard: s.id, Shards: len(s.shards)}, ID: s.dir.name(), Dir: s.dir.shard(s.id), FS: s.files,
		Sealer: s.shardSealer(), Stream: s.stream, Streams: streams{s}, Keys: s.keys, Settings: s.settings, Begun: s.keys.HasNamespaces(),
		CacheBytes: s.cfg.CacheBytes, ReserveBytes: s.cfg.ReserveBytes / 2, SnapshotThreshold: s.cfg.SnapshotThreshold,
		Clock: cmp.Or(s.clock, ingest.NewClock(s.cfg.Now, nil)), Logger: s.log}
	if s.damaged != nil {
		opt.Damaged = s.damaged
	}
	return opt
}

// openLog names the shard's log, on a server that is open. Which stream counts is
// found out with the state.
func (s *shard) openLog(cfg eventlog.StreamConfig) {
	cfg.Shard = s.id
	s.stream = eventlog.NewLog(s.nc, cfg)
	s.onClose("event log", func(context.Context) error { return s.stream.Close() })
}

// stands is where the shard's state is now.
func (s *shard) stands() string {
	at := s.state.Cursor()
	return at.Position().String()
}

// stateHash is the hash of the shard's state now.
func (s *shard) stateHash() (projections.StateHash, error) {
	v := s.state.View()
	return v.Hash(), v.Close()
}
