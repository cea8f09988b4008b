package events

import (
	"encoding/binary"
	"fmt"
)

// reader walks over encoded bytes. The first failure sticks; callers check err
// once at the end.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", what, ErrMalformed)
	}
}

// take returns the next n bytes, aliasing the input.
func (r *reader) take(n int, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b) {
		r.fail(what)
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8(what string) uint8 {
	if b := r.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16(what string) uint16 {
	if b := r.take(2, what); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32(what string) uint32 {
	if b := r.take(4, what); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// uvarint reads a minimally encoded unsigned varint.
func (r *reader) uvarint(what string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || (n > 1 && r.b[n-1] == 0) {
		r.fail(what)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) fixed(dst []byte, what string) { copy(dst, r.take(len(dst), what)) }

func (r *reader) short(what string) []byte { return r.take(int(r.u8(what)), what) }
func (r *reader) long(what string) []byte  { return r.take(int(r.u32(what)), what) }

// end fails if bytes are left over.
func (r *reader) end(what string) error {
	if r.err == nil && len(r.b) != 0 {
		r.fail(what + ": trailing bytes")
	}
	return r.err
}
