package events

import (
	"bytes"
	"fmt"
	"slices"
)

// MaxKeys is how many keys one key.destroyed may name.
const MaxKeys = 4096

// EncodeKeys is the payload of key.destroyed: the ids of the data keys that end,
// 16 bytes each, ascending, those of subjects and the combined ones that they are
// part of. It is not sealed: what could seal it ends, and an id says nothing.
func EncodeKeys(ids [][16]byte) []byte {
	b := make([]byte, 0, 16*len(ids))
	for _, id := range ids {
		b = append(b, id[:]...)
	}
	return b
}

// DecodeKeys parses what EncodeKeys wrote.
func DecodeKeys(payload []byte) ([][16]byte, error) {
	if len(payload) == 0 || len(payload)%16 != 0 || len(payload) > 16*MaxKeys {
		return nil, fmt.Errorf("key.destroyed of %d bytes: %w", len(payload), ErrMalformed)
	}
	var ids [][16]byte
	for id := range slices.Chunk(payload, 16) {
		if n := len(ids); n > 0 && bytes.Compare(ids[n-1][:], id) >= 0 {
			return nil, fmt.Errorf("key.destroyed: keys out of order: %w", ErrMalformed)
		}
		ids = append(ids, [16]byte(id))
	}
	return ids, nil
}
