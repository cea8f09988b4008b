package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// machine drives a shard's state for Raft. Its mutex keeps Raft's calls and
// whatever else replaces the state apart.
type machine struct {
	mu       sync.Mutex
	state    *projections.State
	fs       vfs.FS
	replaced func() // is told that Raft replaced the state; it must not wait
	log      *slog.Logger
	room     *room
	keys     keysOrder     // nil = there is no other keyring that the ranges were made with
	closing  chan struct{} // closed before the group is
	resumed  chan struct{} // has room for one: a state that had stopped goes on
}

func newMachine(state *projections.State, fs vfs.FS, replaced func(), log *slog.Logger) *machine {
	return &machine{state: state, fs: fs, replaced: replaced, log: log, room: newRoom(), closing: make(chan struct{}), resumed: make(chan struct{}, 1)}
}

var _ raftfsm.Resumer = (*machine)(nil)

func (m *machine) Apply(entries []raftfsm.Entry) ([]any, error) {
	if err := m.awaitKeys(entries); err != nil {
		return nil, err
	}
	if m.keys != nil {
		has, _ := m.keys.AppliedIndex()
		assert.Always(has >= KeysNeeded(entries), "what is applied has its keys", nil)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	commands := make([]projections.Command, len(entries))
	for i, e := range entries {
		commands[i] = projections.Command{Index: e.Index, Term: e.Term, Data: e.Data}
	}
	results, err := m.applyWithRoom(commands)
	if at := (*projections.CommandError)(nil); errors.As(err, &at) {
		return nil, &raftfsm.ApplyError{Index: at.Index, Err: at.Err}
	}
	return results, err
}

// fullPause is how long a replica waits for room before it tries again.
const fullPause = 200 * time.Millisecond

// applyWithRoom applies commands, and waits while the disk has no room for them: a
// group that halted would stay so when there is room again. What was refused changed
// nothing, so it is given again with all behind it, since what is agreed on has to be
// applied some time. It gives up where the store itself has stopped, and when the replica
// is closed. The caller holds the lock, which is free while it waits.
func (m *machine) applyWithRoom(commands []projections.Command) ([]any, error) {
	results := make([]any, 0, len(commands))
	for told := false; ; told = true {
		some, err := m.state.Apply(commands[len(results):])
		results = append(results, some...)
		if !storage.IsNoSpace(err) || errors.Is(err, storage.ErrHalted) {
			if told {
				m.room.set(nil)
			}
			if told && err == nil {
				m.log.Info("there is room again: the state goes on")
			}
			return results, err
		}
		if !told {
			m.room.set(fmt.Errorf("%w: %w", ErrFull, err))
			m.log.Error("what was agreed on cannot be applied to the state until there is room on the disk", "err", err)
		}
		if !m.pause() {
			return nil, err
		}
	}
}

// pause waits before the next try. It reports false when the replica is closed.
func (m *machine) pause() bool {
	m.mu.Unlock()
	defer m.mu.Lock()
	select {
	case <-time.After(fullPause):
		return true
	case <-m.closing:
		return false
	}
}

func (m *machine) AppliedIndex() (index, term uint64) { return m.state.AppliedIndex() }

func (m *machine) Flush() error { return m.state.Flush() }

// Checkpoint's mark is the log's sequence at which the copy stands. Beside the state a
// copy for others names the keys that it needs.
func (m *machine) Checkpoint(dir string) (mark uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.untold(); err != nil {
		return 0, err
	}
	err = m.state.Checkpoint(dir)
	if err == nil && m.keys != nil {
		err = WriteKeys(m.fs, dir, m.keys.ChangedAt())
	}
	return m.state.Cursor().Seq, err
}

func (m *machine) Restore(dir string) error {
	if err := m.awaitKeysOf(dir); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.state.Restore(dir); err != nil {
		return err
	}
	m.replaced()
	return nil
}

// renew puts a copy of the state in its place, see projections.State.Renew, unless a
// snapshot has taken the place of the tables that are to be copied.
func (m *machine) renew(of string) (now string, gone func(context.Context) error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is := m.state.Generation(); is != of {
		return "", nil, fmt.Errorf("the state %s was replaced by %s meanwhile", of, is)
	}
	gone, err = m.state.Renew()
	return m.state.Generation(), gone, err
}

// swap puts a rebuilt state in the present one's place. Nothing is applied
// meanwhile: catchUp brings the sibling to the sequence where the state stands.
func (m *machine) swap(sibling *projections.State, catchUp func(to uint64) error) (out Rebuilt, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	want := m.state.Cursor()
	if err := catchUp(want.Seq); err != nil {
		return out, err
	}
	if got := sibling.Cursor(); got.Seq != want.Seq || got.Chain != want.Chain {
		return out, fmt.Errorf("the log leads to %s, the state stands at %s", got.Position(), want.Position())
	}
	out.At = want
	if out.Before, err = stateHash(m.state); err == nil {
		out.After, err = stateHash(sibling)
	}
	if err != nil {
		return out, err
	}
	if err := sibling.SetOrigin(want.RaftIndex, want.RaftTerm, want.Stream()); err != nil {
		return out, err
	}
	return out, m.state.Swap(sibling)
}

func stateHash(s *projections.State) (projections.StateHash, error) {
	v := s.View()
	return v.Hash(), v.Close()
}
