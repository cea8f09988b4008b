package node

import (
	"context"
	"errors"
	"sync"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
)

// machine drives a shard's state for Raft. Its mutex keeps Raft's calls and an
// administrative swap of the state apart.
type machine struct {
	mu    sync.Mutex
	state *projections.State
	// restored is called after Raft replaced the state.
	restored func()
}

var _ raftfsm.Machine = (*machine)(nil)

func (m *machine) Apply(entries []raftfsm.Entry) ([]any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	commands := make([]projections.Command, len(entries))
	for i, e := range entries {
		commands[i] = projections.Command{Index: e.Index, Term: e.Term, Data: e.Data}
	}
	results, err := m.state.Apply(commands)
	if at := (*projections.CommandError)(nil); errors.As(err, &at) {
		return nil, &raftfsm.ApplyError{Index: at.Index, Err: at.Err}
	}
	return results, err
}

func (m *machine) AppliedIndex() (index, term uint64) { return m.state.AppliedIndex() }

func (m *machine) Flush() error { return m.state.Flush() }

func (m *machine) Checkpoint(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Checkpoint(dir)
}

func (m *machine) Restore(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.state.Restore(dir); err != nil {
		return err
	}
	if m.restored != nil {
		m.restored()
	}
	return nil
}

// renew puts a copy of the state in its place, see projections.State.Renew.
func (m *machine) renew() (gone func(context.Context) error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Renew()
}

// swap puts a rebuilt state in the present one's place.
func (m *machine) swap(sibling *projections.State, identity string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	index, term := m.state.AppliedIndex()
	if err := sibling.SetOrigin(index, term, identity); err != nil {
		return err
	}
	return m.state.Swap(sibling)
}
