package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

// eraser takes what was erased out of the node's files. The fold of the event that
// deletes a namespace, or ends the keys of subjects, drops rows, and the keys are
// destroyed; but old tables, logs, snapshots and Raft entries still hold the rows,
// under a storage key that lives on. The plan that ends this is one list of steps,
// each of which may be repeated:
//
//	keys         destroy the keys of what was deleted
//	readers      wait for reads that began before; after a minute their exports end
//	tables       compact until no table holds a deleted row, or what a shared row held
//	state        begin a new folder with the same tables; the old one, with its
//	             logs and manifests, goes; so do states that were moved aside
//	caches       remove graphs without a set, and rejected bodies
//	storage key  make a new one; nothing new is sealed under the old one
//	raft         take a fresh snapshot and begin a new raft.db
//	files        wrap the keys of all other files under the new storage key
//	end          destroy the old storage keys: all copies of old files are shut
//
// What a shard owes is the difference of two numbers: the sequence of the last event
// that erased something, which the state has, and the one that a whole plan has
// covered, in erased.json, with what says that it was in this log and of these files.
// So a crash at any moment is made good by the next start, and several deletions may
// share one plan. It is one for all shards, whose files are under the same storage keys;
// a shard that owes nothing keeps its tables.
type eraser struct {
	n    *Node
	wake chan struct{}
	step func(name string) // tests look at the files before each step
	// readersFor is how long reads that began before are waited for. Then exports,
	// which take as long as their readers want, are ended.
	readersFor time.Duration

	mu     sync.Mutex
	status *memory.ErasingStatus // nil: nothing is owed
	locked bool                  // it holds upkeep.one, or is about to
}

const (
	eraseRetry = 10 * time.Second // pause after a plan that failed
	aloneFor   = 5 * time.Minute  // bounds each half of a plan that holds up other work
	pauseFor   = 30 * time.Second // bounds how long writes wait
	readersFor = time.Minute      // for reads that began before
)

// The steps, as the status names them.
const (
	eraseKeys       = "keys"
	eraseReaders    = "readers"
	eraseTables     = "tables"
	eraseState      = "state"
	eraseCaches     = "caches"
	eraseStorageKey = "storage key"
	eraseRaft       = "raft"
	eraseFiles      = "files"
	eraseEnd        = "end"
)

func newEraser(n *Node) *eraser {
	return &eraser{n: n, wake: make(chan struct{}, 1), step: n.cfg.Parts.EraseStep, readersFor: readersFor}
}

// Erase ends the keys of a namespace's subjects. It returns once that is applied and
// the keys are destroyed; what was about them leaves the files afterwards, see
// Status.
func (n *Node) Erase(ctx context.Context, namespace string, subjects ...string) error {
	s, known := n.home(namespace)
	if !known {
		s = n.served[shard0]
	}
	w, err := s.writes.writer()
	if err == nil {
		_, err = w.Erasing().Erase(ctx, namespace, subjects...)
	}
	return err
}

// Wake says that something was deleted.
func (e *eraser) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Status says which step is under way; nil while nothing is owed.
func (e *eraser) Status() *memory.ErasingStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status == nil {
		return nil
	}
	s := *e.status
	return &s
}

// run does what is owed until ctx ends. The caller has woken it once if the state
// may owe something from before.
func (e *eraser) run(ctx context.Context) {
	for {
		select {
		case <-e.wake:
		case <-ctx.Done():
			return
		}
		for {
			err := e.all(ctx)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				break
			}
			e.failed(err)
			select {
			case <-time.After(eraseRetry):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (e *eraser) failed(err error) {
	e.n.cfg.Logger.Error("what was deleted could not be taken out of the files; it is tried again", "err", err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status == nil { // it failed before the first step
		e.status = &memory.ErasingStatus{Since: e.n.cfg.Now().UTC(), Step: eraseKeys}
	}
	e.status.Error = err.Error()
}

// awaitReaders runs await, which waits for reads that have begun.
func (e *eraser) awaitReaders(ctx context.Context, await func(context.Context) error) error {
	late := time.AfterFunc(e.readersFor, e.n.exports.present())
	defer late.Stop()
	return await(ctx)
}

// all carries out plans until nothing is owed.
func (e *eraser) all(ctx context.Context) error {
	err := e.leading(func(w *ingest.Writer) error { return w.Erasing().TellKeys(ctx) })
	if err != nil {
		return err
	}
	for {
		owed, err := e.owed()
		if err != nil {
			return err
		}
		if owed == nil {
			e.mu.Lock()
			e.status = nil
			e.mu.Unlock()
			return nil
		}
		started := time.Now()
		if err := e.plan(ctx, owed); err != nil {
			return fmt.Errorf("erase through %v: %w", owed, err)
		}
		e.n.cfg.Logger.Info("what was deleted has left the files", "through", owed, "took", time.Since(started).Round(time.Millisecond))
	}
}

// begin names the step that is under way.
func (e *eraser) begin(step string) {
	e.mu.Lock()
	if e.status == nil {
		e.status = &memory.ErasingStatus{Since: e.n.cfg.Now().UTC()}
	}
	e.status.Step = step
	e.mu.Unlock()
	if e.step != nil {
		e.step(step)
	}
}

func (e *eraser) plan(ctx context.Context, owed debt) error {
	e.begin(eraseKeys)
	err := e.leading(func(w *ingest.Writer) error { return w.Erasing().DestroyEnded() })
	if err == nil {
		err = e.keysGone()
	}
	if err != nil {
		return err
	}
	shared := make([][]uint32, len(owed))
	for i, o := range owed {
		if shared[i], err = e.shared(o.of); err != nil {
			return err
		}
	}
	e.begin(eraseReaders)
	for _, o := range owed {
		if err := e.awaitReaders(ctx, o.of.state.AwaitViews); err != nil {
			return err
		}
	}
	gone := make([]func(context.Context) error, len(owed))
	err = e.alone(ctx, func(ctx context.Context) (err error) {
		e.begin(eraseTables)
		of := make([]string, len(owed))
		for i, o := range owed {
			of[i] = o.of.state.Generation()
			if err := o.of.state.Purge(ctx, shared[i]...); err != nil {
				return err
			}
		}
		e.begin(eraseState)
		for i := range owed {
			if owed[i].purged, gone[i], err = owed[i].of.replica.RenewState(of[i]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, gone := range gone {
		if err == nil {
			err = e.awaitReaders(ctx, gone)
		}
	}
	if err != nil {
		return err
	}
	return e.alone(ctx, func(ctx context.Context) error { return e.forgetOldFiles(ctx, owed) })
}

// leading runs f with the writer of each shard. Of several nodes only the one that leads
// a shard has one; what f writes reaches the others as events and commands.
func (e *eraser) leading(f func(w *ingest.Writer) error) error {
	for _, s := range e.n.served {
		w, err := s.replica.Writer()
		if err != nil && e.n.peers != nil {
			continue
		}
		if err == nil {
			err = f(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keysGone says whether this node's keyring still has keys that were destroyed: of
// several nodes one hears of it from the others.
func (e *eraser) keysGone() error {
	left := 0
	for _, s := range e.n.served {
		v := s.state.View()
		ended, err := ingest.EndedKeys(v, e.n.keys)
		if err = errors.Join(err, v.Close()); err != nil {
			return err
		}
		left += ended
	}
	if left > 0 {
		return memory.Errorf(memory.CodeUnavailable, "%d keys that have ended are still here: their destruction has not reached this node", left)
	}
	return nil
}

// shared lists the partitions of a shard whose shared rows were written anew without
// somebody since the last plan that was carried out.
func (e *eraser) shared(s *served) ([]uint32, error) {
	done, err := e.done(s)
	if err != nil {
		return nil, err
	}
	v := s.state.View()
	parts := map[uint32]bool{}
	err = v.EndedKeys(func(k projections.EndedKey) {
		for _, part := range k.Partitions {
			if k.At.Seq > done {
				parts[part] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(parts)), errors.Join(err, v.Close())
}

// forgetOldFiles is the second half of a plan: no living file holds a deleted
// row in its tables any more, and every former file ends.
func (e *eraser) forgetOldFiles(ctx context.Context, owed debt) error {
	n := e.n
	for _, s := range n.served {
		if err := s.dropAside(); err != nil {
			return err
		}
	}
	e.begin(eraseCaches)
	for _, s := range n.served {
		if err := s.views.DropGraphs(); err != nil {
			return err
		}
	}
	if err := n.rejections.DropErased(); err != nil {
		return err
	}
	e.begin(eraseStorageKey)
	id, err := e.switchKey(ctx)
	if err != nil {
		return err
	}
	e.begin(eraseRaft)
	files := append(n.dir.encryptedKeys(), n.dir.logs())
	for _, s := range n.served {
		if err := s.replica.Group().Renew(ctx); err != nil {
			return err
		}
		files = append(files, n.dir.encrypted(s.id)...)
	}
	if err := n.peers.renewKeys(ctx); err != nil {
		return err
	}
	e.begin(eraseFiles)
	done, err := n.files.Rewrap(files...)
	if err != nil {
		return err
	}
	if len(done.Unreadable) > 0 {
		n.cfg.Logger.Warn("files that no storage key opens", "files", done.Unreadable)
	}
	e.begin(eraseEnd)
	if err := n.keys.Storage().DestroyBefore(id); err != nil {
		return err
	}
	f, err := n.dir.readErased()
	if err != nil {
		return err
	}
	f.StorageKey = id
	for _, o := range owed {
		frame, err := o.of.frameHash(o.through)
		if err != nil {
			return err
		}
		f.set(o.of.id, erasedShard{Through: o.through, Frame: frame, State: o.purged})
	}
	return n.dir.writeErased(f)
}

// switchKey makes a new storage key the current one while nothing is written to
// Raft's logs: an entry sealed under the former key must not be stored after the
// new raft.db has begun. What was derived before the keys were destroyed and was
// still under way is in the old one then.
func (e *eraser) switchKey(ctx context.Context) (uint32, error) {
	pausing, cancel := context.WithTimeout(ctx, pauseFor) // a term that is over settles nothing
	defer cancel()
	rotate := func() error { return e.n.files.SwitchKey(e.n.keys.Storage().Rotate) }
	for _, s := range e.n.served {
		w, err := s.replica.Writer()
		if err != nil && e.n.peers != nil { // what is agreed on from now on was derived without the keys
			continue
		}
		if err != nil {
			return 0, err
		}
		inside := rotate
		rotate = func() error { return paused(pausing, w, inside) }
	}
	if err := rotate(); err != nil {
		return 0, err
	}
	id, _ := e.n.keys.Storage().Current()
	return id, nil
}

// paused runs f while a writer writes nothing.
func paused(ctx context.Context, w *ingest.Writer, f func() error) error {
	resume, err := w.Pause(ctx)
	if err != nil {
		return err
	}
	defer resume()
	if err := f(); err != nil {
		return err
	}
	return w.Err() // the next term's writer was not paused
}

// alone runs f while no rebuild, repair or verification runs, and makes one that
// is asked for meanwhile wait.
// f is bounded and goes on where it was at the next attempt.
func (e *eraser) alone(ctx context.Context, f func(context.Context) error) error {
	e.setLocked(true)
	defer e.setLocked(false)
	if err := e.n.upkeep.one.wait(ctx); err != nil {
		return err
	}
	defer e.n.upkeep.one.end()
	ctx, cancel := context.WithTimeout(ctx, aloneFor)
	defer cancel()
	return f(ctx)
}

func (e *eraser) setLocked(v bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.locked = v
}

func (e *eraser) holdsLock() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.locked
}

// dropAside removes states of the shard that were moved aside because they were damaged:
// they may hold what has been erased since.
func (s *shard) dropAside() error {
	dir := s.dir.shard(s.id)
	names, err := s.files.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, stateDir+".") {
			err = errors.Join(err, s.files.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return err
}

// encrypted lists what lies on encrypted files in a shard's folder, directories and files.
func (d *dataDir) encrypted(shard uint16) []string {
	dir := d.shard(shard)
	return []string{d.state(shard), d.vectors(shard), filepath.Join(dir, "snapshots"), filepath.Join(dir, "restore"), filepath.Join(dir, "membership")}
}

// encryptedKeys is encrypted for the group of keys, which only a node of several has.
func (d *dataDir) encryptedKeys() []string {
	dir := d.keyGroup()
	return []string{filepath.Join(dir, "snapshots"), filepath.Join(dir, "restore"), filepath.Join(dir, "membership"), filepath.Join(dir, "renewed")}
}
