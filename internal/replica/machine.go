package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
)

// machine drives a shard's state for Raft. Its mutex keeps Raft's calls and
// whatever else replaces the state apart.
type machine struct {
	mu       sync.Mutex
	state    *projections.State
	replaced func() // is told that Raft replaced the state; it must not wait
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
	m.replaced()
	return nil
}

// renew puts a copy of the state in its place, see projections.State.Renew.
func (m *machine) renew() (gone func(context.Context) error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Renew()
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
