package keygroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/keyring"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// machine is a keyring as the state of a Raft group.
type machine struct {
	keys    keyring.Machine
	fs      vfs.FS
	applied chan struct{}   // has room for one: something was applied or restored
	closing context.Context // ends before the group does
	log     *slog.Logger
}

var _ raftfsm.Machine = (*machine)(nil)

// Machine is a keyring as the state of a group that somebody else drives: a simulation.
// Its checkpoints lie in fsys.
func Machine(keys *keyring.Keyring, fsys vfs.FS) raftfsm.Machine {
	return &machine{keys: keys.Machine(), fs: fsys, applied: make(chan struct{}, 1), closing: context.Background(), log: slog.New(slog.DiscardHandler)}
}

// Apply implements raftfsm.Machine. Each command is durable with its index before the
// next one is applied, so a batch that is cut short goes on behind the last of them.
func (m *machine) Apply(entries []raftfsm.Entry) ([]any, error) {
	defer m.tell()
	answers := make([]any, len(entries))
	for i, e := range entries {
		a, err := m.apply(e)
		if err != nil {
			return nil, &raftfsm.ApplyError{Index: e.Index, Err: err}
		}
		answers[i] = a
	}
	return answers, nil
}

// fullPause is how long a full disk is given before the next try.
const fullPause = 200 * time.Millisecond

// apply waits while the disk has no room: what is agreed on has to be applied some time,
// and a group that halted would stay so when there is room again.
func (m *machine) apply(e raftfsm.Entry) (a keyring.Answer, err error) {
	for told := false; ; told = true {
		if a, err = m.keys.Apply(e.Index, e.Term, e.Data); !storage.IsNoSpace(err) {
			return a, err
		}
		if !told {
			m.log.Error("a change of the keys cannot be applied until there is room on the disk", "index", e.Index, "err", err)
		}
		select {
		case <-time.After(fullPause):
		case <-m.closing.Done():
			return a, err
		}
	}
}

// tell wakes who looks whether keys were destroyed.
func (m *machine) tell() {
	select {
	case m.applied <- struct{}{}:
	default:
	}
}

// AppliedIndex implements raftfsm.Machine.
func (m *machine) AppliedIndex() (index, term uint64) { return m.keys.AppliedIndex() }

// Flush implements raftfsm.Machine: what changed something is durable when Apply
// returns, and what changed nothing may be applied again.
func (m *machine) Flush() error { return nil }

// snapshotName is the file of a checkpoint. It holds keyring.Machine.Snapshot.
const snapshotName = "keyring"

// Checkpoint implements raftfsm.Machine. Its mark is the index of the last destruction.
func (m *machine) Checkpoint(dir string) (mark uint64, err error) {
	snapshot, err := m.keys.Snapshot()
	if err != nil {
		return 0, err
	}
	defer clear(snapshot)
	if err := m.fs.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	f, err := m.fs.Create(m.fs.PathJoin(dir, snapshotName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(snapshot)
	return m.keys.EndedAt(), errors.Join(err, f.Close())
}

// Restore implements raftfsm.Machine.
func (m *machine) Restore(dir string) error {
	snapshot, err := storage.ReadFile(m.fs, m.fs.PathJoin(dir, snapshotName))
	if err != nil {
		return fmt.Errorf("restore the keys: %w", err)
	}
	defer clear(snapshot)
	defer m.tell()
	return m.keys.Restore(snapshot)
}
