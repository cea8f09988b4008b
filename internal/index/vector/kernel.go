package vector

import "unsafe"

// blockLen is the number of floats to which rows are padded with zeros: one
// AVX-512 register, one cache line.
const blockLen = 16

// rowSource is what a kernel reads: rows of whole blocks in chunks.
type rowSource = view[float32]

// gatherFunc writes the dot product of q with rows ids[0..n-1] to out[0..n-1].
// q and the rows have blocks blocks. The result for a row depends on q and the
// row alone, not on its place among ids.
type gatherFunc func(q *float32, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *float32)

// kernel computes dot products on one kind of processor.
type kernel struct {
	name       string
	gatherRows gatherFunc
	// dotBlocks returns what gatherRows would for one row.
	dotBlocks func(a, b *float32, blocks int) float32
}

// gather writes to out the dot products of q (padded to whole blocks) with the
// rows ids of src. len(out) must be at least len(ids).
func (k *kernel) gather(q []float32, src *rowSource, ids []uint32, out []float32) {
	if len(ids) == 0 {
		return
	}
	_ = out[len(ids)-1]
	k.gatherRows(&q[0], &src.base[0], &ids[0], len(ids), len(q)/blockLen, int(src.rowBytes), int(src.shift), &out[0])
}

// dot returns the dot product of two vectors of equal, arbitrary length.
func (k *kernel) dot(a, b []float32) float32 {
	b = b[:len(a)]
	whole := len(a) &^ (blockLen - 1)
	var sum float32
	if whole > 0 {
		sum = k.dotBlocks(&a[0], &b[0], whole/blockLen)
	}
	for i := whole; i < len(a); i++ {
		sum += a[i] * b[i]
	}
	return sum
}

// goKernel is the twin of the assembly kernels, for other processors.
func goKernel() kernel {
	return kernel{name: "go", gatherRows: gatherGo, dotBlocks: func(a, b *float32, blocks int) float32 {
		return dotGo(unsafe.Slice(a, blocks*blockLen), unsafe.Slice(b, blocks*blockLen))
	}}
}

func gatherGo(q *float32, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *float32) {
	qs := unsafe.Slice(q, blocks*blockLen)
	idv, outv := unsafe.Slice(ids, n), unsafe.Slice(out, n)
	mask := uint32(1)<<shift - 1
	for i, id := range idv {
		chunk := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(base), uintptr(id>>shift)*unsafe.Sizeof(*base)))
		row := (*float32)(unsafe.Add(chunk, uintptr(id&mask)*uintptr(rowBytes)))
		outv[i] = dotGo(qs, unsafe.Slice(row, blocks*blockLen))
	}
}

// dotGo takes vectors of whole blocks. Eight sums break the chain of
// dependent additions.
func dotGo(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a, b = a[8:], b[8:]
	}
	return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
}

// padded returns the number of floats that a row of dim takes.
func padded(dim int) int { return (dim + blockLen - 1) &^ (blockLen - 1) }
