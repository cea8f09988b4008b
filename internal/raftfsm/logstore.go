package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// boltKV is what the stores need of raft-boltdb's BoltStore; tests put faults
// in between.
type boltKV interface {
	FirstIndex() (uint64, error)
	LastIndex() (uint64, error)
	GetLog(index uint64, l *raft.Log) error
	StoreLogs(logs []*raft.Log) error
	DeleteRange(from, to uint64) error
	Set(key, value []byte) error
	Get(key []byte) ([]byte, error)
	Sync() error
	Close() error
}

// openBolt opens a file that checkLog has found sound, or a new one.
func openBolt(path string, noSync bool) (boltKV, error) {
	var kv boltKV
	err := guard(func() error {
		store, err := raftboltdb.New(raftboltdb.Options{
			Path:   path,
			NoSync: noSync,
			BoltOptions: &bbolt.Options{
				Timeout:        time.Second,
				NoFreelistSync: true,
				FreelistType:   bbolt.FreelistMapType,
			},
		})
		if err == nil {
			kv = store
		}
		return err
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("open %s: %w", path, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return kv, nil
}

// logEvents is how a logStore tells the group what happens. Calls come from
// Raft's goroutines and must not block.
type logEvents interface {
	// storeFailed: a write failed in a way that writing again cannot mend.
	storeFailed(index uint64, err error)
	// entryUnreadable is asked when an entry fails its check after the open. True
	// means: the group has halted and has no peers, so a no-op may stand in.
	entryUnreadable(index uint64, err error) bool
	// logGrew: so much was stored since the last compaction.
	logGrew(entries uint64, bytes int64)
}

// logStore is a raft.LogStore over bolt whose entries carry checksums and whose
// indexes have no gaps (raft.MonotonicLogStore), so that Raft empties it after
// an installed snapshot. It is safe for concurrent use.
type logStore struct {
	kv      *liveDB
	frames  framer
	stable  *stableStore
	members *memberFile
	events  logEvents
	clock   func() time.Time
	// boundary is the last entry that the newest snapshot stands for; set before Raft starts.
	boundary func() (index, term uint64)

	// writing is held from looking at the log's ends to noting the new ones: raft
	// cuts the log and appends to it from two goroutines.
	writing sync.Mutex

	mu          sync.Mutex
	first, last uint64
	cut         span     // was cut off for entries that are not stored yet, and raft goes by what was there
	newest      raft.Log // the last entry as it was stored, while it is; no index = not known
	sizes       []int64  // of the last entries that were stored in this run, at most mostTrailingLogs
	grownBy     uint64
	grownBytes  int64
	watch       writeTimes
}

var _ interface {
	raft.LogStore
	raft.MonotonicLogStore
} = (*logStore)(nil)

// span are the entries from one index to another, both inclusive. The zero value is none.
type span struct{ from, to uint64 }

// writeTimes is what the disk watchdog looks at.
type writeTimes struct {
	last, max time.Duration
	since     time.Time // start of the write under way, else zero
}

func newLogStore(kv *liveDB, frames framer, stable *stableStore, members *memberFile, events logEvents, clock func() time.Time) (*logStore, error) {
	s := &logStore{kv: kv, frames: frames, stable: stable, members: members, events: events, clock: clock,
		boundary: func() (uint64, uint64) { return 0, 0 }}
	err := guard(func() (err error) {
		if s.first, err = kv.FirstIndex(); err != nil {
			return err
		}
		s.last, err = kv.LastIndex()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open raft log: %w", err)
	}
	return s, nil
}

// IsMonotonic implements raft.MonotonicLogStore.
func (s *logStore) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (s *logStore) FirstIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, nil
}

// LastIndex implements raft.LogStore.
func (s *logStore) LastIndex() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, nil
}

// standIn marks what GetLog gives for an entry that is not there.
var standIn = []byte("the end of a snapshot")

func isStandIn(l *raft.Log) bool { return bytes.Equal(l.Extensions, standIn) }

// GetLog implements raft.LogStore. Errors: raft.ErrLogNotFound, ErrCorruptLog.
//
// Of the entry at the newest snapshot's end, which compaction may have removed, the term is
// known. A follower is asked for it when its log differs from the leader's right behind its
// snapshot; raft 1.7.3 looks only in the log, says no, is sent the same snapshot, and so on
// for ever. The first entry is never made up: a leader that lacks it has to send a snapshot.
// Nor is what stands in for an entry ever sent, see announcer.AppendEntries.
//
// An entry that was cut off for another one, which could not be stored then, say on a full disk,
// is one of no term, so that what the leader sends differs from it, and is stored. Raft 1.7.3
// goes by the log's end from before the cut, finds no entry, and would take none for ever.
func (s *logStore) GetLog(index uint64, l *raft.Log) error {
	if s.getNewest(index, l) {
		return nil
	}
	err := guard(func() error {
		if err := s.kv.GetLog(index, l); err != nil {
			return err
		}
		if l.Index != index {
			return fmt.Errorf("entry %d: %w: it calls itself %d", index, ErrCorruptLog, l.Index)
		}
		return s.frames.openEntry(l)
	})
	if end, term := s.boundary(); errors.Is(err, raft.ErrLogNotFound) && index == end && index > 1 {
		*l = raft.Log{Index: index, Term: term, Type: raft.LogNoop, Extensions: standIn}
		return nil
	}
	if errors.Is(err, raft.ErrLogNotFound) && s.wasCut(index) {
		*l = raft.Log{Index: index, Type: raft.LogCommand, Extensions: standIn}
		return nil
	}
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	if !errors.Is(err, ErrCorruptLog) {
		err = fmt.Errorf("entry %d: %w: %w", index, ErrCorruptLog, err)
	}
	// Raft panics on its own goroutine when a committed entry cannot be read.
	// Where no peer could be misled, it gets a no-op and the group is halted.
	if s.events.entryUnreadable(index, err) {
		*l = raft.Log{Index: index, Type: raft.LogNoop}
		return nil
	}
	return err
}

// getNewest is GetLog of the last entry, which a leader that has nothing to send asks for each
// time that it says so: it need not be opened each time. It holds what GetLog would give, since
// it is forgotten before anything is cut off and replaced once the next one is stored.
func (s *logStore) getNewest(index uint64, l *raft.Log) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest.Index == 0 || s.newest.Index != index {
		return false
	}
	*l = s.newest
	return true
}

func (s *logStore) wasCut(index uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut.from <= index && index <= s.cut.to
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. The entries must follow each other and the
// log's end; entries from the first one's index on are replaced.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	// Sealed under the lock: an entry that was sealed under a former key must not get
	// into a raft.db that was begun since, see Renew.
	framed, sizes := make([]*raft.Log, len(logs)), make([]int64, len(logs))
	for i, l := range logs {
		if l.Index != logs[0].Index+uint64(i) {
			return fmt.Errorf("store entry %d: %w: a gap in the batch", l.Index, ErrStorage)
		}
		c := *l
		c.Data = s.frames.sealEntry(l)
		framed[i] = &c
		sizes[i] = int64(len(c.Data)) + int64(len(c.Extensions))
	}
	if err := s.makeRoom(logs[0].Index); err != nil {
		return err
	}
	// A changed membership must be known even if raft.db is lost right after.
	for _, l := range logs {
		if l.Type == raft.LogConfiguration {
			if err := s.members.save(l.Index, raft.DecodeConfiguration(l.Data)); err != nil {
				return fmt.Errorf("store entry %d: %w: %w", l.Index, ErrStorage, err)
			}
		}
	}
	if err := s.write("store entries", logs[0].Index, func() error { return s.kv.StoreLogs(framed) }); err != nil {
		return err
	}
	s.stored(logs[0].Index, *logs[len(logs)-1], sizes)
	return nil
}

// makeRoom checks that index continues the log and drops what lies from there on
// (left over from a write that failed halfway).
func (s *logStore) makeRoom(index uint64) error {
	s.mu.Lock()
	first, last := s.first, s.last
	s.mu.Unlock()
	if last == 0 || index == last+1 {
		return nil
	}
	if index > last || index < first {
		return fmt.Errorf("store entry %d: %w: log is %d..%d", index, ErrStorage, first, last)
	}
	return s.deleteRange(index, last)
}

func (s *logStore) stored(from uint64, to raft.Log, sizes []int64) {
	s.mu.Lock()
	if s.first == 0 {
		s.first = from
	}
	s.last, s.newest, s.cut = to.Index, to, span{}
	s.grownBy += to.Index - from + 1
	for _, size := range sizes {
		s.grownBytes += size
	}
	s.sizes = append(s.sizes, sizes...)
	s.sizes = slices.Delete(s.sizes, 0, max(0, len(s.sizes)-mostTrailingLogs))
	entries, bytes := s.grownBy, s.grownBytes
	s.mu.Unlock()
	s.events.logGrew(entries, bytes)
}

// DeleteRange implements raft.LogStore: both ends inclusive, at the beginning or
// the end of the log, or all of it. Of all of it what lies behind the newest snapshot is kept
// where the log goes on from before that one's end: raft empties a log into which it has
// installed a snapshot, and goes on to believe that it ends where it did.
func (s *logStore) DeleteRange(from, to uint64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	end, _ := s.boundary()
	if from <= s.first && to >= s.last && s.first <= end && end < s.last {
		to = end
	}
	cuts := end < from && from <= s.last && s.last <= to
	s.mu.Unlock()
	if err := s.deleteRange(from, to); err != nil || !cuts {
		return err
	}
	s.mu.Lock()
	s.cut = span{from, to}
	s.mu.Unlock()
	return nil
}

func (s *logStore) deleteRange(from, to uint64) error {
	s.mu.Lock()
	first, last := s.first, s.last
	s.newest = raft.Log{}
	s.mu.Unlock()
	if last == 0 || to < from || to < first || from > last {
		return nil
	}
	if from > first && to < last {
		return fmt.Errorf("delete entries %d..%d: %w: a hole in %d..%d", from, to, ErrStorage, first, last)
	}
	if err := s.write("delete entries", from, func() error { return s.kv.DeleteRange(from, to) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case from <= first && to >= last:
		s.first, s.last, s.sizes = 0, 0, nil
	case from <= first:
		s.first = to + 1
	default:
		s.sizes = s.sizes[:max(0, len(s.sizes)-int(last-from+1))]
		s.last = from - 1
	}
	return nil
}

// within is how many of the last entries have no more than so many bytes together. Where all
// do that were stored in this run it is as many as are known at most.
func (s *logStore) within(bytes int64) (entries uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range slices.Backward(s.sizes) {
		if bytes -= size; bytes < 0 {
			return entries
		}
		entries++
	}
	return mostTrailingLogs
}

// firstIndex is FirstIndex, which cannot fail.
func (s *logStore) firstIndex() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// replaceFile lets f put another file with the same values under the stores.
func (s *logStore) replaceFile(f func(old boltKV) (boltKV, error)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	s.newest = raft.Log{} // Renew is to leave nothing of what was before
	s.mu.Unlock()
	return s.kv.replace(f)
}

// compacted starts the growth count anew; the group calls it after a snapshot.
func (s *logStore) compacted() {
	s.mu.Lock()
	s.grownBy, s.grownBytes = 0, 0
	s.mu.Unlock()
}

func (s *logStore) times() (last, longest, underWay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.watch.since.IsZero() {
		underWay = s.clock().Sub(s.watch.since)
	}
	return s.watch.last, s.watch.max, underWay
}

// write runs one transaction under the watchdog's clock. A full disk may be
// tried again; after any other failure nothing is known about what the disk
// holds, so the store refuses from then on.
func (s *logStore) write(op string, index uint64, f func() error) error {
	if err := s.stable.ready(); err != nil {
		return fmt.Errorf("%s from %d: %w", op, index, err)
	}
	s.mu.Lock()
	s.watch.since = s.clock()
	s.mu.Unlock()
	err := guard(f)
	s.mu.Lock()
	s.watch.last = s.clock().Sub(s.watch.since)
	s.watch.max = max(s.watch.max, s.watch.last)
	s.watch.since = time.Time{}
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s from %d: %w: %w", op, index, ErrStorage, err)
	if !isFull(err) {
		s.stable.refuse(err)
		s.events.storeFailed(index, err)
	}
	return err
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// sync puts everything on stable storage, also with NoSync.
func (s *logStore) sync() error { return guard(s.kv.Sync) }

func (s *logStore) close() error { return guard(s.kv.Close) }
