package keyring

import (
	"context"
	"fmt"
)

// Machine is the keyring as the group sees it that orders the commands: what they are
// applied to, and what a snapshot is taken of and put into. It is safe for concurrent
// use.
type Machine struct{ k *Keyring }

// Machine gives the keyring as its group sees it.
func (k *Keyring) Machine() Machine { return Machine{k} }

// SetProposer says who orders the commands of a keyring that was opened for a group;
// with nil nobody does, and commands are refused as unavailable. Errors: ErrNoGroup
// where the keyring was not: its commands have been ordered here.
func (m Machine) SetProposer(p Proposer) error {
	k := m.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.grouped {
		return fmt.Errorf("set the keyring's proposer: %w", ErrNoGroup)
	}
	if p == nil {
		p = nobody{}
	}
	k.proposer = p
	return nil
}

// AppliedIndex is the index and the term of the last command that was applied here;
// zeros where the keyring is blank. What commands that changed nothing added to it is
// forgotten when the keyring is opened again.
func (m Machine) AppliedIndex() (index, term uint64) {
	k := m.k
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state.index, k.state.term
}

// ChangedAt is an index such that a keyring that stands there has every key that this
// one has. It is never lower after a restart.
func (m Machine) ChangedAt() uint64 {
	k := m.k
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state.changed
}

// EndedAt is the index of the last command that destroyed keys; 0 = none did.
func (m Machine) EndedAt() uint64 {
	k := m.k
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state.ended
}

// Wait returns once the command at index is applied here, or a later one. Errors:
// ErrClosed, ctx's.
func (m Machine) Wait(ctx context.Context, index uint64) error {
	k := m.k
	for {
		k.mu.Lock()
		reached, closed, moved := k.state.index >= index, k.closed, k.moved.channel()
		k.mu.Unlock()
		switch {
		case closed:
			return fmt.Errorf("wait for keyring command %d: %w", index, ErrClosed)
		case reached:
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for keyring command %d: %w", index, ctx.Err())
		}
	}
}

// Blank reports whether the keyring holds no keys and waits for a snapshot.
func (m Machine) Blank() bool {
	k := m.k
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state.blank()
}

// Apply brings one command to this node's keyring. The answer is the same on
// every node that applied the same commands; it is durable here when Apply
// returns. Indexes rise; a command that was applied before is passed over. After
// an error the command was not applied here: it must be brought again, before
// any later one. Errors: ErrBlank, ErrNewerFormat for a command of a newer version,
// ErrClosed, the file system's.
func (m Machine) Apply(index, term uint64, command []byte) (Answer, error) {
	k := m.k
	k.write.Lock()
	defer k.write.Unlock()
	return k.apply(cursor{index, term}, command)
}

// Snapshot gives the machine's whole state, in clear: whoever writes it anywhere
// seals it first, and clears it afterwards. Errors: ErrBlank, ErrClosed.
func (m Machine) Snapshot() ([]byte, error) {
	k := m.k
	k.write.Lock()
	defer k.write.Unlock()
	if k.closed {
		return nil, fmt.Errorf("take a snapshot of the keyring: %w", ErrClosed)
	}
	if k.state.blank() {
		return nil, fmt.Errorf("take a snapshot of the keyring: %w", ErrBlank)
	}
	plain := k.state.encode()
	defer clear(plain)
	return append([]byte{snapshotVersion}, plain...), nil
}

// Restore puts a snapshot in place of what is here, which the snapshot must not
// be older than. Handles of keys that are in both stay good; all others die.
// After an error nothing has changed. Errors: ErrDamaged, ErrNewerFormat,
// ErrClosed, the file system's.
func (m Machine) Restore(snapshot []byte) error {
	k := m.k
	k.write.Lock()
	defer k.write.Unlock()
	if k.closed {
		return fmt.Errorf("restore keyring: %w", ErrClosed)
	}
	s, err := decodeSnapshot(snapshot, k.macs)
	if err != nil {
		return fmt.Errorf("restore keyring: %w", err)
	}
	if s.index < k.state.index {
		s.wipe()
		return fmt.Errorf("restore keyring: %w: the snapshot ends at command %d, the keyring is at %d", ErrDamaged, s.index, k.state.index)
	}
	// As after a destruction: what the snapshot no longer has must open nowhere.
	if err := k.renew(s, k.storage.table.Load()); err != nil {
		s.wipe()
		return fmt.Errorf("restore keyring: %w", err)
	}
	k.swap(s)
	return nil
}

// signal wakes those that wait for something to change. Its owner guards it.
type signal struct{ c chan struct{} }

// channel is closed by the next wake.
func (s *signal) channel() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) wake() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
