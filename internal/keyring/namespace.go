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

// NamespaceKeys makes the keyed hashes of a namespace: its search terms and its
// names. It is safe for concurrent use. Once the namespace is destroyed, or the
// keyring closed, all results are zeros.
type NamespaceKeys struct {
	id    NamespaceID
	macs  *macPool
	cache *termCache

	mu                sync.RWMutex // as in DataKey
	index             *secret      // the stored key, nil once wiped; the others are derived
	term, names, tags *secret
}

func newNamespaceKeys(id NamespaceID, index *secret, macs *macPool, cache *termCache) *NamespaceKeys {
	return &NamespaceKeys{
		id: id, macs: macs, cache: cache, index: index,
		term: index.derive("term"), names: index.derive("names"), tags: index.derive("subject tag"),
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

// TermKey is the first 12 bytes of HMAC-SHA-256(term key, field ‖ analyzer ‖
// term), the same in all partitions of the namespace. Frequent terms come from
// a bounded cache that all namespaces share. term is not kept.
func (n *NamespaceKeys) TermKey(field, analyzer uint8, term string) [12]byte {
	hash := n.cache.hash(n, field, analyzer, term)
	if key, ok := n.cache.get(hash, n, field, analyzer, term); ok {
		return key
	}
	return n.computeTermKey(hash, field, analyzer, term)
}

func (n *NamespaceKeys) computeTermKey(hash uint64, field, analyzer uint8, term string) [12]byte {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.index == nil {
		return [12]byte{}
	}
	m := n.macs.get()
	defer n.macs.put(m)
	m.begin(n.term)
	m.word[0], m.word[1] = field, analyzer
	m.write(m.word[:2])
	m.writeString(term)
	key := [12]byte(m.end()[:12])
	// Under the lock, so that a wipe's purge finds it.
	n.cache.put(hash, n, field, analyzer, term, key)
	return key
}

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
	for _, s := range []*secret{n.index, n.term, n.names, n.tags} {
		s.wipe()
	}
	n.index = nil
	n.mu.Unlock()
	n.cache.purge(n)
}

// String gives the namespace's identity, nothing more.
func (n *NamespaceKeys) String() string {
	if n == nil {
		return "namespacekeys(none)"
	}
	return "namespacekeys(" + hex.EncodeToString(n.id[:]) + ")"
}

// GoString is String.
func (n *NamespaceKeys) GoString() string { return n.String() }

// Format prints String for every verb.
func (n *NamespaceKeys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, n.String()) }

// LogValue is String.
func (n *NamespaceKeys) LogValue() slog.Value { return slog.StringValue(n.String()) }
