package projections

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"

	"mneme/internal/events"
	"mneme/internal/storage"
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

// facts is the projection of the state hash: one sum for each namespace.
type facts struct {
	defaults
	t       *tx
	sums    changes[events.ID, StateHash]
	scratch []byte
}

var factRows = declaration{
	name: "facts",
	rows: []rows{{prefix: prefixHash, key: "namespace16", holds: "state hash of the namespace, four little-endian u64"}},
	load: func(db *storage.DB, m *memory) error {
		sums := map[events.ID]*StateHash{}
		err := eachRow(db, []byte{prefixHash}, func(key, value []byte) error {
			if len(key) != 17 {
				return fmt.Errorf("hash key: %w", events.ErrMalformed)
			}
			h := decodeStateHash(value)
			sums[events.ID(key[1:])] = &h
			return nil
		})
		m.hashes = m.hashes.with(sums)
		return err
	},
}

func (f *facts) declared() *declaration { return &factRows }

// add counts a fact.
func (f *facts) add(ns events.ID, key, value []byte) StateHash {
	var h StateHash
	h, f.scratch = factHash(f.scratch, key, value)
	sum := f.sums.edit(ns)
	*sum = sum.Add(h)
	return h
}

// remove counts a fact out.
func (f *facts) remove(ns events.ID, key, value []byte) StateHash {
	var h StateHash
	h, f.scratch = factHash(f.scratch, key, value)
	f.removeSum(ns, h)
	return h
}

// removeSum counts facts out by the sum of their hashes.
func (f *facts) removeSum(ns events.ID, h StateHash) {
	sum := f.sums.edit(ns)
	*sum = sum.Sub(h)
}

func (f *facts) drop(ns events.ID, _ []uint32) { *f.sums.edit(ns) = StateHash{} }

func (f *facts) finish() error {
	for ns, sum := range f.sums.now {
		if err := f.t.b.Set(hashKey(ns), sum.encode(), nil); err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) publish(m *memory) { m.hashes = f.sums.after() }
