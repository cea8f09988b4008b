package backup

import (
	"encoding/json"
	"fmt"

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

func (d Destroyed) encode() ([]byte, error) { return json.Marshal(d) }

func decodeDestroyed(b []byte) (d Destroyed, err error) {
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("list of destroyed keys: %w: %w", err, ErrNotIntact)
	}
	return d, nil
}
