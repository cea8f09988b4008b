package keyring

import (
	"errors"
	"fmt"
	"slices"
)

// Destroy ends keys for good, and the combined keys that they are part of. When it
// returns they are in no copy and no handle, and their ids are known as destroyed.
// What remains is wrapped under a new node secret; the old one is gone. Destroying
// again does nothing. An id that was never heard of is remembered as well, so that
// a restored keyring can follow the log. After an error it must be called again.
// Errors: ErrNotDestroyable, ErrClosed, the proposer's.
func (k *Keyring) Destroy(ids ...KeyID) error {
	_, err := k.propose(func() (*command, error) {
		left, err := k.toDestroy(ids)
		if err != nil || len(left) == 0 {
			return nil, err
		}
		c := &command{kind: kindDestroy, ids: left}
		c.next, err = newSecret(k.rand)
		return c, err
	})
	if err != nil {
		return fmt.Errorf("destroy %d keys: %w", len(ids), err)
	}
	return nil
}

// toDestroy gives those of ids that are not destroyed yet.
func (k *Keyring) toDestroy(ids []KeyID) (left []KeyID, err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return nil, ErrClosed
	}
	for _, id := range ids {
		d, known := k.lookup.keys[id]
		if id.IsZero() || id == k.node.id || d != nil && d.kind != kindData {
			return nil, fmt.Errorf("key %s: %w", id, ErrNotDestroyable)
		}
		if d != nil || !known {
			left = append(left, id)
		}
	}
	return left, nil
}

// DestroyNamespace ends all of a namespace's keys, as Destroy does. Its
// identity cannot be used again. Errors: ErrClosed, the proposer's.
func (k *Keyring) DestroyNamespace(ns NamespaceID) error {
	_, err := k.propose(func() (*command, error) {
		_, err := k.Namespace(ns)
		if errors.Is(err, ErrDestroyed) {
			return nil, nil
		}
		if err != nil && !errors.Is(err, ErrNoKey) {
			return nil, err
		}
		c := &command{kind: kindDestroyNamespace, ns: ns}
		c.next, err = newSecret(k.rand)
		return c, err
	})
	if err != nil {
		return fmt.Errorf("destroy namespace %s: %w", hexID(ns), err)
	}
	return nil
}

// Ending gives the keys that end with these keys of a namespace's subjects: those
// themselves and every combined key that one of them is part of, ascending. A key
// that is destroyed already counts. Errors: ErrNoKey, ErrNotDestroyable for the
// namespace's own key and for what is no subject's, ErrClosed.
func (k *Keyring) Ending(ns NamespaceID, ids ...KeyID) ([]KeyID, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var out []KeyID
	for _, id := range ids {
		d, known := k.lookup.keys[id]
		switch {
		case d == nil && (k.closed || !known):
			return nil, fmt.Errorf("end key %s: %w", id, k.absentLocked(known))
		case d != nil && (d.kind != kindData || d.ns != ns || d.tag == subjectTag{}):
			return nil, fmt.Errorf("end key %s: %w", id, ErrNotDestroyable)
		}
		out = append(out, id)
	}
	for _, c := range k.table.combined {
		if slices.ContainsFunc(c.members, func(id KeyID) bool { return slices.Contains(ids, id) }) {
			out = append(out, c.id)
		}
	}
	slices.SortFunc(out, compareIDs)
	return slices.Compact(out), nil
}
