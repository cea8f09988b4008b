package keyring

import (
	"errors"
	"fmt"
	"slices"
)

// Destroy ends keys for good. When it returns they are in no copy and no
// handle, what remains is wrapped under a new intermediate key, the old one is
// gone, and their ids are known as destroyed; so are the combined keys that
// they were part of. Destroying again does nothing, and an id never heard of is
// remembered all the same, so that a restored keyring can follow the log. After
// an error nothing is destroyed in memory, and it must be called again. Errors:
// ErrNotDestroyable, ErrClosed, the store's.
func (k *Keyring) Destroy(ids ...KeyID) error {
	k.write.Lock()
	defer k.write.Unlock()
	dead, order, err := k.toDestroy(ids)
	if err != nil || len(order) == 0 {
		return err
	}
	next := k.table.clone()
	ended := next.bury(dead, order)
	if err := k.saveAnew(next); err != nil {
		return fmt.Errorf("destroy %d keys: %w", len(order), err)
	}
	for _, c := range ended {
		order = append(order, c.id)
	}
	k.forget(order)
	return nil
}

// toDestroy gives those of ids that are not destroyed yet.
func (k *Keyring) toDestroy(ids []KeyID) (dead map[KeyID]bool, order []KeyID, err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return nil, nil, fmt.Errorf("destroy keys: %w", ErrClosed)
	}
	dead = make(map[KeyID]bool, len(ids))
	for _, id := range ids {
		d, known := k.lookup.keys[id]
		if id.IsZero() || d != nil && d.kind != kindData {
			return nil, nil, fmt.Errorf("destroy key %s: %w", id, ErrNotDestroyable)
		}
		if dead[id] || known && d == nil {
			continue
		}
		dead[id] = true
		order = append(order, id)
	}
	return dead, order, nil
}

// saveAnew saves t under a new intermediate key and wipes the old one.
func (k *Keyring) saveAnew(t *table) error {
	mid, err := newSecret(k.rand)
	if err != nil {
		return err
	}
	if err := k.save(t, mid); err != nil {
		mid.wipe()
		return err
	}
	k.mid.wipe()
	k.mid = mid
	return nil
}

// forget marks keys as destroyed for readers, then wipes them.
func (k *Keyring) forget(ids []KeyID) {
	var gone []*DataKey
	k.mu.Lock()
	for _, id := range ids {
		d := k.lookup.keys[id]
		k.lookup.keys[id] = nil
		if d == nil {
			continue
		}
		gone = append(gone, d)
		if d.kind == kindData {
			k.lookup.subjects[subjectRef{d.ns, d.tag}] = nil
		}
	}
	k.mu.Unlock()
	for _, d := range gone {
		d.wipe(ErrDestroyed)
	}
}

// DestroyNamespace ends all of a namespace's keys, as Destroy does. Its
// identity cannot be used again. Errors: ErrClosed, the store's.
func (k *Keyring) DestroyNamespace(ns NamespaceID) error {
	k.write.Lock()
	defer k.write.Unlock()
	names, err := k.Namespace(ns)
	if errors.Is(err, ErrDestroyed) {
		return nil
	}
	if err != nil && !errors.Is(err, ErrNoKey) {
		return err
	}
	next := k.table.clone()
	var gone []KeyID
	var graves []tomb
	if i := next.find(ns); i >= 0 {
		for _, d := range next.spaces[i].keys {
			gone = append(gone, d.id)
		}
		graves = next.spaces[i].dead
		for _, c := range next.burySpace(i) {
			gone = append(gone, c.id)
		}
	} else {
		next.deadSpaces = append(slices.Clone(next.deadSpaces), ns)
	}
	if err := k.saveAnew(next); err != nil {
		return fmt.Errorf("destroy namespace %s: %w", hexID(ns), err)
	}
	k.endSpace(ns, names, gone, graves)
	return nil
}

func (k *Keyring) endSpace(ns NamespaceID, names *NamespaceKeys, gone []KeyID, graves []tomb) {
	k.mu.Lock()
	k.lookup.spaces[ns] = nil
	for _, grave := range graves {
		delete(k.lookup.subjects, subjectRef{ns, grave.tag})
	}
	k.mu.Unlock()
	k.forget(gone)
	if names != nil {
		names.wipe()
	}
}
