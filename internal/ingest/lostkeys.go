package ingest

import (
	"errors"
	"fmt"
	"strings"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
)

// LostKeysError says that a keyring lacks keys that a state knows and that have not
// ended: it is an older copy, or another node's. Nothing may be sealed beside it,
// or a subject would get a second key that the right keyring lacks. It matches
// keyring.ErrNoKey.
type LostKeysError struct {
	Namespaces []string // whose keys are missing altogether
	Keys       int      // how many are missing in other namespaces
}

func (e *LostKeysError) Error() string {
	var of []string
	for _, name := range e.Namespaces[:min(len(e.Namespaces), 3)] {
		of = append(of, fmt.Sprintf("all of namespace %q", name))
	}
	if more := len(e.Namespaces) - len(of); more > 0 {
		of = append(of, fmt.Sprintf("all of %d more namespaces", more))
	}
	if e.Keys > 0 {
		of = append(of, fmt.Sprintf("%d of subjects in others", e.Keys))
	}
	return "the keyring lacks keys that the state knows: " + strings.Join(of, ", ")
}

// Unwrap makes errors.Is(err, keyring.ErrNoKey) true.
func (e *LostKeysError) Unwrap() error { return keyring.ErrNoKey }

// CheckKeys compares a keyring with a state: each key that an event tells of, or that
// seals something, must be there unless it has ended. It reads a row or two for each
// subject. Keys that the keyring says are destroyed are there: TellKeys sees to
// them. Errors: *LostKeysError, those of the state.
func CheckKeys(v *projections.View, keys *keyring.Keyring) error {
	var lost LostKeysError
	without := map[events.ID]bool{}
	for _, ns := range v.Namespaces() {
		if _, err := keys.Namespace(ns.ID); errors.Is(err, keyring.ErrNoKey) {
			without[ns.ID] = true
			lost.Namespaces = append(lost.Namespaces, ns.Name)
		}
	}
	missing := map[keyring.KeyID]bool{}
	known := func(key [16]byte) bool {
		_, err := keys.KeyByID(key)
		return !errors.Is(err, keyring.ErrNoKey)
	}
	err := v.UnknownKeys(known, func(ns events.ID, key [16]byte) {
		if !without[ns] {
			missing[key] = true
		}
	})
	if err != nil {
		return fmt.Errorf("compare the keyring with the state: %w", err)
	}
	if lost.Keys = len(missing); lost.Keys+len(without) == 0 {
		return nil
	}
	return &lost
}
