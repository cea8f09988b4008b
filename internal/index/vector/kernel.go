package vector

import "unsafe"

// blockLen is the number of bytes to which rows are padded: one AVX-512
// register, one cache line.
const blockLen = 64

// zeroByte is how a zero stands in a row. Rows hold component+128, which is
// what the instruction that multiplies unsigned with signed bytes wants; the
// kernels take the 128 out again.
const zeroByte = 0x80

// rowSource is what a kernel reads: rows of whole blocks in chunks.
type rowSource = view[uint8]

// gatherFunc writes the dot product of q with rows ids[0..n-1] to out[0..n-1],
// and something to the rest of out up to the next multiple of 4. q and the rows
// have blocks blocks. Sums are exact, so that every kernel gives the same.
type gatherFunc func(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)

// kernel computes dot products on one kind of processor.
type kernel struct {
	name       string
	gatherRows gatherFunc
}

// gather writes to out the dot products of q (a row) with the rows ids of src.
// out has room for len(ids) rounded up to a multiple of 4.
func (k *kernel) gather(q []uint8, src *rowSource, ids []uint32, out []int32) {
	if len(ids) == 0 {
		return
	}
	_ = out[(len(ids)-1)|3]
	k.gatherRows(&q[0], &src.base[0], &ids[0], len(ids), len(q)/blockLen, int(src.rowBytes), int(src.shift), &out[0])
}

// goKernel is the twin of the assembly kernels, for other processors.
func goKernel() kernel { return kernel{name: "go", gatherRows: gatherGo} }

func gatherGo(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32) {
	qs := unsafe.Slice(q, blocks*blockLen)
	idv, outv := unsafe.Slice(ids, n), unsafe.Slice(out, n)
	mask := uint32(1)<<shift - 1
	for i, id := range idv {
		chunk := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(base), uintptr(id>>shift)*unsafe.Sizeof(*base)))
		row := (*uint8)(unsafe.Add(chunk, uintptr(id&mask)*uintptr(rowBytes)))
		outv[i] = dotBytes(qs, unsafe.Slice(row, blocks*blockLen))
	}
}

// dotBytes takes rows of whole blocks.
func dotBytes(a, b []uint8) int32 {
	var s0, s1, s2, s3 int32
	for len(a) >= 4 && len(b) >= 4 {
		x, y := (*[4]uint8)(a), (*[4]uint8)(b)
		s0 += (int32(x[0]) - zeroByte) * (int32(y[0]) - zeroByte)
		s1 += (int32(x[1]) - zeroByte) * (int32(y[1]) - zeroByte)
		s2 += (int32(x[2]) - zeroByte) * (int32(y[2]) - zeroByte)
		s3 += (int32(x[3]) - zeroByte) * (int32(y[3]) - zeroByte)
		a, b = a[4:], b[4:]
	}
	return s0 + s1 + s2 + s3
}

// dotFloats returns the dot product of two vectors of equal length. Eight sums
// break the chain of dependent additions.
func dotFloats(a, b []float32) float32 {
	b = b[:len(a)]
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
	sum := ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// padded returns the number of bytes that a row of dim takes.
func padded(dim int) int { return (dim + blockLen - 1) &^ (blockLen - 1) }
