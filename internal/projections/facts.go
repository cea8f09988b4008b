package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"mneme/internal/events"
)

// StateHash is a sum modulo 2^256 of SHA-256 over facts. Order does not
// matter, and adding or removing a fact costs the same however large the state
// is (incremental multiset hashing: Bellare and Micciancio 1997, AdHash).
type StateHash [4]uint64 // little-endian words

// String prints 64 hexadecimal digits, most significant first.
func (h StateHash) String() string {
	var b [32]byte
	for i, w := range h {
		binary.BigEndian.PutUint64(b[24-8*i:], w)
	}
	return hex.EncodeToString(b[:])
}

// Add returns h + o.
func (h StateHash) Add(o StateHash) StateHash {
	var c uint64
	for i := range h {
		h[i], c = bits.Add64(h[i], o[i], c)
	}
	return h
}

// Sub returns h - o.
func (h StateHash) Sub(o StateHash) StateHash {
	var c uint64
	for i := range h {
		h[i], c = bits.Sub64(h[i], o[i], c)
	}
	return h
}

func (h StateHash) encode() []byte {
	b := make([]byte, 0, 32)
	for _, w := range h {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func decodeStateHash(b []byte) StateHash {
	var h StateHash
	if len(b) == 32 {
		for i := range h {
			h[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	}
	return h
}

// factHash is SHA-256(u32 key length ‖ key ‖ value) as a number.
func factHash(scratch []byte, key, value []byte) (StateHash, []byte) {
	scratch = be32(scratch[:0], uint32(len(key)))
	scratch = append(scratch, key...)
	scratch = append(scratch, value...)
	sum := sha256.Sum256(scratch)
	return decodeStateHash(sum[:]), scratch
}

// addFact writes a new row that is a fact of the namespace.
func (t *tx) addFact(ns events.ID, key, value []byte) error {
	t.noteFact(ns, key, value)
	return t.b.Set(key, value, nil)
}

// replaceFact overwrites a fact.
func (t *tx) replaceFact(ns events.ID, key, old, value []byte) error {
	t.dropFact(ns, key, old)
	return t.addFact(ns, key, value)
}

// deleteFact removes a fact.
func (t *tx) deleteFact(ns events.ID, key, old []byte) error {
	t.dropFact(ns, key, old)
	return t.b.Delete(key, nil)
}

// noteFact counts a fact whose row somebody else writes.
func (t *tx) noteFact(ns events.ID, key, value []byte) {
	var h StateHash
	h, t.scratch = factHash(t.scratch, key, value)
	n := t.namespace(ns)
	n.hash = n.hash.Add(h)
}

func (t *tx) dropFact(ns events.ID, key, value []byte) {
	var h StateHash
	h, t.scratch = factHash(t.scratch, key, value)
	n := t.namespace(ns)
	n.hash = n.hash.Sub(h)
}
