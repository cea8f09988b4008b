package keyring

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// subjectTag stands for a subject's name: the first 16 bytes of its HMAC under
// the namespace's tag key. Zero stands for the namespace itself.
type subjectTag [16]byte

// NamespaceKeys makes the keyed hashes of a namespace's names. It is safe for
// concurrent use. Once the namespace is destroyed, or the keyring closed, all
// results are zeros.
type NamespaceKeys struct {
	id   NamespaceID
	macs *macPool

	mu          sync.RWMutex // as in DataKey
	index       *secret      // the stored key, nil once wiped; the others are derived
	names, tags *secret
}

func newNamespaceKeys(id NamespaceID, index *secret, macs *macPool) *NamespaceKeys {
	return &NamespaceKeys{
		id: id, macs: macs, index: index,
		names: index.derive("names"), tags: index.derive("subject tag"),
	}
}

// HasNamespaces reports whether a namespace ever had keys here, destroyed ones
// included.
func (k *Keyring) HasNamespaces() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.lookup.spaces) > 0
}

// ID returns the namespace's identity.
func (n *NamespaceKeys) ID() NamespaceID { return n.id }

// MAC is HMAC-SHA-256(name key, len(label) ‖ label ‖ data), the length in 8
// bytes: for subjects, client ids, uris, conversations, tags, by label.
func (n *NamespaceKeys) MAC(label string, data []byte) [32]byte {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.index == nil {
		return [32]byte{}
	}
	return n.macs.labelled(n.names, label, data)
}

// tag gives what the keyring keeps instead of the subject's name.
func (n *NamespaceKeys) tag(subject string) (tag subjectTag) {
	if subject == "" {
		return tag
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.index == nil {
		return tag
	}
	m := n.macs.get()
	defer n.macs.put(m)
	m.begin(n.tags)
	m.writeString(subject)
	copy(tag[:], m.end())
	return tag
}

func (n *NamespaceKeys) wipe() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range []*secret{n.index, n.names, n.tags} {
		s.wipe()
	}
	n.index = nil
}

// String gives the namespace's identity, nothing more.
func (n *NamespaceKeys) String() string {
	if n == nil {
		return "namespacekeys(none)"
	}
	return "namespacekeys(" + hex.EncodeToString(n.id[:]) + ")"
}

// Format prints String for every verb.
func (n *NamespaceKeys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, n.String()) }

// LogValue is String.
func (n *NamespaceKeys) LogValue() slog.Value { return slog.StringValue(n.String()) }
