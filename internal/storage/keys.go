package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Key parts. Encodings keep order: the bytewise order of two encodings is the
// order of the two values, also when further parts follow.
//
//	uint32, uint64   big endian, 4 or 8 bytes
//	bytes            each 0x00 as 0x00 0xFF, then the end mark 0x00 0x01
//
// The escaped form is needed only where another part follows; a last part may
// stand raw.

const (
	escape     = 0x00
	escaped00  = 0xFF
	escapedEnd = 0x01
)

// AppendUint32 appends the 4 ordered bytes of v.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// AppendUint64 appends the 8 ordered bytes of v.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// AppendBytes appends the ordered, self-ending form of v.
func AppendBytes(dst, v []byte) []byte {
	for {
		i := bytes.IndexByte(v, escape)
		if i < 0 {
			return append(append(dst, v...), escape, escapedEnd)
		}
		dst = append(append(dst, v[:i]...), escape, escaped00)
		v = v[i+1:]
	}
}

// DecodeUint32 takes a uint32 off the front of b. Error: ErrKey.
func DecodeUint32(b []byte) (v uint32, rest []byte, err error) {
	if len(b) < 4 {
		return 0, nil, fmt.Errorf("%w: %d bytes for a uint32", ErrKey, len(b))
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}

// DecodeUint64 takes a uint64 off the front of b. Error: ErrKey.
func DecodeUint64(b []byte) (v uint64, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("%w: %d bytes for a uint64", ErrKey, len(b))
	}
	return binary.BigEndian.Uint64(b), b[8:], nil
}

// DecodeBytes takes an AppendBytes form off the front of b and appends the value
// to dst; rest points into b. Error: ErrKey.
func DecodeBytes(dst, b []byte) (v, rest []byte, err error) {
	for {
		i := bytes.IndexByte(b, escape)
		if i < 0 || i+1 >= len(b) {
			return nil, nil, fmt.Errorf("%w: bytes without an end", ErrKey)
		}
		dst = append(dst, b[:i]...)
		switch b[i+1] {
		case escapedEnd:
			return dst, b[i+2:], nil
		case escaped00:
			dst = append(dst, escape)
			b = b[i+2:]
		default:
			return nil, nil, fmt.Errorf("%w: escape 0x%02x", ErrKey, b[i+1])
		}
	}
}

// PrefixEnd returns the smallest key after all keys that begin with prefix, in a
// new slice; nil means that there is none (the prefix is empty or all 0xFF), which
// is also how Pebble writes "no upper bound".
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
