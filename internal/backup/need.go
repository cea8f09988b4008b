package backup

import (
	"mneme/internal/events"
	"mneme/internal/keyring"
)

// Need are the ids of keys and namespaces that a log speaks of, in clear.
type Need map[[16]byte]struct{}

// See adds what a frame needs.
func (n Need) See(f *events.Frame) {
	for _, b := range f.Events {
		e, err := events.DecodeEnvelope(b)
		if err != nil {
			continue // the fold passes over it
		}
		switch e.Type {
		case events.TypeNamespaceCreated, events.TypeNamespacePlaced:
			n[e.Namespace] = struct{}{}
		}
		if e.Key != (events.Header{}).Key {
			n[e.Key] = struct{}{}
		}
	}
}

// open reports whether keys hold all but what was destroyed.
func (n Need) open(keys *keyring.BackupHead, gone map[[16]byte]bool) bool {
	for id := range n {
		if !gone[id] && !keys.Holds(id) {
			return false
		}
	}
	return true
}

// openWith is open with a backup of keys; one that does not tell what it holds counts as one
// that opens nothing.
func (n Need) openWith(keys []byte, gone map[[16]byte]bool) bool {
	head, err := keyring.ReadBackupHead(keys)
	if err != nil {
		return false
	}
	defer head.Wipe()
	return n.open(head, gone)
}
