//go:build amd64 || arm64

package local

func kernel4x16(k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	checkBounds(rowStep, k, a, lda, b, c, ldc, bias)
	multiply4x16(k, &a[0], lda, &b[0], &c[0], ldc, &bias[0])
}

// checkBounds panics where the assembly would leave the slices, and where k is
// not positive.
func checkBounds(rows, k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	_ = a[:lda*(rows-1)+k]
	_ = b[panel*k-1]
	_ = c[ldc*(rows-1)+panel-1]
	_ = bias[panel-1]
}

// multiply4x16 needs AVX2 and FMA on amd64, and k > 0.
//
//go:noescape
func multiply4x16(k int, a *float32, lda int, b, c *float32, ldc int, bias *float32)
