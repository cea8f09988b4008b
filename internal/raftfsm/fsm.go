package raftfsm

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

// A marker is a command of the group itself: it goes through the log like any
// other but not to the machine. Each term begins with one, so that every commit
// index that a leader hands out is seen by every replica's fsm (raft's own
// no-ops and barriers are not).
var markerExtension = []byte{1}

func isMarker(l *raft.Log) bool { return len(l.Extensions) == 1 && l.Extensions[0] == 1 }

// fsm stands between raft and the machine. Its raft.FSM methods run on raft's
// apply goroutine; only a snapshot that raft declines to take (see resnapshot)
// comes from elsewhere.
type fsm struct {
	machine  Machine
	snaps    *snapshotStore
	dir      string // where a restored snapshot is unpacked
	log      *slog.Logger
	progress *progress
	kept     func(index uint64, l *raft.Log) error // reads an entry again; nil = a halt is for good
	resumed  func()                                // hears that a halt is over; may be nil

	mu   sync.Mutex // one of Apply, Checkpoint and Restore at a time
	seen uint64     // last index that raft handed over in this run
}

var (
	_ raft.BatchingFSM  = (*fsm)(nil)
	_ raft.FSMSnapshot  = (*fsmSnapshot)(nil)
	_ raft.SnapshotSink = (*snapshotSink)(nil)
)

// outcome is what the fsm answers for one log entry.
type outcome struct {
	result any
	err    error
	began  time.Time // applying, for those who measure; no state depends on it
}

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. Every answer is an outcome. It panics, as raft does,
// where a committed entry is not in the log: the next start finds where that ends.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	if i := slices.IndexFunc(logs, isStandIn); i >= 0 {
		panic(fmt.Sprintf("entry %d is committed, and was cut off this replica's log", logs[i].Index))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.apply(logs, make([]any, len(logs)))
}

func (f *fsm) apply(logs []*raft.Log, out []any) []any {
	if f.progress.haltedErr() != nil {
		return f.applyHalted(logs, out)
	}
	applied, _ := f.machine.AppliedIndex()
	var entries []Entry
	var at []int
	for i, l := range logs {
		out[i] = outcome{}
		if l.Type == raft.LogCommand && !isMarker(l) && l.Index > applied {
			entries = append(entries, Entry{Index: l.Index, Term: l.Term, Data: l.Data})
			at = append(at, i)
		}
	}
	if len(entries) > 0 {
		began := time.Now()
		results, err := f.applyEntries(entries)
		if err != nil {
			_ = f.halt(entries[0].Index, err)
			return f.applyHalted(logs, out)
		}
		for n, i := range at {
			out[i] = outcome{result: results[n], began: began}
		}
	}
	f.seen = logs[len(logs)-1].Index
	f.progress.advance(f.seen)
	return out
}

func fill(out []any, err error) []any {
	for i := range out {
		out[i] = outcome{err: err}
	}
	return out
}

// applyEntries calls the machine and checks what it promises.
func (f *fsm) applyEntries(entries []Entry) (results []any, err error) {
	last := entries[len(entries)-1]
	err = guard(func() (err error) {
		n := len(entries)
		if results, err = f.machine.Apply(entries); err != nil {
			return err
		}
		if len(results) != n {
			return fmt.Errorf("machine gave %d results for %d entries", len(results), n)
		}
		if index, term := f.machine.AppliedIndex(); index != last.Index || term != last.Term {
			return fmt.Errorf("machine stands at %d/%d after entry %d/%d", index, term, last.Index, last.Term)
		}
		return nil
	})
	return results, err
}

// halt stops the group, for good or until it resumes, and returns the error to answer with.
func (f *fsm) halt(index uint64, cause error) error {
	if at := (*ApplyError)(nil); errors.As(cause, &at) {
		index = at.Index
	}
	h := &HaltError{Index: index, Cause: cause}
	if !f.progress.halt(h) {
		return f.progress.haltedErr()
	}
	args := []any{"index", index, "error", cause}
	var p interface{ Stack() []byte }
	if errors.As(cause, &p) && p.Stack() != nil {
		args = append(args, "stack", string(p.Stack()))
	}
	f.log.Error("group is halted", args...)
	return h
}

// Snapshot implements raft.FSM: a checkpoint only.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.progress.haltedErr(); err != nil {
		return nil, err // raft's index runs on, the state does not
	}
	index, term := f.machine.AppliedIndex()
	if index > f.seen {
		// Right after a start raft replays what the machine already has; a
		// snapshot under raft's index would hold a later state.
		return nil, fmt.Errorf("snapshot: replaying %d of %d", f.seen, index)
	}
	return f.checkpoint(index, term)
}

func (f *fsm) checkpoint(index, term uint64) (*fsmSnapshot, error) {
	tmp, err := f.snaps.tempDir()
	if err != nil {
		return nil, err
	}
	var mark uint64
	err = guard(func() (err error) {
		mark, err = f.machine.Checkpoint(f.snaps.fs.PathJoin(tmp, "data"))
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoint: %w", err), f.snaps.fs.RemoveAll(tmp))
	}
	return &fsmSnapshot{fs: f.snaps.fs, machine: f.machine, tmp: tmp, index: index, term: term, mark: mark}, nil
}

// fsmSnapshot is a checkpoint that waits to become a snapshot.
type fsmSnapshot struct {
	fs          vfs.FS
	machine     Machine
	tmp         string
	index, term uint64
	mark        uint64
}

// Persist implements raft.FSMSnapshot. It runs beside Apply. Raft truncates its
// log after it, so the machine is flushed first.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	own, ok := sink.(*snapshotSink)
	if !ok {
		return fmt.Errorf("persist snapshot: foreign sink %T", sink)
	}
	if err := guard(s.machine.Flush); err != nil {
		return fmt.Errorf("persist snapshot: flush: %w", err)
	}
	if err := own.adopt(s.tmp, s.index, s.term, s.mark); err != nil {
		return fmt.Errorf("persist snapshot: %w", err)
	}
	return own.Close()
}

// Release implements raft.FSMSnapshot. What Persist renamed is not there any more.
func (s *fsmSnapshot) Release() { _ = s.fs.RemoveAll(s.tmp) } // leftovers go at the next open

// Restore implements raft.FSM: unpack beside, check everything, swap last.
func (f *fsm) Restore(source io.ReadCloser) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.progress.haltedErr(); err != nil {
		return err
	}
	if err := f.restore(source); err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	return nil
}

func (f *fsm) restore(source io.Reader) (err error) {
	if err := f.snaps.fs.RemoveAll(f.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.snaps.fs.RemoveAll(f.dir)) }()
	man, err := receiveSnapshot(source, f.snaps.fs, f.dir)
	if err != nil {
		return err
	}
	if have, _ := f.machine.AppliedIndex(); have >= man.AppliedIndex && have != 0 {
		// A state never goes back. Raft may install what this replica already has.
		assert.Reachable("a snapshot comes that is no newer than the state", nil)
		f.restored(man)
		return nil
	}
	if err := guard(func() error { return f.machine.Restore(f.dir) }); err != nil {
		return err
	}
	if index, term := f.machine.AppliedIndex(); index != man.AppliedIndex || term != man.AppliedTerm {
		return f.halt(man.AppliedIndex, fmt.Errorf("machine stands at %d/%d after a restore of %d/%d",
			index, term, man.AppliedIndex, man.AppliedTerm))
	}
	assert.Reachable("a snapshot takes the state's place", nil)
	f.restored(man)
	return nil
}

func (f *fsm) restored(man *manifest) {
	f.seen = man.Index
	f.snaps.restored(man.Index)
	f.progress.advance(man.Index)
}

// progress is how far the fsm has come, and whether it halted. It is safe for
// concurrent use.
type progress struct {
	mu      sync.Mutex
	index   uint64
	halted  *HaltError
	changed chan struct{} // closed and replaced at each change that somebody waits for
	haltCh  chan struct{}
}

func newProgress(index uint64) *progress {
	return &progress{index: index, haltCh: make(chan struct{})}
}

func (p *progress) advance(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if index > p.index {
		p.index = index
		p.wakeLocked()
	}
}

// halt reports whether h is the first.
func (p *progress) halt(h *HaltError) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted != nil {
		return false
	}
	p.halted = h
	close(p.haltCh)
	p.wakeLocked()
	return true
}

func (p *progress) wakeLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *progress) reached() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.index
}

func (p *progress) haltedErr() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted == nil {
		return nil
	}
	return p.halted
}

// poll returns done if index is reached, an error if it never will be, or a
// channel that closes at the next change.
func (p *progress) poll(index uint64) (done bool, changed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.index >= index {
		return true, nil, nil
	}
	if p.halted != nil {
		return false, nil, p.halted
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return false, p.changed, nil
}
