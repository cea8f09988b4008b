package backup

import (
	"encoding/json"
	"fmt"
	"slices"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// Destroyed are the keys and namespaces that were destroyed up to a backup.
type Destroyed memory.DestroyedKeys

// Count is how many there are.
func (d Destroyed) Count() int { return len(d.Keys) + len(d.Namespaces) }

// IDs reads the ids.
func (d Destroyed) IDs() (keys []keyring.KeyID, spaces []keyring.NamespaceID, err error) {
	for _, s := range d.Keys {
		var id keyring.KeyID
		if err := id.UnmarshalText([]byte(s)); err != nil {
			return nil, nil, fmt.Errorf("list of destroyed keys: %w", err)
		}
		keys = append(keys, id)
	}
	for _, s := range d.Namespaces {
		id, err := events.ParseID(s)
		if err != nil {
			return nil, nil, fmt.Errorf("list of destroyed namespaces: %w", err)
		}
		spaces = append(spaces, keyring.NamespaceID(id))
	}
	return keys, spaces, nil
}

// set gives the ids of both; what is no id is left out.
func (d Destroyed) set() map[[16]byte]bool {
	out := make(map[[16]byte]bool, d.Count())
	keys, spaces, err := d.IDs()
	if err != nil {
		return out // a restore refuses it
	}
	for _, id := range keys {
		out[id] = true
	}
	for _, id := range spaces {
		out[id] = true
	}
	return out
}

// Living counts those that live in a backup of keys; 0 where it does not tell.
func (d Destroyed) Living(keys []byte) (n int) {
	head, err := keyring.ReadBackupHead(keys)
	if err != nil {
		return 0
	}
	defer head.Wipe()
	for id := range d.set() {
		if head.Holds(id) {
			n++
		}
	}
	return n
}

// equal reports whether two lists name the same.
func (d Destroyed) equal(o Destroyed) bool {
	return slices.Equal(d.Keys, o.Keys) && slices.Equal(d.Namespaces, o.Namespaces)
}

// with gives what one of two lists names, or both.
func (d Destroyed) with(o Destroyed) Destroyed {
	both := func(a, b []string) []string {
		all := append(append([]string{}, a...), b...)
		slices.Sort(all)
		return slices.Compact(all)
	}
	d.Keys, d.Namespaces = both(d.Keys, o.Keys), both(d.Namespaces, o.Namespaces)
	return d
}

// encode gives equal lists equal bytes.
func (d Destroyed) encode() ([]byte, error) {
	d = d.with(Destroyed{})
	d.Former = nil // which is said by manifests
	return json.Marshal(d)
}

func decodeDestroyed(b []byte) (d Destroyed, err error) {
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("list of destroyed keys: %w: %w", err, ErrNotIntact)
	}
	return d, nil
}
