package text

import (
	"encoding/binary"
	"fmt"
)

// A postings row holds the postings of one term in one field and block. Its value
// is a sequence of parts, oldest first; Pebble concatenates them:
//
//	run       01 …           see posting.go
//	chunk     02 …           see chunk.go
//	removed   03 | uvarint   so many more of the documents here were removed
//
// DocIDs ascend over the whole value. Stored rows are packed: removed first, if
// any, then full chunks, then the rest of fewer than 128 postings: a chunk, or a
// run of fewer than 16. So the bytes of a packed row are a function of its postings.
const (
	removedVersion = 0x03
	runMost        = 15
)

// rowReader walks the parts of a row.
type rowReader struct {
	next uint32 // the smallest DocID that may follow
}

func (r *rowReader) follow(first, last uint32) error {
	if first < r.next {
		return fmt.Errorf("%w: postings do not ascend", ErrCorrupt)
	}
	r.next = last + 1
	return nil
}

// readRemoved reads a removed part behind its version byte.
func readRemoved(v []byte, i int) (n uint32, j int, err error) {
	if n, j = readUvarint(v, i); j < 0 || n == 0 || n > blockSize {
		return 0, 0, fmt.Errorf("%w: removed count", ErrCorrupt)
	}
	return n, j, nil
}

func appendRemoved(dst []byte, n uint32) []byte {
	return binary.AppendUvarint(append(dst, removedVersion), uint64(n))
}

// appendRow appends a packed row; ps ascend.
func appendRow(dst []byte, removed uint32, ps []posting) []byte {
	if removed > 0 {
		dst = appendRemoved(dst, removed)
	}
	for len(ps) >= chunkSize {
		dst = appendChunk(dst, ps[:chunkSize])
		ps = ps[chunkSize:]
	}
	switch {
	case len(ps) > runMost:
		dst = appendChunk(dst, ps)
	case len(ps) > 0:
		dst = appendRun(dst, ps)
	}
	return dst
}

// readRow decodes and checks a whole row and appends its postings to dst.
func readRow(dst []posting, v []byte) (ps []posting, removed uint32, err error) {
	row, err := splitRow(dst, v, false)
	if err == nil && int(row.removed) > len(row.rest)-len(dst) {
		err = fmt.Errorf("%w: %d removed of %d", ErrCorrupt, row.removed, len(row.rest)-len(dst))
	}
	return row.rest, row.removed, err
}

// split is a row whose leading full chunks were left as they are.
type split struct {
	chunks  [2]int // their range in the value
	rest    []posting
	removed uint32
}

// splitRow decodes a row. With keep, the full chunks before the first run stay
// packed.
func splitRow(dst []posting, v []byte, keep bool) (s split, err error) {
	s.rest = dst
	if len(v) == 0 {
		return s, fmt.Errorf("%w: empty postings", ErrCorrupt)
	}
	var r rowReader
	for i := 0; i < len(v); {
		switch v[i] {
		case runVersion:
			from := len(s.rest)
			if s.rest, i, err = appendLoose(s.rest, v, i+1); err != nil {
				return s, err
			}
			if err := r.follow(s.rest[from].local(), s.rest[len(s.rest)-1].local()); err != nil {
				return s, err
			}
			keep = false
		case chunkVersion:
			c, err := readChunk(v, i+1)
			if err != nil {
				return s, err
			}
			if err := r.follow(uint32(c.first), uint32(c.last)); err != nil {
				return s, err
			}
			keep = keep && c.n == chunkSize && (s.chunks[1] == 0 || s.chunks[1] == i)
			if keep {
				if s.chunks[1] == 0 {
					s.chunks[0] = i
				}
				s.chunks[1] = int(c.end)
			} else if s.rest, err = c.appendPostings(s.rest, v); err != nil {
				return s, err
			}
			i = int(c.end)
		case removedVersion:
			var n uint32
			if n, i, err = readRemoved(v, i+1); err != nil {
				return s, err
			}
			s.removed += n
		default:
			return s, fmt.Errorf("%w: postings version 0x%02x", ErrCorrupt, v[i])
		}
	}
	return s, nil
}

// countRow counts the documents of a row that are not removed, without decoding its
// chunks.
func countRow(v []byte) (uint64, error) {
	n, removed := 0, 0
	for i := 0; i < len(v); {
		switch v[i] {
		case runVersion:
			count, j := readUvarint(v, i+1)
			if j < 0 || count == 0 || int64(count) > int64(len(v)-j)/2 {
				return 0, fmt.Errorf("%w: run count", ErrCorrupt)
			}
			if i = runEnd(v, j, int(count)); i < 0 {
				return 0, fmt.Errorf("%w: run", ErrCorrupt)
			}
			n += int(count)
		case chunkVersion:
			c, err := readChunk(v, i+1)
			if err != nil {
				return 0, err
			}
			n += int(c.n)
			i = int(c.end)
		case removedVersion:
			m, j, err := readRemoved(v, i+1)
			if err != nil {
				return 0, err
			}
			removed += int(m)
			i = j
		default:
			return 0, fmt.Errorf("%w: postings version 0x%02x", ErrCorrupt, v[i])
		}
	}
	if removed > n {
		return 0, fmt.Errorf("%w: %d removed of %d", ErrCorrupt, removed, n)
	}
	return uint64(n - removed), nil
}

// packRow is the storage.Merge.Pack of postings rows: of concatenated parts it
// makes the one packed row.
func packRow(v []byte) ([]byte, error) {
	if len(v) > 0 && v[0] == runVersion { // mostly a single short run
		if count, j := readUvarint(v, 1); j > 0 && count <= runMost && runEnd(v, j, int(count)) == len(v) {
			return v, nil
		}
	}
	s, err := splitRow(nil, v, true)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(v)+16)
	if s.removed > 0 {
		out = appendRemoved(out, s.removed)
	}
	out = append(out, v[s.chunks[0]:s.chunks[1]]...)
	return appendRow(out, 0, s.rest), nil
}

// runEnd finds where a run of count postings ends, -1 if it is cut.
func runEnd(v []byte, i, count int) int {
	skip := func() uint32 {
		if i < 0 {
			return 0
		}
		var x uint32
		x, i = readUvarint(v, i)
		return x
	}
	for range count {
		if skip()&1 != 0 {
			skip()
		}
		skip()
	}
	return i
}
