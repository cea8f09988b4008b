package keyring

import (
	"errors"
	"fmt"
	"io"
)

// save seals t and stores it. It does not make t take effect.
func (k *Keyring) save(t *table, mid *secret) error {
	image, err := sealImage(t, k.master, mid, k.rand)
	if err != nil {
		return err
	}
	if err := k.store.Save(image); err != nil {
		return fmt.Errorf("save keyring: %w", err)
	}
	k.mu.Lock()
	k.table = t
	k.mu.Unlock()
	return nil
}

// newKey makes a key that is not durable yet.
func (k *Keyring) newKey(ns NamespaceID, tag subjectTag) (*DataKey, error) {
	d := &DataKey{ns: ns, tag: tag, macs: k.macs}
	if _, err := io.ReadFull(k.rand, d.id[:]); err != nil {
		return nil, fmt.Errorf("make key: read randomness: %w", err)
	}
	_, err := k.KeyByID(d.id)
	if d.id.IsZero() || !errors.Is(err, ErrNoKey) {
		// Never by chance. Saved, it would make an image that does not open.
		return nil, fmt.Errorf("make key: id %s is taken: randomness repeats", d.id)
	}
	if d.raw, err = newSecret(k.rand); err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return d, nil
}

// CreateNamespace makes a namespace's keys: its own data key, and those for
// terms and names. They are durable when it returns. Making it again does
// nothing. Errors: ErrDestroyed for an identity that was used up, ErrClosed,
// the store's.
func (k *Keyring) CreateNamespace(ns NamespaceID) error {
	k.write.Lock()
	defer k.write.Unlock()
	_, err := k.Namespace(ns)
	if !errors.Is(err, ErrNoKey) {
		return err // also nil: it is there
	}
	index, err := newSecret(k.rand)
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", hexID(ns), err)
	}
	own, err := k.newKey(ns, subjectTag{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", hexID(ns), err)
	}
	s := &space{names: newNamespaceKeys(ns, index, k.macs, k.cache), keys: []*DataKey{own}}
	next := k.table.clone()
	next.spaces = append(next.spaces, s)
	if err := k.save(next, k.mid); err != nil {
		own.wipe(ErrNoKey)
		s.names.wipe()
		return fmt.Errorf("create namespace %s: %w", hexID(ns), err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lookup.spaces[ns] = s.names
	k.addLocked(own)
	return nil
}

func (k *Keyring) addLocked(d *DataKey) {
	k.lookup.keys[d.id] = d
	k.lookup.subjects[subjectRef{d.ns, d.tag}] = d
}

// EnsureSubjects gives the ids of the subjects' keys in their order and makes
// those that are missing, with one Save for all; created[i] says that the key
// was made for subjects[i]. They are durable when it returns. A subject whose
// key was destroyed gets a new one, with a new id; "" is the namespace itself,
// whose key is never made anew. After an error nothing was made. Errors:
// ErrNoKey or ErrDestroyed for the namespace, ErrClosed, the store's.
func (k *Keyring) EnsureSubjects(ns NamespaceID, subjects []string) (ids []KeyID, created []bool, err error) {
	names, err := k.Namespace(ns)
	if err != nil {
		return nil, nil, err
	}
	tags := make([]subjectTag, len(subjects))
	for i, subject := range subjects {
		tags[i] = names.tag(subject)
	}
	ids, created = make([]KeyID, len(subjects)), make([]bool, len(subjects))
	if k.findAll(ns, tags, ids) {
		return ids, created, nil
	}
	if err := k.makeSubjects(ns, tags, ids, created); err != nil {
		return nil, nil, fmt.Errorf("ensure %d subjects of namespace %s: %w", len(subjects), hexID(ns), err)
	}
	return ids, created, nil
}

// findAll fills ids, and reports whether all are there.
func (k *Keyring) findAll(ns NamespaceID, tags []subjectTag, ids []KeyID) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	all := true
	for i, tag := range tags {
		if d := k.lookup.subjects[subjectRef{ns, tag}]; d != nil {
			ids[i] = d.id
		} else {
			all = false
		}
	}
	return all
}

func (k *Keyring) makeSubjects(ns NamespaceID, tags []subjectTag, ids []KeyID, created []bool) error {
	k.write.Lock()
	defer k.write.Unlock()
	if _, err := k.Namespace(ns); err != nil {
		return err // it went meanwhile
	}
	k.findAll(ns, tags, ids)
	var fresh []*DataKey
	byTag := make(map[subjectTag]KeyID)
	discard := func(err error) error {
		for _, d := range fresh {
			d.wipe(ErrNoKey)
		}
		return err
	}
	for i, tag := range tags {
		if !ids[i].IsZero() {
			continue
		}
		if tag == (subjectTag{}) {
			return discard(ErrDestroyed)
		}
		id, ok := byTag[tag]
		if !ok {
			d, err := k.newKey(ns, tag)
			if err != nil {
				return discard(err)
			}
			fresh, id, created[i] = append(fresh, d), d.id, true
			byTag[tag] = id
		}
		ids[i] = id
	}
	if len(fresh) == 0 {
		return nil
	}
	next := k.table.clone()
	i := next.find(ns)
	s := *next.spaces[i]
	// May write behind the old table's end, where it does not look.
	s.keys = append(s.keys, fresh...)
	next.spaces[i] = &s
	if err := k.save(next, k.mid); err != nil {
		return discard(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range fresh {
		k.addLocked(d)
	}
	return nil
}
