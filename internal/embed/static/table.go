package static

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The weights are one read-only piece of bytes, used in place: nothing is built
// when a program starts. Numbers are little-endian.
//
//	+---------+------+------+----------------+---------------+--------------+------------------+
//	| 8 bytes | u32  | u32  | u32 × 65537    | u32 × rows    | u16 × rows   | i8 × dims × rows |
//	| magic   | dims | rows | starts         | fingerprints  | scales       | vectors          |
//	+---------+------+------+----------------+---------------+--------------+------------------+
//
// Rows are in the order of their tokens' hashes. starts[h>>48] is the first row
// whose hash begins with these 16 bits, starts[65536] the number of rows; the
// fingerprint is the 32 bits after them. Equal 48 bits of two tokens are taken for
// one token, which happens to one unknown token in billions.
type table struct {
	dims, rows   int
	starts       []byte
	fingerprints []byte
	scales       []byte
	vectors      []byte
}

const (
	magic   = "mnstatic"
	buckets = 1 << 16
	header  = len(magic) + 8
)

// ErrWeights says that bytes are no weights.
var ErrWeights = errors.New("static: not the weights of a model")

// parse finds the parts of b, which it keeps.
func parse(b []byte) (table, error) {
	if len(b) < header || string(b[:len(magic)]) != magic {
		return table{}, ErrWeights
	}
	t := table{dims: int(binary.LittleEndian.Uint32(b[8:])), rows: int(binary.LittleEndian.Uint32(b[12:]))}
	b = b[header:]
	if t.dims <= 0 || t.dims > 1<<12 || t.rows < 0 || t.rows > 1<<24 ||
		uint64(len(b)) != 4*(buckets+1)+uint64(t.rows)*uint64(4+2+t.dims) {
		return table{}, fmt.Errorf("%w: %d rows of %d dimensions in %d bytes", ErrWeights, t.rows, t.dims, len(b))
	}
	for _, part := range []struct {
		to *[]byte
		n  int
	}{{&t.starts, 4 * (buckets + 1)}, {&t.fingerprints, 4 * t.rows}, {&t.scales, 2 * t.rows}, {&t.vectors, t.dims * t.rows}} {
		*part.to, b = b[:part.n], b[part.n:]
	}
	return t, nil
}

// find returns the row of a token's hash, or -1.
func (t *table) find(h uint64) int {
	bucket := int(h >> 48)
	from := binary.LittleEndian.Uint32(t.starts[4*bucket:])
	to := min(binary.LittleEndian.Uint32(t.starts[4*bucket+4:]), uint32(t.rows))
	for ; from < to; from++ {
		if binary.LittleEndian.Uint32(t.fingerprints[4*from:]) == uint32(h>>16) {
			return int(from)
		}
	}
	return -1
}

func (t *table) scale(row int) int64 {
	return int64(binary.LittleEndian.Uint16(t.scales[2*row:]))
}

func (t *table) vector(row int) []byte { return t.vectors[row*t.dims:][:t.dims] }

// Row is one token's vector: Values × Scale.
type Row struct {
	Hash   uint64
	Scale  uint16
	Values []int8
}

// Encode writes rows, which are in the order of their hashes, as weights.
func Encode(dims int, rows []Row) ([]byte, error) {
	b := append(make([]byte, 0, header+4*(buckets+1)+len(rows)*(6+dims)), magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(dims))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rows)))
	next := 0
	for bucket := range uint64(buckets) {
		for next < len(rows) && rows[next].Hash>>48 < bucket {
			next++
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(next))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rows)))
	for i, r := range rows {
		if i > 0 && r.Hash>>16 <= rows[i-1].Hash>>16 {
			return nil, fmt.Errorf("%w: row %d is out of order or has the hash of the one before", ErrWeights, i)
		}
		if len(r.Values) != dims {
			return nil, fmt.Errorf("%w: row %d has %d values", ErrWeights, i, len(r.Values))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(r.Hash>>16))
	}
	for _, r := range rows {
		b = binary.LittleEndian.AppendUint16(b, r.Scale)
	}
	for _, r := range rows {
		for _, v := range r.Values {
			b = append(b, byte(v))
		}
	}
	return b, nil
}

// Hash is the hash of a token: FNV-1a, finished as SplitMix64 (Steele et al. 2014).
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
