package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/settings"
	"mneme/internal/storage"
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
	stream  *eventlog.JetStream
	state   *projections.State
	machine *machine
	group   *raftfsm.Group
	onApply atomic.Pointer[func(*projections.Applied)]

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

// openLog starts the embedded NATS, or connects to the external one, and opens
// the shard's stream.
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
	stream, err := eventlog.OpenStream(ctx, c.nc, cfg)
	if err != nil {
		return startError("event log", err)
	}
	c.stream = stream
	c.onClose("event log", func(context.Context) error { return stream.Close() })
	return nil
}

// faultEvery is how often faults of the store are logged: on a full disk it
// fails a thousand times a second.
const faultEvery = 10 * time.Second

func (c *core) logFault() func(error) {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() && time.Since(last) < faultEvery {
			return
		}
		last = time.Now()
		c.cfg.Logger.Error("store reports a fault", "err", err)
	}
}

func (c *core) stateOptions() projections.Options {
	return projections.Options{Dir: c.dir.state(shard0), Shard: shard0, Logger: c.cfg.Logger, CacheBytes: c.cfg.CacheBytes,
		ReserveBytes: c.cfg.ReserveBytes / 2, FS: c.files,
		OnFault: c.logFault(),
		OnApply: func(a *projections.Applied) {
			if f := c.onApply.Load(); f != nil {
				(*f)(a)
			}
		}}
}

// openState opens the state; one that is missing or damaged is built anew from
// the log.
func (c *core) openState(ctx context.Context) error {
	if err := storage.MkdirAll(c.files, c.dir.shard(shard0), 0o700); err != nil {
		return readOnly(c.dir.path, err)
	}
	state, err := projections.Open(c.stateOptions())
	if errors.Is(err, storage.ErrDamaged) {
		aside, moveErr := moveAside(c.files, c.dir.state(shard0))
		if moveErr != nil {
			return startError("state", errors.Join(err, moveErr))
		}
		c.cfg.Logger.Error("the state is damaged and is built again from the log", "err", err, "kept", aside)
		state, err = projections.Open(c.stateOptions())
	}
	var older *projections.OlderError
	if errors.As(err, &older) {
		if err := c.buildOlder(ctx, older); err != nil {
			return startError("state", err)
		}
		state, err = projections.Open(c.stateOptions())
	}
	if err != nil {
		return startError("state", err)
	}
	if err := c.sweepOlder(); err != nil {
		return startError("state", errors.Join(err, state.Close()))
	}
	c.state = state
	c.onClose("state", func(context.Context) error { return state.Close() })
	info, err := c.stream.Info(ctx)
	if err != nil {
		return startError("event log", err)
	}
	if state.Cursor().Seq == 0 && info.Last == 0 && c.keys.HasNamespaces() {
		// The log begins before the first namespace gets its keys.
		return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("%s holds the keys of namespaces, but neither a log nor a state", c.dir.path),
			Hint: "put nats/ or shards/ back, or memctl restore a backup into a new directory; to begin anew choose another --data-dir"}
	}
	if state.Cursor().Seq == 0 {
		return startError("state", c.buildState(ctx, info))
	}
	return nil
}

// moveAside renames a folder so that nothing of it is lost.
func moveAside(fsys vfs.FS, dir string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.damaged-%d", dir, n)
		if _, err := fsys.Stat(name); errors.Is(err, os.ErrNotExist) {
			return name, errors.Join(fsys.Rename(dir, name), storage.SyncDir(fsys, filepath.Dir(dir)))
		}
	}
}

// buildState fills an empty state from the log, without Raft: a single voter's
// Raft log holds nothing that the event log does not, so the state then stands at
// that log's end.
func (c *core) buildState(ctx context.Context, info eventlog.Info) error {
	if info.Last > 0 {
		c.cfg.Logger.Info("building the state from the log", "frames", info.Last)
		started := time.Now()
		n, err := replayInto(ctx, c.stream, c.keys, c.state, 0, nil)
		if err != nil {
			return err
		}
		c.cfg.Logger.Info("state built", "frames", n, "took", time.Since(started).Round(time.Millisecond))
		return c.setOrigin(c.state, info.Identity)
	}
	return c.state.SetOrigin(0, 0, info.Identity)
}

// setOrigin gives a state that was built from the whole event log the Raft index
// and term of the last entry, and the log's identity.
func (c *core) setOrigin(state *projections.State, identity string) error {
	raft, err := raftfsm.Inspect(c.groupOptions())
	if err != nil {
		return err
	}
	index, term := raft.Index, raft.Term
	if c := state.Cursor(); c.Term > term {
		// Raft's log is gone or older than the event log: it begins anew, and its
		// next term must be higher than that of every frame.
		index, term = max(index, 1), c.Term
	}
	return state.SetOrigin(index, term, identity)
}

// replayInto folds the log behind the state's cursor into it.
func replayInto(ctx context.Context, stream eventlog.Stream, keys *keyring.Keyring, state *projections.State, to uint64, progress func(done, total uint64)) (uint64, error) {
	v := state.View()
	d, err := derive.New(keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return ingest.Replay(ctx, stream, state, d, to, func(r *projections.Range) error {
		res, err := state.ApplyLocal(r)
		if err == nil {
			err = continued(r, res)
		}
		if err == nil && progress != nil {
			progress(res.Cursor.Seq, info.Last)
		}
		return err
	})
}

// continued checks that a state took a range that was read behind its end.
func continued(r *projections.Range, result any) error {
	res, ok := result.(projections.RangeResult)
	if !ok || !res.Done() {
		return fmt.Errorf("replay at %d is %s of the state", r.Previous+1, res.Answer)
	}
	return nil
}

// groupOptions say where the shard's Raft group lies and who it is.
func (c *core) groupOptions() raftfsm.Options {
	return raftfsm.Options{Dir: c.dir.shard(shard0), ID: c.dir.node.NodeID, FS: c.files, Sealer: encfs.NewBox(c.keys.Storage(), "raft log")}
}

// openGroup starts Raft and waits until this node leads.
func (c *core) openGroup(ctx context.Context) error {
	c.machine = &machine{state: c.state}
	opt := c.groupOptions()
	opt.Machine, opt.TermFloor, opt.SnapshotThreshold = c.machine, c.state.Cursor().Term, c.cfg.SnapshotThreshold
	opt.Logger, opt.Bootstrap, opt.NoSync = c.cfg.Logger, true, true
	group, err := raftfsm.Open(opt)
	if errors.Is(err, raftfsm.ErrStateLost) {
		group, err = c.openGroupAnew(opt, err)
	}
	if err != nil {
		return startError("raft", err)
	}
	c.group = group
	c.onClose("raft", func(context.Context) error { return group.Close() })
	return startError("raft", group.WaitLeader(ctx))
}

// openGroupAnew is for a state that lies behind the beginning of Raft's log, as an
// older copy of it does. What is missing stands in the event log, so the only voter
// moves raft.db aside and begins a new one where the state is; the start then
// applies the rest. With peers the state comes from one of them.
func (c *core) openGroupAnew(opt raftfsm.Options, cause error) (*raftfsm.Group, error) {
	found, err := raftfsm.Inspect(c.groupOptions())
	if err != nil || !found.Alone {
		return nil, errors.Join(cause, err)
	}
	aside, err := moveAside(vfs.Default, filepath.Join(opt.Dir, "raft.db"))
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	c.cfg.Logger.Warn("the state lies behind raft's log, which begins anew there; the event log has the rest", "kept", aside, "err", cause)
	opt.TermFloor = max(opt.TermFloor, found.Term)
	return raftfsm.Open(opt)
}
