package keyring

import (
	"fmt"
	"slices"
)

// Combine gives the key for what is about several subjects: it is derived from
// all their keys and gone with any of them. Order and repetition do not matter;
// a combined key counts as its members; one key alone is itself. The
// composition is durable when it returns, so that KeyByID finds it for ever.
// Errors: ErrNoKey (also for no ids), ErrDestroyed, ErrClosed, the
// proposer's.
func (k *Keyring) Combine(ids []KeyID) (*DataKey, error) {
	for {
		d, _, err := k.combination(ids)
		if d != nil || err != nil {
			return d, err
		}
		// Then it is there, or a member was destroyed: combination says which.
		_, err = k.propose(func() (*command, error) {
			d, c, err := k.combination(ids)
			if d != nil || err != nil {
				return nil, err
			}
			return &command{kind: kindCombine, ids: c.members}, nil
		})
		if err != nil {
			return nil, fmt.Errorf("combine %d keys: %w", len(ids), err)
		}
	}
}

// combination gives the key if there is one, else what it would be made of.
func (k *Keyring) combination(ids []KeyID) (*DataKey, combination, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var members []KeyID
	for _, id := range ids {
		d, ok := k.lookup.keys[id]
		if d == nil {
			return nil, combination{}, fmt.Errorf("combine %d keys: key %s: %w", len(ids), id, k.absentLocked(ok))
		}
		switch d.kind {
		case kindData:
			members = append(members, id)
		case kindCombined:
			members = append(members, d.members...)
		default:
			return nil, combination{}, fmt.Errorf("combine %d keys: key %s is no subject's: %w", len(ids), id, ErrNoKey)
		}
	}
	slices.SortFunc(members, compareIDs)
	members = slices.Compact(members)
	switch len(members) {
	case 0:
		return nil, combination{}, fmt.Errorf("combine no keys: %w", k.absentLocked(false))
	case 1:
		return k.lookup.keys[members[0]], combination{}, nil
	}
	c := newCombination(members)
	return k.lookup.keys[c.id], c, nil
}

// combinedKey makes the key of c, whose members are all in keys and alive.
func combinedKey(c combination, keys map[KeyID]*DataKey, macs *macPool) *DataKey {
	parts := make([]*DataKey, len(c.members))
	for i, id := range c.members {
		parts[i] = keys[id]
	}
	return &DataKey{id: c.id, kind: kindCombined, macs: macs, members: c.members, raw: combineRaw(parts)}
}
