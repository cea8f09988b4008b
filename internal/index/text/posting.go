package text

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A run holds few postings, loosely:
//
//	run      01 | count uvarint | count × posting
//	posting  uvarint(delta<<1 | many) | tf-2 uvarint, if many | length uvarint
//
// delta is, in the first posting of a run, the DocID within its block (0 to
// 65,535), afterwards the gap to the previous one less 1. Without many, tf is 1.
// length is the document's length in the field of the key.
const runVersion = 0x01

// posting is a decoded posting in one word, so that sorting by value is sorting
// by DocID: DocID within the block (16 bits), tf (20), length (28).
type posting uint64

const (
	tfShift    = 28
	localShift = tfShift + 20
)

func makePosting(local, tf, length uint32) posting {
	return posting(local)<<localShift | posting(tf)<<tfShift | posting(length)
}

func (p posting) local() uint32  { return uint32(p >> localShift) }
func (p posting) tf() uint32     { return uint32(p>>tfShift) & MaxTF }
func (p posting) length() uint32 { return uint32(p) & MaxLength }

// appendRun appends ps, which ascend and are not empty, as one run.
func appendRun(dst []byte, ps []posting) []byte {
	dst = append(dst, runVersion)
	dst = binary.AppendUvarint(dst, uint64(len(ps)))
	next := uint32(0)
	for _, p := range ps {
		delta := uint64(p.local()-next) << 1
		if tf := p.tf(); tf > 1 {
			dst = binary.AppendUvarint(dst, delta|1)
			dst = binary.AppendUvarint(dst, uint64(tf-2))
		} else {
			dst = binary.AppendUvarint(dst, delta)
		}
		dst = binary.AppendUvarint(dst, uint64(p.length()))
		next = p.local() + 1
	}
	return dst
}

// appendLoose decodes the run at v[i:], behind its version byte, and appends its
// postings to dst; j is the position after it.
func appendLoose(dst []posting, v []byte, i int) (out []posting, j int, err error) {
	count, j := readUvarint(v, i)
	// A posting has two bytes at least, so that no count makes a large slice.
	if j < 0 || count == 0 || count > blockSize || int(count) > (len(v)-j)/2 {
		return dst, 0, fmt.Errorf("%w: run count", ErrCorrupt)
	}
	dst = slices.Grow(dst, int(count))
	run := dst[len(dst) : len(dst)+int(count)]
	if j = readRun(run, v, j); j < 0 {
		return dst, 0, fmt.Errorf("%w: run", ErrCorrupt)
	}
	return dst[:len(dst)+int(count)], j, nil
}

// readRun fills run from v[i:]; j is the position after it, -1 if it is damaged.
// Head and length mostly have one byte, and tf is mostly 1.
func readRun(run []posting, v []byte, i int) (j int) {
	base := uint32(0) // the block's start, then the previous DocID + 1
	for k := range run {
		if i >= len(v)-1 {
			return -1
		}
		head := uint32(v[i])
		if i++; head >= 0x80 {
			if head, i = readUvarint(v, i-1); i < 0 {
				return -1
			}
		}
		tf := uint32(1)
		if head&1 != 0 {
			if tf, i = readUvarint(v, i); i < 0 || tf > MaxTF-2 {
				return -1
			}
			tf += 2
		}
		if i >= len(v) {
			return -1
		}
		length := uint32(v[i])
		if i++; length >= 0x80 {
			if length, i = readUvarint(v, i-1); i < 0 || length > MaxLength {
				return -1
			}
		}
		local := base + head>>1 // at most 2^16 + 2^31
		if local >= blockSize {
			return -1
		}
		run[k] = makePosting(local, tf, length)
		base = local + 1
	}
	return i
}

// readUvarint reads a uvarint of up to 32 bits at v[i:]; j is the position after
// it, -1 if it is cut or too long.
func readUvarint(v []byte, i int) (x uint32, j int) {
	for shift := uint(0); i < len(v) && shift < 35; shift += 7 {
		b := v[i]
		i++
		if shift == 28 && b > 0x0F {
			return 0, -1
		}
		x |= uint32(b&0x7F) << shift
		if b < 0x80 {
			return x, i
		}
	}
	return 0, -1
}
