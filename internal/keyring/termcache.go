package keyring

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"
)

const (
	defaultTermCache = 1 << 17
	// maxCachedTerm bounds the cache in bytes; longer terms are rare and are computed.
	maxCachedTerm = 64
)

// termCache is a two-way set-associative table of immutable entries, read
// without locks. A lost race costs one entry, never a wrong answer: an entry
// carries all that it was computed from.
type termCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[termEntry]
}

type termEntry struct {
	ns              *NamespaceKeys
	term            string
	field, analyzer uint8
	key             [12]byte
}

// newTermCache makes room for the given number of terms, rounded up to a power of two.
func newTermCache(entries int) *termCache {
	if entries <= 0 {
		entries = defaultTermCache
	}
	size := 1 << bits.Len(uint(max(entries, 2)-1))
	return &termCache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[termEntry], size)}
}

func (c *termCache) hash(n *NamespaceKeys, field, analyzer uint8, term string) uint64 {
	h := maphash.String(c.seed, term)
	// A ULID ends in random bytes. The multiplier spreads what differs in few bits.
	salt := binary.LittleEndian.Uint64(n.id[8:]) ^ uint64(field)<<8 ^ uint64(analyzer)
	return h ^ salt*0x9e3779b97f4a7c15
}

// set gives the index of the first of the two slots.
func (c *termCache) set(hash uint64) uint64 { return hash & uint64(len(c.slots)-1) &^ 1 }

func (c *termCache) get(hash uint64, n *NamespaceKeys, field, analyzer uint8, term string) ([12]byte, bool) {
	i := c.set(hash)
	if e := c.slots[i].Load(); e.is(n, field, analyzer, term) {
		return e.key, true
	}
	if e := c.slots[i+1].Load(); e.is(n, field, analyzer, term) {
		return e.key, true
	}
	return [12]byte{}, false
}

func (e *termEntry) is(n *NamespaceKeys, field, analyzer uint8, term string) bool {
	return e != nil && e.ns == n && e.field == field && e.analyzer == analyzer && e.term == term
}

// put copies term, so as not to hold on to the text it was cut from.
func (c *termCache) put(hash uint64, n *NamespaceKeys, field, analyzer uint8, term string, key [12]byte) {
	if len(term) > maxCachedTerm {
		return
	}
	i := c.set(hash)
	victim := i + hash>>63
	switch {
	case c.slots[i].Load() == nil:
		victim = i
	case c.slots[i+1].Load() == nil:
		victim = i + 1
	}
	c.slots[victim].Store(&termEntry{ns: n, term: strings.Clone(term), field: field, analyzer: analyzer, key: key})
}

// purge forgets a namespace's terms.
func (c *termCache) purge(n *NamespaceKeys) {
	for i := range c.slots {
		if e := c.slots[i].Load(); e != nil && e.ns == n {
			c.slots[i].CompareAndSwap(e, nil)
		}
	}
}
