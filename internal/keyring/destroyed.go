package keyring

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
)

// Destroyed lists the ids of all keys that were destroyed, and of the namespaces whose
// keys were, each ascending. Errors: ErrClosed, ErrBlank.
func Destroyed(k *Keyring) (keys []KeyID, spaces []NamespaceID, err error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.closed {
		return nil, nil, fmt.Errorf("list destroyed keys: %w", ErrClosed)
	}
	if k.state.blank() {
		return nil, nil, fmt.Errorf("list destroyed keys: %w", ErrBlank)
	}
	keys, spaces = slices.Clone(k.table.deadKeys), slices.Clone(k.table.deadSpaces)
	for _, s := range k.table.spaces {
		for _, grave := range s.dead {
			keys = append(keys, grave.id)
		}
	}
	slices.SortFunc(keys, compareIDs)
	slices.SortFunc(spaces, func(a, b NamespaceID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(keys), slices.Compact(spaces), nil
}

// DestroyAgain destroys what Destroyed listed, in a keyring that may be older than the
// list. Combined keys in it end with their members. Errors: as of Destroy.
func DestroyAgain(k *Keyring, keys []KeyID, spaces []NamespaceID) error {
	var single []KeyID
	k.mu.RLock()
	for _, id := range keys {
		if d := k.lookup.keys[id]; d == nil || d.kind == kindData {
			single = append(single, id)
		}
	}
	k.mu.RUnlock()
	if err := k.Destroy(single...); err != nil {
		return err
	}
	for _, ns := range spaces {
		if err := k.DestroyNamespace(ns); err != nil {
			return err
		}
	}
	return k.Destroy(keys...) // a combined key whose members lived on is refused
}

// IntactBackup checks the form of a backup of a keyring and its checksum, and opens
// nothing. Errors: ErrDamaged, ErrNewerFormat, ErrOlderFormat.
func IntactBackup(raw []byte) error {
	h, err := decodeBackup(raw)
	h.Wipe()
	return err
}

// MasterInBackup is the master key that a backup carries, as a source that leaves no file;
// nil where it carries none. Errors: as of IntactBackup.
func MasterInBackup(raw []byte) (MasterSource, error) {
	h, err := decodeBackup(raw)
	defer h.Wipe()
	if err != nil || h.master == nil {
		return nil, err
	}
	return MasterText{Name: "the backup of the keys", Text: hex.EncodeToString(h.master[:])}, nil
}
