package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"testing"
)

// bounded is a hash that takes so many bytes in all.
type bounded struct {
	hash.Hash
	t    *testing.T
	left int
}

func (h *bounded) Write(b []byte) (int, error) {
	if h.left -= len(b); h.left < 0 {
		h.t.Fatal("more is hashed than the block holds, many times over")
	}
	return h.Hash.Write(b)
}

// TestSearchBehindDamageHashedQuadratically: at each byte of what was damaged, as many
// bytes were hashed as stood there for a length. A start took 13 s for 8 MB.
func TestSearchBehindDamageHashedQuadratically(t *testing.T) {
	const size = 2 << 20
	random := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(random[i:], rng.Uint64())
	}
	for name, damaged := range map[string][]byte{
		"random": random, "zeros": make([]byte, size), "lengths of a megabyte": bytes.Repeat([]byte{0, 0, 16, 0}, size/4),
		"ones": bytes.Repeat([]byte{1, 0, 0, 0}, size/4), "text": bytes.Repeat([]byte("nothing "), size/8),
	} {
		for _, at := range []int{0, 64} { // from the block's beginning, or behind a record
			t.Run(fmt.Sprintf("%s from %d", name, at), func(t *testing.T) {
				sum, err := blockHash("stream-1")
				if err != nil {
					t.Fatal(err)
				}
				r := &records{b: bytes.Clone(damaged), sum: sum}
				if at > 0 {
					copy(r.b, r.erased(0, at, 7))
				}
				copy(r.b[size-64:], r.erased(size-64, size, 9)) // one that is sound
				r.sum = &bounded{Hash: sum, t: t, left: 3 * size}
				if found := r.unsound(); len(found) != 1 || found[0].offset != int64(at) || len(found[0].fix) != size-64-at {
					t.Errorf("%d findings", len(found))
				}
			})
		}
	}
}
