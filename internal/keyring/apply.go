package keyring

import (
	"errors"
	"fmt"

	"mneme/memory"
)

// Proposer brings commands to the keyrings of all nodes, in one order. It is the
// keyring's own on a single node and a Raft group in a cluster.
type Proposer interface {
	// Propose returns once Apply was called here with the command, and gives its
	// answer. After an error it is not known whether that will happen. It may bring
	// a command more than once: whatever a command asks for is done already when it
	// comes again, and one that comes after a destruction is VerdictAgain.
	Propose(command []byte) (Answer, error)
}

// alone applies commands at once: on one node the file that Apply writes is the
// log.
type alone struct{ k *Keyring }

// Propose implements Proposer.
func (p alone) Propose(command []byte) (Answer, error) {
	p.k.write.Lock()
	defer p.k.write.Unlock()
	at := p.k.state.cursor
	return p.k.apply(cursor{at.index + 1, at.term}, command)
}

// nobody refuses commands: who orders them is not known yet.
type nobody struct{}

// Propose implements Proposer.
func (nobody) Propose([]byte) (Answer, error) {
	return Answer{}, memory.Errorf(memory.CodeUnavailable, "this node is not connected to the cluster's keys yet").
		WithHint("nothing was changed; send it again").WithCause(ErrNoGroup)
}

// apply is Machine.Apply; the caller holds write.
func (k *Keyring) apply(at cursor, sealed []byte) (Answer, error) {
	index := at.index
	if k.closed {
		return Answer{}, fmt.Errorf("apply keyring command %d: %w", index, ErrClosed)
	}
	if k.state.blank() {
		return Answer{}, fmt.Errorf("apply keyring command %d: %w", index, ErrBlank)
	}
	if index <= k.state.index {
		return Answer{Verdict: VerdictOld}, nil
	}
	e, err := k.judge(sealed)
	if err == nil && e.table != nil {
		if err = k.persist(at, sealed, e); err != nil {
			e.discard()
		}
	}
	if err != nil {
		return Answer{}, fmt.Errorf("apply keyring command %d: %w", index, err)
	}
	k.land(at, e)
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
func (k *Keyring) persist(at cursor, sealed []byte, e *effect) error {
	record := append(at.appendTo(nil), sealed...)
	if e.next == nil && !k.file.mustCut(len(record)) {
		return k.file.append(record)
	}
	next := &state{cursor: at, ended: k.state.ended, command: k.command, table: e.table}
	if e.next == nil {
		return k.cut(next)
	}
	next.command, next.ended = e.next, at.index
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
	k.moved.wake()
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
			a, err = k.proposedBy().Propose(sealed)
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

func (k *Keyring) proposedBy() Proposer {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.proposer
}

// sealNow seals a command under the present command key.
func (k *Keyring) sealNow(c *command) ([]byte, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return nil, ErrClosed
	}
	if k.state.blank() {
		return nil, ErrBlank
	}
	return sealCommand(c, k.command, k.rand)
}
