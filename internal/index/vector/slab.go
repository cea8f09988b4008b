package vector

import (
	"sync/atomic"
	"unsafe"
)

// element is what a slab may hold.
type element interface {
	uint8 | float32 | uint32 | uint64
}

// slab is a growing array of rows of equal length, in chunks which never move
// once they are full. One goroutine at a time may grow it; readers take a view
// and keep it. The first chunk starts with one row and doubles by copying, so that
// a small set stays small: a row in an older copy is as good as in the newer one
// if rows are immutable or, as with links, stale values do no harm.
type slab[T element] struct {
	rowLen int
	shift  uint
	table  atomic.Pointer[slabTable]
}

type slabTable struct {
	base []unsafe.Pointer
	rows int
}

const (
	chunkBytes    = 4 << 20
	cacheLine     = 64
	chunkShiftMax = 20
	// hugeFrom is the size of chunks that may lie in large pages.
	hugeFrom = 2 << 20
)

func newSlab[T element](rowLen int) *slab[T] {
	s := &slab[T]{rowLen: rowLen}
	var zero T
	rowBytes := rowLen * int(unsafe.Sizeof(zero))
	for s.shift = 6; s.shift < chunkShiftMax && rowBytes<<(s.shift+1) <= chunkBytes; {
		s.shift++
	}
	s.table.Store(&slabTable{})
	return s
}

// alignedSlice returns n zeros that start at a cache line, unless they are fewer
// than fill one.
func alignedSlice[T element](n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if n*size < cacheLine {
		return make([]T, n)
	}
	buf := make([]T, n+cacheLine/size)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%cacheLine) / size
	return buf[off : off+n : off+n]
}

// grow makes room for rows rows; new rows are filled with fill.
func (s *slab[T]) grow(rows int, fill T) {
	old := s.table.Load()
	if rows <= old.rows {
		return
	}
	full := 1 << s.shift
	t := &slabTable{base: append([]unsafe.Pointer(nil), old.base...), rows: old.rows}
	if len(t.base) <= 1 && t.rows < full {
		n := min(nextPow2(rows), full)
		chunk := s.newChunk(n, fill)
		if t.rows > 0 {
			copy(chunk, unsafe.Slice((*T)(t.base[0]), t.rows*s.rowLen))
		}
		t.base = []unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(chunk))}
		t.rows = n
	}
	for t.rows < rows {
		t.base = append(t.base, unsafe.Pointer(unsafe.SliceData(s.newChunk(full, fill))))
		t.rows += full
	}
	s.table.Store(t)
}

func (s *slab[T]) newChunk(rows int, fill T) []T {
	chunk := alignedSlice[T](rows * s.rowLen)
	var zero T
	if size := len(chunk) * int(unsafe.Sizeof(zero)); size >= hugeFrom {
		adviseHuge(unsafe.Pointer(unsafe.SliceData(chunk)), size)
	}
	if fill != 0 {
		for i := range chunk {
			chunk[i] = fill
		}
	}
	return chunk
}

func nextPow2(n int) int {
	p := 1
	for p < n {
		p <<= 1
	}
	return p
}

// bytes is the memory held.
func (s *slab[T]) bytes() int64 {
	var zero T
	return int64(s.table.Load().rows) * int64(s.rowLen) * int64(unsafe.Sizeof(zero))
}

// view returns the rows as they stand.
func (s *slab[T]) view() view[T] {
	var zero T
	return view[T]{
		base:     s.table.Load().base,
		rowLen:   s.rowLen,
		rowBytes: uintptr(s.rowLen) * unsafe.Sizeof(zero),
		shift:    s.shift,
		mask:     1<<s.shift - 1,
	}
}

// view addresses the rows of a slab without a lock.
type view[T element] struct {
	base     []unsafe.Pointer
	rowLen   int
	rowBytes uintptr
	shift    uint
	mask     uint32
}

// at returns the address of row i, which must exist.
func (v *view[T]) at(i uint32) *T {
	return (*T)(unsafe.Add(v.base[i>>v.shift], uintptr(i&v.mask)*v.rowBytes))
}

// row returns row i, which must exist.
func (v *view[T]) row(i uint32) []T {
	return unsafe.Slice(v.at(i), v.rowLen)
}
