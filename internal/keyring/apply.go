package keyring

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Proposer brings commands to the keyrings of all nodes, in one order. It is the
// keyring's own on a single node and a Raft group in a cluster.
type Proposer interface {
	// Propose returns once Apply was called here with the command, and gives its
	// answer. After an error it is not known whether that will happen.
	Propose(command []byte) (Answer, error)
}

// alone applies commands at once: on one node the file that Apply writes is the
// log.
type alone struct{ k *Keyring }

// Propose implements Proposer.
func (p alone) Propose(command []byte) (Answer, error) {
	p.k.write.Lock()
	defer p.k.write.Unlock()
	return p.k.apply(p.k.state.index+1, command)
}

// Apply brings one command to this node's keyring. The answer is the same on
// every node that applied the same commands; it is durable here when Apply
// returns. Indexes rise; a command that was applied before is passed over. After
// an error the command was not applied here: it must be brought again, before
// any later one. Errors: ErrNewerFormat for a command of a newer version,
// ErrClosed, the file system's.
func (k *Keyring) Apply(index uint64, command []byte) (Answer, error) {
	k.write.Lock()
	defer k.write.Unlock()
	return k.apply(index, command)
}

func (k *Keyring) apply(index uint64, sealed []byte) (Answer, error) {
	if k.closed {
		return Answer{}, fmt.Errorf("apply keyring command %d: %w", index, ErrClosed)
	}
	if index <= k.state.index {
		return Answer{Verdict: VerdictOld}, nil
	}
	e, err := k.judge(sealed)
	if err == nil && e.table != nil {
		if err = k.persist(index, sealed, e); err != nil {
			e.discard()
		}
	}
	if err != nil {
		return Answer{}, fmt.Errorf("apply keyring command %d: %w", index, err)
	}
	k.land(index, e)
	return e.Answer, nil
}

// judge opens a command and says what it comes to.
func (k *Keyring) judge(sealed []byte) (*effect, error) {
	c, err := openCommand(sealed, k.command)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return nil, err
	case err != nil:
		return refused(VerdictBroken), nil
	case c == nil:
		return refused(VerdictAgain), nil
	}
	e := k.decide(c) // it copies the keys that it takes
	c.index.wipe()
	for _, f := range c.fresh {
		f.raw.wipe()
	}
	return e, nil
}

// persist makes an effect durable: as a record behind the image or, if keys end
// or the records would outgrow the image, as a new image. Where keys end, what
// remains is wrapped under a new node secret before the former one goes.
func (k *Keyring) persist(index uint64, sealed []byte, e *effect) error {
	record := append(binary.BigEndian.AppendUint64(nil, index), sealed...)
	if e.next == nil && !k.file.mustCut(len(record)) {
		return k.file.append(record)
	}
	next := &state{index: index, command: k.command, table: e.table}
	if e.next == nil {
		return k.cut(next)
	}
	next.command = e.next
	return k.renew(next, k.storage.table.Load())
}

// cut writes s as an image without records.
func (k *Keyring) cut(s *state) error {
	plain := s.encode()
	defer clear(plain)
	image, err := k.secrets.wrap(imageVersion, imageLabel, plain)
	if err != nil {
		return err
	}
	return k.file.cut(image)
}

// renew writes s and t, the storage keys, under a new node secret, and then ends
// the former one: no older copy of either file opens from then on.
func (k *Keyring) renew(s *state, t *storageTable) error {
	if err := k.secrets.begin(); err != nil {
		return err
	}
	if err := k.rewrap(s, t); err != nil {
		k.file.suspect = true // the image may hold what is not in memory
		return err
	}
	return nil
}

// rewrap writes both under the current node secret and ends the former ones.
func (k *Keyring) rewrap(s *state, t *storageTable) error {
	if err := k.cut(s); err != nil {
		return err
	}
	if err := k.storage.save(t); err != nil {
		return err
	}
	return k.secrets.finish()
}

// Snapshot gives the machine's whole state, in clear: whoever writes it anywhere
// seals it first, and clears it afterwards. Errors: ErrClosed.
func (k *Keyring) Snapshot() ([]byte, error) {
	k.write.Lock()
	defer k.write.Unlock()
	if k.closed {
		return nil, fmt.Errorf("take a snapshot of the keyring: %w", ErrClosed)
	}
	plain := k.state.encode()
	defer clear(plain)
	return append([]byte{snapshotVersion}, plain...), nil
}

// Restore puts a snapshot in place of what is here, which the snapshot must not
// be older than. Handles of keys that are in both stay good; all others die.
// After an error nothing has changed. Errors: ErrDamaged, ErrNewerFormat,
// ErrClosed, the file system's.
func (k *Keyring) Restore(snapshot []byte) error {
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

// swap lets a restored state be seen. Handles that somebody may hold go on, if
// their keys do: a later destruction must reach them.
func (k *Keyring) swap(s *state) {
	old, oldCommand := k.lookup, k.command
	kept := make(map[*DataKey]bool)
	for _, sp := range s.table.spaces {
		if names := old.spaces[sp.names.id]; names != nil && *names.index == *sp.names.index {
			sp.names = names
		}
		for i, d := range sp.keys {
			if had := old.keys[d.id]; had.equal(d) {
				sp.keys[i] = had
				kept[had] = true
			}
		}
	}
	if had := old.keys[s.table.cluster.id]; had.equal(s.table.cluster) {
		s.table.cluster = had
		kept[had] = true
	}
	next := newLookup(s.table, k.macs)
	for id, d := range next.keys {
		if had := old.keys[id]; d != nil && d.kind == kindCombined && had.equal(d) {
			next.keys[id] = had
			kept[had] = true
		}
	}
	k.mu.Lock()
	k.state, k.lookup = *s, next
	k.mu.Unlock()
	oldCommand.wipe()
	for id, d := range old.keys {
		if d == nil || kept[d] {
			continue
		}
		why := ErrNoKey
		if _, known := next.keys[id]; known {
			why = ErrDestroyed
		}
		d.wipe(why)
	}
	for ns, names := range old.spaces {
		if names != nil && next.spaces[ns] != names {
			names.wipe()
		}
	}
}

// proposeTries is how often a command is made anew because keys were destroyed
// between its making and its turn.
const proposeTries = 16

// propose makes a command and brings it to all nodes, anew if it was overtaken.
// make gives nil if there is nothing to do any more; it runs without locks.
func (k *Keyring) propose(make func() (*command, error)) (Answer, error) {
	var a Answer
	for range proposeTries {
		c, err := make()
		if err != nil || c == nil {
			return Answer{}, err
		}
		sealed, err := k.sealNow(c)
		c.wipe()
		if err == nil {
			a, err = k.proposer.Propose(sealed)
		}
		if err != nil {
			return Answer{}, err
		}
		if a.Verdict != VerdictAgain {
			return a, a.err()
		}
	}
	return a, a.err()
}

// sealNow seals a command under the present command key.
func (k *Keyring) sealNow(c *command) ([]byte, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return nil, ErrClosed
	}
	return sealCommand(c, k.command, k.rand)
}
