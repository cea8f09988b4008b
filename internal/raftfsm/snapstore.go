package raftfsm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"mneme/internal/storage"
)

// snapshotsKept is how many finished snapshots stay on disk.
const snapshotsKept = 2

// snapshotStore keeps snapshots as folders:
//
//	snapshots/<index>-<term>-<n>/MANIFEST   document, see manifest
//	snapshots/<index>-<term>-<n>/data/…     the checkpoint
//	snapshots/tmp-<n>/                      unfinished, removed at open
//	snapshots/damaged-…/                    moved aside, never read again
//
// A snapshot comes to life by one rename. It is safe for concurrent use.
type snapshotStore struct {
	fs      vfs.FS
	dir     string
	log     *slog.Logger
	members *memberFile

	mu      sync.Mutex
	snaps   []*storedSnapshot // newest first
	inUse   map[string]int    // open readers
	unsound func(id string)   // a reader found a snapshot damaged; set before Raft starts
	counter uint64
	temps   uint64   // unfinished folders made in this run
	damaged []string // folders that open found damaged and left in place
}

var _ raft.SnapshotStore = (*snapshotStore)(nil)

type storedSnapshot struct {
	id      string
	n       uint64 // counts the snapshots of this directory
	man     *manifest
	encoded []byte
	pending bool // it came from a peer, and the state has yet to be restored from it
}

func (s *storedSnapshot) size() int64 { return int64(len(s.encoded)) + s.man.bytes() }

// openSnapshotStore creates the folder and removes half-written snapshots. Those
// with a damaged manifest stay where they are and are not listed.
func openSnapshotStore(fsys vfs.FS, dir string, members *memberFile, log *slog.Logger) (*snapshotStore, error) {
	s := &snapshotStore{fs: fsys, dir: dir, log: log, members: members, inUse: make(map[string]int)}
	if err := storage.MkdirAll(fsys, dir, 0o700); err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	for _, name := range names {
		if err := s.load(name); err != nil {
			return nil, fmt.Errorf("open snapshot %s: %w", name, err)
		}
	}
	s.sortLocked()
	return s, nil
}

func (s *snapshotStore) load(name string) error {
	full := s.fs.PathJoin(s.dir, name)
	if strings.HasPrefix(name, "tmp-") {
		return s.fs.RemoveAll(full)
	}
	var index, term, n uint64
	if _, err := fmt.Sscanf(name, "%d-%d-%d", &index, &term, &n); err != nil || snapshotID(index, term, n) != name {
		return nil // not ours, or moved aside
	}
	s.counter = max(s.counter, n)
	b, err := storage.ReadFile(s.fs, s.fs.PathJoin(full, "MANIFEST"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	man, err := decodeManifest(b)
	if err == nil && (man.Index != index || man.Term != term) {
		err = fmt.Errorf("%w: manifest of another snapshot", ErrCorruptSnapshot)
	}
	if err != nil {
		s.log.Error("snapshot is damaged", "snapshot", name, "error", err)
		s.damaged = append(s.damaged, name)
		return nil
	}
	s.snaps = append(s.snaps, &storedSnapshot{id: name, n: n, man: man, encoded: b})
	return nil
}

func snapshotID(index, term, n uint64) string { return fmt.Sprintf("%020d-%d-%d", index, term, n) }

// discard lists a snapshot no more that turned out to be damaged. Its folder
// stays until setAside.
func (s *snapshotStore) discard(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snaps = slices.DeleteFunc(s.snaps, func(x *storedSnapshot) bool { return x.id == id })
	s.damaged = append(s.damaged, id)
}

// setAside moves damaged snapshots out of the way, keeping them for a person. A
// replica with peers leaves them in place.
func (s *snapshotStore) setAside() error {
	s.mu.Lock()
	damaged := s.damaged
	s.damaged = nil
	s.mu.Unlock()
	for _, id := range damaged {
		to := s.fs.PathJoin(s.dir, "damaged-"+id)
		err := s.fs.RemoveAll(to)
		if err == nil {
			err = s.fs.Rename(s.fs.PathJoin(s.dir, id), to)
		}
		if err == nil {
			err = storage.SyncDir(s.fs, s.dir)
		}
		if err != nil {
			return fmt.Errorf("move snapshot %s aside: %w", id, err)
		}
		s.log.Error("snapshot moved aside", "snapshot", id, "moved_to", to)
	}
	return nil
}

// newest is the number of the last snapshot that was begun.
func (s *snapshotStore) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counter
}

// removeUpTo removes every snapshot up to number n, also one that a reader has
// open (its stream then ends with an error), and every damaged one. On success
// they are gone from disk for good.
func (s *snapshotStore) removeUpTo(n uint64) error {
	s.mu.Lock()
	var kept, old []*storedSnapshot
	for _, x := range s.snaps {
		if x.n > n {
			kept = append(kept, x)
		} else {
			old = append(old, x)
		}
	}
	s.snaps = kept
	s.mu.Unlock()
	for _, x := range old {
		if err := s.remove(x.id); err != nil {
			return fmt.Errorf("remove snapshot %s: %w", x.id, err)
		}
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return fmt.Errorf("remove damaged snapshots: %w", err)
	}
	s.mu.Lock()
	damaged := s.damaged
	s.damaged = nil
	s.mu.Unlock()
	for _, name := range names {
		if strings.HasPrefix(name, "damaged-") || slices.Contains(damaged, name) {
			if err := s.fs.RemoveAll(s.fs.PathJoin(s.dir, name)); err != nil {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return storage.SyncDir(s.fs, s.dir)
}

// remove takes a folder away: first out of sight, so that a crash leaves no
// snapshot with holes.
func (s *snapshotStore) remove(id string) error {
	tmp := s.fs.PathJoin(s.dir, "tmp-"+id)
	if err := s.fs.Rename(s.fs.PathJoin(s.dir, id), tmp); err != nil {
		return err
	}
	return s.fs.RemoveAll(tmp)
}

func (s *snapshotStore) sortLocked() {
	slices.SortFunc(s.snaps, func(a, b *storedSnapshot) int {
		return cmp.Or(cmp.Compare(b.man.Index, a.man.Index), cmp.Compare(b.man.Term, a.man.Term),
			cmp.Compare(len(b.id), len(a.id)), cmp.Compare(b.id, a.id))
	})
}

// boundary is the last entry that the newest snapshot stands for which the state has; 0 =
// there is none. One that was received, and could not be restored, stands for nothing.
func (s *snapshotStore) boundary() (index, term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.snaps {
		if !x.pending {
			return x.man.Index, x.man.Term
		}
	}
	return 0, 0
}

// restored notes that the state has what the snapshots up to an index hold.
func (s *snapshotStore) restored(index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.snaps {
		x.pending = x.pending && x.man.Index > index
	}
}

// latest returns the newest snapshot, or nil.
func (s *snapshotStore) latest() *storedSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.snaps) == 0 {
		return nil
	}
	return s.snaps[0]
}

func (s *snapshotStore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.snaps)
}

// List implements raft.SnapshotStore, newest first.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*raft.SnapshotMeta, len(s.snaps))
	for i, x := range s.snaps {
		out[i] = x.man.meta(x.id, x.size())
	}
	return out, nil
}

// Open implements raft.SnapshotStore: the reader gives the streamed form.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.snaps {
		if x.id == id {
			s.inUse[id]++
			r := newSnapReader(s.fs, s.dataDir(id), x.man, x.encoded, func(damaged bool) {
				s.release(id)
				if damaged && s.unsound != nil {
					s.unsound(id)
				}
			})
			return x.man.meta(x.id, x.size()), r, nil
		}
	}
	return nil, nil, fmt.Errorf("open snapshot %s: %w", id, fs.ErrNotExist)
}

func (s *snapshotStore) dataDir(id string) string { return s.fs.PathJoin(s.dir, id, "data") }

func (s *snapshotStore) release(id string) {
	s.mu.Lock()
	if s.inUse[id]--; s.inUse[id] == 0 {
		delete(s.inUse, id)
	}
	s.mu.Unlock()
	s.reap()
}

// reap removes what is older than the newest snapshotsKept, except what a reader
// holds open.
func (s *snapshotStore) reap() {
	s.mu.Lock()
	var kept, old []*storedSnapshot
	for i, x := range s.snaps {
		if i < snapshotsKept || s.inUse[x.id] > 0 {
			kept = append(kept, x)
		} else {
			old = append(old, x)
		}
	}
	s.snaps = kept
	s.mu.Unlock()
	for _, x := range old {
		if err := s.remove(x.id); err != nil {
			s.log.Warn("old snapshot stays", "snapshot", x.id, "error", err)
		}
	}
}

// tempDir makes a folder for an unfinished snapshot.
func (s *snapshotStore) tempDir() (string, error) {
	s.mu.Lock()
	s.temps++
	dir := s.fs.PathJoin(s.dir, fmt.Sprintf("tmp-%d", s.temps))
	s.mu.Unlock()
	if err := s.fs.RemoveAll(dir); err != nil { // what a failed removal left
		return "", fmt.Errorf("make snapshot folder: %w", err)
	}
	if err := s.fs.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make snapshot folder: %w", err)
	}
	return dir, nil
}

// errOlderSnapshot refuses what would take a replica back.
var errOlderSnapshot = errors.New("this replica has a newer snapshot")

// Create implements raft.SnapshotStore. One that is older than what the state has is refused:
// raft would take its members and cut the log for it, and the entries from there to the newer
// one are in no log any more. A leader that sent it has given it up; it sends its newest.
// Errors: errOlderSnapshot.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, conf raft.Configuration,
	confIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	if version != 1 {
		return nil, fmt.Errorf("create snapshot: version %d", version)
	}
	if has, _ := s.boundary(); index < has {
		return nil, fmt.Errorf("create snapshot of entry %d: %w, of entry %d", index, errOlderSnapshot, has)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	return &snapshotSink{
		store: s, id: snapshotID(index, term, s.counter), n: s.counter,
		man: manifest{Index: index, Term: term, ConfIndex: confIndex, Servers: fromConfiguration(conf)},
	}, nil
}

// install gives the finished folder tmp its final name. One that was received is pending.
func (s *snapshotStore) install(tmp, id string, n uint64, man *manifest, received bool) error {
	encoded, err := man.encode()
	if err != nil {
		return err
	}
	if err := storage.ReplaceFile(s.fs, s.fs.PathJoin(tmp, "MANIFEST"), encoded, 0o600); err != nil {
		return err
	}
	if err := s.members.saveNewer(man.ConfIndex, toConfiguration(man.Servers)); err != nil {
		return err
	}
	if err := s.fs.Rename(tmp, s.fs.PathJoin(s.dir, id)); err != nil {
		return err
	}
	if err := storage.SyncDir(s.fs, s.dir); err != nil {
		return err
	}
	s.mu.Lock()
	s.snaps = append(s.snaps, &storedSnapshot{id: id, n: n, man: man, encoded: encoded, pending: received})
	s.sortLocked()
	s.mu.Unlock()
	s.reap()
	return nil
}
