package raftfsm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
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
	dir     string
	log     *slog.Logger
	members *memberFile

	mu      sync.Mutex
	snaps   []*storedSnapshot // newest first
	inUse   map[string]int    // open readers
	counter uint64
}

var _ raft.SnapshotStore = (*snapshotStore)(nil)

type storedSnapshot struct {
	id      string
	man     *manifest
	encoded []byte
}

func (s *storedSnapshot) size() int64 { return int64(len(s.encoded)) + s.man.bytes() }

// openSnapshotStore creates the folder, removes half-written snapshots and moves
// those with a damaged manifest aside.
func openSnapshotStore(dir string, members *memberFile, log *slog.Logger) (*snapshotStore, error) {
	s := &snapshotStore{dir: dir, log: log, members: members, inUse: make(map[string]int)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	for _, e := range entries {
		if err := s.load(e.Name()); err != nil {
			return nil, fmt.Errorf("open snapshot %s: %w", e.Name(), err)
		}
	}
	s.sortLocked()
	return s, nil
}

func (s *snapshotStore) load(name string) error {
	full := filepath.Join(s.dir, name)
	if strings.HasPrefix(name, "tmp-") {
		return os.RemoveAll(full)
	}
	var index, term, n uint64
	if _, err := fmt.Sscanf(name, "%d-%d-%d", &index, &term, &n); err != nil || snapshotID(index, term, n) != name {
		return nil // not ours, or moved aside
	}
	s.counter = max(s.counter, n)
	b, err := os.ReadFile(filepath.Join(full, "MANIFEST"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	man, err := decodeManifest(b)
	if err == nil && (man.Index != index || man.Term != term) {
		err = fmt.Errorf("%w: manifest of another snapshot", ErrCorruptSnapshot)
	}
	if err != nil {
		s.log.Error("snapshot moved aside", "snapshot", name, "error", err)
		return s.rename(name)
	}
	s.snaps = append(s.snaps, &storedSnapshot{id: name, man: man, encoded: b})
	return nil
}

func snapshotID(index, term, n uint64) string { return fmt.Sprintf("%020d-%d-%d", index, term, n) }

// rename moves a snapshot's folder out of sight, keeping it for a person.
func (s *snapshotStore) rename(id string) error {
	to := filepath.Join(s.dir, "damaged-"+id)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(s.dir, id), to); err != nil {
		return err
	}
	return syncDir(s.dir)
}

// discard moves a snapshot aside that turned out to be damaged.
func (s *snapshotStore) discard(id string) error {
	s.mu.Lock()
	s.snaps = slices.DeleteFunc(s.snaps, func(x *storedSnapshot) bool { return x.id == id })
	s.mu.Unlock()
	if err := s.rename(id); err != nil {
		return fmt.Errorf("move snapshot %s aside: %w", id, err)
	}
	return nil
}

func (s *snapshotStore) sortLocked() {
	slices.SortFunc(s.snaps, func(a, b *storedSnapshot) int {
		return cmp.Or(cmp.Compare(b.man.Index, a.man.Index), cmp.Compare(b.man.Term, a.man.Term),
			cmp.Compare(len(b.id), len(a.id)), cmp.Compare(b.id, a.id))
	})
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
			r := newSnapReader(s.dataDir(id), x.man, x.encoded, func() { s.release(id) })
			return x.man.meta(x.id, x.size()), r, nil
		}
	}
	return nil, nil, fmt.Errorf("open snapshot %s: %w", id, fs.ErrNotExist)
}

func (s *snapshotStore) dataDir(id string) string { return filepath.Join(s.dir, id, "data") }

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
		// First out of sight, so that a crash leaves no snapshot with holes.
		tmp := filepath.Join(s.dir, "tmp-"+x.id)
		err := os.Rename(filepath.Join(s.dir, x.id), tmp)
		if err == nil {
			err = os.RemoveAll(tmp)
		}
		if err != nil {
			s.log.Warn("old snapshot stays", "snapshot", x.id, "error", err)
		}
	}
}

// tempDir makes a folder for an unfinished snapshot.
func (s *snapshotStore) tempDir() (string, error) {
	dir, err := os.MkdirTemp(s.dir, "tmp-*")
	if err != nil {
		return "", fmt.Errorf("make snapshot folder: %w", err)
	}
	return dir, nil
}

// Create implements raft.SnapshotStore.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, conf raft.Configuration,
	confIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	if version != 1 {
		return nil, fmt.Errorf("create snapshot: version %d", version)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	return &snapshotSink{
		store: s, id: snapshotID(index, term, s.counter),
		man: manifest{Index: index, Term: term, ConfIndex: confIndex, Servers: fromConfiguration(conf)},
	}, nil
}

// install gives the finished folder tmp its final name.
func (s *snapshotStore) install(tmp, id string, man *manifest) error {
	encoded, err := man.encode()
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(tmp, "MANIFEST"), encoded); err != nil {
		return err
	}
	if err := s.members.saveNewer(man.ConfIndex, toConfiguration(man.Servers)); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(s.dir, id)); err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	s.mu.Lock()
	s.snaps = append(s.snaps, &storedSnapshot{id: id, man: man, encoded: encoded})
	s.sortLocked()
	s.mu.Unlock()
	s.reap()
	return nil
}
