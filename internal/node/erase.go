package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/storage"
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
// What is owed is the difference of two numbers: the sequence of the last event
// that erased something, which the state has, and the one that a whole plan has
// covered, in erased.json, with what says that it was in this log and of these files.
// So a crash at any moment is made good by the next start, and several deletions may
// share one plan.
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
	w, err := n.writes.writer()
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
	late := time.AfterFunc(e.readersFor, e.n.reads.exports.present())
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
		through, err := e.owed()
		if err != nil {
			return err
		}
		if through == 0 {
			e.mu.Lock()
			e.status = nil
			e.mu.Unlock()
			return nil
		}
		started := time.Now()
		if err := e.plan(ctx, through); err != nil {
			return fmt.Errorf("erase through %d: %w", through, err)
		}
		e.n.cfg.Logger.Info("what was deleted has left the files", "through", through, "took", time.Since(started).Round(time.Millisecond))
	}
}

// owed is the sequence of the last event that erased something, 0 if a plan has
// covered it.
func (e *eraser) owed() (uint64, error) {
	done, err := e.done()
	if err != nil {
		return 0, err
	}
	v := e.n.state.View()
	last, err := v.Erased()
	if err = errors.Join(err, v.Close()); err != nil || last <= done {
		return 0, err
	}
	return last, nil
}

// done is through which sequence a plan has covered what was erased. A plan in another
// log, from before the storage key of today, or of other tables than the state has,
// counts for nothing: then older folders were put back, or others, beside erased.json,
// or a snapshot or a rebuilt state took the state's place. It is forgotten at once, for
// log and keys grow, and might come to fit what it says.
func (e *eraser) done() (uint64, error) {
	f, err := e.n.dir.readErased()
	if err != nil || f.Through == 0 {
		return 0, err
	}
	frame, err := e.frameHash(f.Through)
	if err != nil {
		return 0, err
	}
	if id, _ := e.n.keys.Storage().Current(); frame != "" && frame == f.Frame && id >= f.StorageKey && f.State == e.n.state.Generation() {
		return f.Through, nil
	}
	e.n.cfg.Logger.Warn("erased.json is of another log, of newer files, or of a state that was replaced; what was deleted is taken out of the files once more", "through", f.Through)
	return 0, e.n.dir.writeErased(erasedFile{})
}

// frameHash names what the log holds up to a sequence: the frame's hash covers the
// chain before it. It is "" if the state has no such frame.
func (e *eraser) frameHash(seq uint64) (string, error) {
	v := e.n.state.View()
	b, err := v.Frame(seq)
	if err = errors.Join(err, v.Close()); err != nil || b == nil {
		return "", err
	}
	hash := events.HashEnvelope(b)
	return hex.EncodeToString(hash[:]), nil
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

func (e *eraser) plan(ctx context.Context, through uint64) error {
	e.begin(eraseKeys)
	err := e.leading(func(w *ingest.Writer) error { return w.Erasing().DestroyEnded() })
	if err == nil {
		err = e.keysGone()
	}
	if err != nil {
		return err
	}
	parts, err := e.shared()
	if err != nil {
		return err
	}
	e.begin(eraseReaders)
	if err := e.awaitReaders(ctx, e.n.state.AwaitViews); err != nil {
		return err
	}
	var gone func(context.Context) error
	var purged string // the tables without what was deleted
	err = e.alone(ctx, func(ctx context.Context) (err error) {
		e.begin(eraseTables)
		of := e.n.state.Generation()
		if err := e.n.state.Purge(ctx, parts...); err != nil {
			return err
		}
		e.begin(eraseState)
		purged, gone, err = e.n.replica.RenewState(of)
		return err
	})
	if err == nil {
		err = e.awaitReaders(ctx, gone)
	}
	if err != nil {
		return err
	}
	return e.alone(ctx, func(ctx context.Context) error { return e.forgetOldFiles(ctx, through, purged) })
}

// leading runs f with the shard's writer. Of several nodes only the one that leads has
// one; what f writes reaches the others as events and commands.
func (e *eraser) leading(f func(w *ingest.Writer) error) error {
	w, err := e.n.replica.Writer()
	if err != nil {
		if e.n.peers != nil {
			return nil
		}
		return err
	}
	return f(w)
}

// keysGone says whether this node's keyring still has keys that were destroyed: of
// several nodes one hears of it from the others.
func (e *eraser) keysGone() error {
	v := e.n.state.View()
	left, err := ingest.EndedKeys(v, e.n.keys)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	if left > 0 {
		return memory.Errorf(memory.CodeUnavailable, "%d keys that have ended are still here: their destruction has not reached this node", left)
	}
	return nil
}

// shared lists the partitions whose shared rows were written anew without somebody
// since the last plan that was carried out.
func (e *eraser) shared() ([]uint32, error) {
	done, err := e.done()
	if err != nil {
		return nil, err
	}
	v := e.n.state.View()
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
func (e *eraser) forgetOldFiles(ctx context.Context, through uint64, purged string) error {
	n := e.n
	if err := e.dropAside(); err != nil {
		return err
	}
	e.begin(eraseCaches)
	if err := n.views.DropGraphs(); err != nil {
		return err
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
	if err := errors.Join(n.replica.Group().Renew(ctx), n.peers.renewKeys(ctx)); err != nil {
		return err
	}
	e.begin(eraseFiles)
	done, err := n.files.Rewrap(append(n.dir.encrypted(shard0), n.dir.encryptedKeys()...)...)
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
	frame, err := e.frameHash(through)
	if err != nil {
		return err
	}
	return n.dir.writeErased(erasedFile{Through: through, Frame: frame, StorageKey: id, State: purged})
}

// switchKey makes a new storage key the current one while nothing is written to
// Raft's log: an entry sealed under the former key must not be stored after the
// new raft.db has begun. What was derived before the keys were destroyed and was
// still under way is in the old one then.
func (e *eraser) switchKey(ctx context.Context) (uint32, error) {
	pausing, cancel := context.WithTimeout(ctx, pauseFor) // a term that is over settles nothing
	defer cancel()
	rotate := func() error { return e.n.files.SwitchKey(e.n.keys.Storage().Rotate) }
	w, err := e.n.replica.Writer()
	switch {
	case err == nil:
		err = paused(pausing, w, rotate)
	case e.n.peers != nil: // what is agreed on from now on was derived without the keys
		err = rotate()
	}
	if err != nil {
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

// dropAside removes states that were moved aside because they were damaged: they
// may hold what has been erased since.
func (e *eraser) dropAside() error {
	n := e.n
	dir := filepath.Dir(n.dir.state(shard0))
	names, err := n.files.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, filepath.Base(n.dir.state(shard0))+".") {
			err = errors.Join(err, n.files.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return err
}

// encrypted lists what lies on encrypted files, directories and files.
func (d *dataDir) encrypted(shard uint16) []string {
	dir := d.shard(shard)
	return []string{d.state(shard), d.vectors(shard), d.logs(), filepath.Join(dir, "snapshots"), filepath.Join(dir, "restore"), filepath.Join(dir, "membership")}
}

// encryptedKeys is encrypted for the group of keys, which only a node of several has.
func (d *dataDir) encryptedKeys() []string {
	dir := d.keyGroup()
	return []string{filepath.Join(dir, "snapshots"), filepath.Join(dir, "restore"), filepath.Join(dir, "membership"), filepath.Join(dir, "renewed")}
}

const erasedFormat = 3

// erasedFile is erased.json: through which sequence a plan has covered what was
// erased. It may be lost: then the plan runs once more.
type erasedFile struct {
	Format  int    `json:"format"`
	Through uint64 `json:"through"`
	// Frame is the hash of the log's message at Through.
	Frame string `json:"frame,omitempty"`
	// StorageKey is the id of the storage key that the plan made.
	StorageKey uint32 `json:"storage_key,omitempty"`
	// State names the tables that the plan left. Others, from a snapshot of another
	// node or a rebuild, may hold what was erased.
	State string `json:"state,omitempty"`
}

// readErased reads erased.json; a zero value if there is none that says anything.
func (d *dataDir) readErased() (erasedFile, error) {
	var f erasedFile
	b, err := storage.ReadFile(d.fs, d.erased())
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if json.Unmarshal(b, &f) != nil || f.Format != erasedFormat { // an erasure may be repeated
		return erasedFile{}, nil
	}
	return f, nil
}

func (d *dataDir) writeErased(f erasedFile) error {
	f.Format = erasedFormat
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return storage.ReplaceFile(d.fs, d.erased(), append(b, '\n'), 0o600)
}
