package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"mneme/internal/cluster"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
	"mneme/internal/storage/encfs"
)

func (c *core) keyGroupSealer() raftfsm.Sealer {
	return encfs.NewBox(c.keys.Storage(), keyGroupLabel)
}

const keyGroupLabel = "keys raft log"

func (c *core) shardSealer() raftfsm.Sealer { return encfs.NewBox(c.keys.Storage(), "raft log") }

// mayTakePart returns once this node may open its replicas and the log: when most others
// say that it has forgotten nothing that it promised. The log's server comes after it,
// for an older copy of the data directory has an older log too. Errors:
// *cluster.RejoinError.
func (p *peers) mayTakePart(ctx context.Context) error {
	if p == nil {
		return nil
	}
	noted := p.cluster.Facts().Groups
	files := map[string]raftfsm.Inspection{}
	groups := map[string]raftfsm.Options{groupKeys: {Dir: p.c.dir.keyGroup(), Sealer: p.c.keyGroupSealer()}}
	for _, s := range p.c.shards {
		groups[s.group()] = raftfsm.Options{Dir: p.c.dir.shard(s.id), Sealer: p.c.shardSealer()}
	}
	// All of it is read, and nothing can be done meanwhile: at once, as far as there are cores.
	reading := new(errgroup.Group)
	reading.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	var damage error
	reading.Go(func() (err error) {
		if damage, err = eventlog.CopyDamage(vfs.Default, p.c.dir.nats()); err != nil { // NATS has files of its own
			return startError("copy of the log", err)
		}
		return nil
	})
	for group, opt := range groups {
		if !hasRaftFiles(opt.Dir) {
			if slices.Contains(noted, group) {
				mu.Lock()
				files[group] = raftfsm.Inspection{}
				mu.Unlock()
			}
			continue
		}
		opt.FS, opt.ID = p.c.files, p.cluster.Self().Name
		reading.Go(func() error {
			found, err := raftfsm.Inspect(opt)
			if err != nil {
				return startError("Raft files of the group "+group, err)
			}
			mu.Lock()
			defer mu.Unlock()
			files[group] = found
			return nil
		})
	}
	if err := reading.Wait(); err != nil {
		return err
	}
	if damage != nil {
		files["log"] = raftfsm.Inspection{Damage: damage}
	}
	return clusterError(cluster.Returning{Cluster: p.cluster}.MayTakePart(ctx, files))
}

// hasRaftFiles reports whether anything is left of a Raft group.
func hasRaftFiles(dir string) bool {
	return slices.ContainsFunc([]string{"raft.db", "membership"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// rejoin notes that this node has to come back with nothing, where err says so: its files
// lack what it promised, or cannot be used beside replicas that have everything. It gives
// a *cluster.RejoinError then, and else err.
func (p *peers) rejoin(err error) error {
	var lacks *cluster.RejoinError
	var unusable *raftfsm.RejoinError
	switch {
	case p == nil || p.cluster == nil || len(p.cluster.Facts().Members) < 2:
		return err
	case errors.As(err, &lacks):
	case errors.As(err, &unusable):
		lacks = &cluster.RejoinError{Why: unusable.Error()}
	default:
		return err
	}
	if err := (cluster.Returning{Cluster: p.cluster}).Rejoin(lacks.Why); err != nil {
		return clusterError(err)
	}
	p.c.cfg.Logger.Error("this node does not take part with the data that it has, and joins again with nothing", "why", lacks.Why)
	return lacks
}

// beginAnew moves aside what a node has that has to come back with nothing, and gives it
// another incarnation. Each step may be the last before a crash: that it has to is noted
// until the end, and what was moved is not there to be moved again.
func (d *dataDir) beginAnew(ids *events.IDSource, log *slog.Logger) error {
	if d.node.Cluster == nil || d.node.Cluster.Rejoin == "" {
		return nil
	}
	old := d.name()
	aside := d.aside(old)
	if err := d.moveAside(aside); err != nil {
		return readOnly(d.path, err)
	}
	if err := storage.ReplaceFile(d.fs, filepath.Join(aside, whyFile), []byte(d.node.Cluster.Rejoin+"\n"), 0o600); err != nil {
		log.Warn("beside the former data does not stand why it lies there", "path", aside, "err", err)
	}
	log.Warn("the former data of this node lies aside, nothing uses it, and nothing erases in it: remove it once it is not needed",
		"path", aside, "why", d.node.Cluster.Rejoin)
	anew := d.node.Cluster.Anew(newIncarnation(ids))
	d.node.Cluster = &anew
	d.fresh = true
	return d.writeNode()
}

// moveAside moves everything into a folder but what the operator gives a node: master
// key, operator's token and configuration.
func (d *dataDir) moveAside(aside string) error {
	if err := storage.MkdirAll(d.fs, filepath.Join(aside, "keys"), 0o700); err != nil {
		return err
	}
	keys, err := d.fs.List(filepath.Join(d.path, "keys"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := []string{"shards", "logs", filepath.Base(d.erased())}
	for _, name := range keys {
		if !strings.HasPrefix(name, "master.key") && name != filepath.Base(d.tokenFile()) {
			names = append(names, filepath.Join("keys", name))
		}
	}
	move := func(fsys vfs.FS, name string) error {
		err := fsys.Rename(filepath.Join(d.path, name), filepath.Join(aside, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, name := range names {
		if err := move(d.fs, name); err != nil {
			return err
		}
	}
	if err := move(vfs.Default, "nats"); err != nil { // NATS has files of its own
		return err
	}
	for _, dir := range []string{filepath.Join(aside, "keys"), aside, filepath.Join(d.path, "keys"), d.path} {
		if err := storage.SyncDir(d.fs, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// lastAside is when data of this node was last moved aside that lies there still; zero if
// none does.
func (d *dataDir) lastAside() (last time.Time) {
	folder := filepath.Dir(d.aside(d.name()))
	names, err := d.fs.List(folder)
	if err != nil {
		return last
	}
	for _, name := range names {
		if info, err := d.fs.Stat(filepath.Join(folder, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// remembered is the file of what a node remembers of the others: a checksum in hex, a
// line's end, and what cluster wrote. One that is damaged is as good as none.
type remembered struct {
	d   *dataDir
	log *slog.Logger
}

const rememberedSum = 16 // digits

// Load implements cluster.Memory.
func (r remembered) Load() ([]byte, error) {
	b, err := storage.ReadFile(r.d.fs, r.d.remembered())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) <= rememberedSum || string(b[:rememberedSum]) != sumOf(b[rememberedSum+1:]) {
		r.log.Warn("what this node remembers of the others is damaged, and begun anew", "file", r.d.remembered())
		return nil, nil
	}
	return b[rememberedSum+1:], nil
}

// Save implements cluster.Memory.
func (r remembered) Save(b []byte) error {
	return storage.ReplaceFile(r.d.fs, r.d.remembered(), append([]byte(sumOf(b)+"\n"), b...), 0o600)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:rememberedSum/2])
}
