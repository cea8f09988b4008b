package keyring

import (
	"errors"
	"fmt"
	"io"
)

// newKey draws a key for a command.
func (k *Keyring) newKey(tag subjectTag) (f freshKey, err error) {
	f.tag = tag
	if _, err := io.ReadFull(k.rand, f.id[:]); err != nil {
		return f, fmt.Errorf("make key: read randomness: %w", err)
	}
	if f.raw, err = newSecret(k.rand); err != nil {
		return f, fmt.Errorf("make key: %w", err)
	}
	return f, nil
}

// CreateNamespace makes a namespace's keys: its own data key, and those for
// names. They are durable when it returns. Making it again does
// nothing. Errors: ErrDestroyed for an identity that was used up, ErrClosed,
// the proposer's.
func (k *Keyring) CreateNamespace(ns NamespaceID) error {
	_, err := k.propose(func() (*command, error) {
		_, err := k.Namespace(ns)
		if !errors.Is(err, ErrNoKey) {
			return nil, err // also nil: it is there
		}
		c := &command{kind: kindCreateNamespace, ns: ns}
		if c.index, err = newSecret(k.rand); err != nil {
			return nil, err
		}
		own, err := k.newKey(subjectTag{})
		c.fresh = []freshKey{own}
		return c, err
	})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", hexID(ns), err)
	}
	return nil
}

// EnsureSubjects gives the ids of the subjects' keys in their order and makes
// those that are missing, with one command for all; created[i] says that the key
// was made for subjects[i]. They are durable when it returns. A subject whose
// key was destroyed gets a new one, with a new id; "" is the namespace itself,
// whose key is never made anew. After an error nothing was made. Errors:
// ErrNoKey or ErrDestroyed for the namespace, ErrClosed, the proposer's.
func (k *Keyring) EnsureSubjects(ns NamespaceID, subjects []string) (ids []KeyID, created []bool, err error) {
	names, err := k.Namespace(ns)
	if err != nil {
		return nil, nil, err
	}
	tags := make([]subjectTag, len(subjects))
	for i, subject := range subjects {
		tags[i] = names.tag(subject)
	}
	ids, made := make([]KeyID, len(subjects)), make(map[KeyID]bool)
	// More than once only if a key was destroyed just after it had been made.
	for !k.findAll(ns, tags, ids) {
		_, err := k.propose(func() (*command, error) {
			c, err := k.missing(ns, tags, ids)
			if c != nil { // A command that came twice says of its keys the second time that they are there.
				for _, f := range c.fresh {
					made[f.id] = true
				}
			}
			return c, err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("ensure %d subjects of namespace %s: %w", len(subjects), hexID(ns), err)
		}
	}
	created = make([]bool, len(subjects))
	for i, id := range ids {
		created[i] = made[id]
		delete(made, id)
	}
	return ids, created, nil
}

// findAll fills ids, and reports whether all are there.
func (k *Keyring) findAll(ns NamespaceID, tags []subjectTag, ids []KeyID) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	all := true
	for i, tag := range tags {
		ids[i] = KeyID{}
		if d := k.lookup.subjects[subjectRef{ns, tag}]; d != nil {
			ids[i] = d.id
		} else {
			all = false
		}
	}
	return all
}

// missing makes the command for subjects that have no key.
func (k *Keyring) missing(ns NamespaceID, tags []subjectTag, ids []KeyID) (*command, error) {
	if _, err := k.Namespace(ns); err != nil {
		return nil, err // it went meanwhile
	}
	if k.findAll(ns, tags, ids) {
		return nil, nil
	}
	c := &command{kind: kindEnsureSubjects, ns: ns}
	seen := make(map[subjectTag]bool)
	for i, tag := range tags {
		if !ids[i].IsZero() || seen[tag] {
			continue
		}
		if tag == (subjectTag{}) {
			return nil, ErrDestroyed
		}
		seen[tag] = true
		f, err := k.newKey(tag)
		if err != nil {
			c.wipe()
			return nil, err
		}
		c.fresh = append(c.fresh, f)
	}
	return c, nil
}
