package local

// panel is the number of columns that a kernel computes at once, and rows the
// number of rows that buffers are padded to.
const (
	panel   = 16
	rowStep = 4
)

// kernel computes c = bias + a·b for rows × panel numbers:
// a has k numbers in each of its rows, lda apart; b is a packed panel of k
// times 16 numbers; c's rows are ldc apart. Every number of c is summed over k
// in order, starting from bias.
type kernel func(k int, a []float32, lda int, b, c []float32, ldc int, bias []float32)

// matrix is packed for kernels: panels of 16 columns, each k × 16, row-major;
// columns that pad the last panel are zero.
type matrix struct {
	k, n   int
	packed []float32
	bias   []float32 // padded with zeros to whole panels
}

func panels(n int) int { return (n + panel - 1) / panel }

// pack makes the matrix of a linear layer whose weights are [n][k], as files
// have them.
func pack(weights, bias []float32, k, n int) matrix {
	m := matrix{k: k, n: n, packed: make([]float32, panels(n)*panel*k), bias: make([]float32, panels(n)*panel)}
	copy(m.bias, bias)
	for j := range n {
		to := m.packed[j/panel*panel*k+j%panel:]
		for i, x := range weights[j*k : (j+1)*k] {
			to[i*panel] = x
		}
	}
	return m
}

// multiply computes c[row][0:n] = bias + a[row]·m for rows, which a and c have
// padded to a multiple of rowStep: rows in the padding are overwritten. ldc may
// be larger than n. edge is a scratch of rowStep × panel numbers.
func multiply(kernels kernelSet, m matrix, a []float32, lda int, c []float32, ldc, rows int, edge []float32) {
	rows = padRows(rows)
	for p := range panels(m.n) {
		b := m.packed[p*panel*m.k : (p+1)*panel*m.k]
		bias := m.bias[p*panel : (p+1)*panel]
		width := min(panel, m.n-p*panel)
		for i := 0; i < rows; {
			run, step := kernels.small, rowStep
			if kernels.large != nil && rows-i >= 2*rowStep {
				run, step = kernels.large, 2*rowStep
			}
			if width == panel {
				run(m.k, a[i*lda:], lda, b, c[i*ldc+p*panel:], ldc, bias)
			} else {
				run(m.k, a[i*lda:], lda, b, edge, panel, bias)
				for r := range step {
					copy(c[(i+r)*ldc+p*panel:][:width], edge[r*panel:])
				}
			}
			i += step
		}
	}
}

func padRows(rows int) int { return (rows + rowStep - 1) / rowStep * rowStep }

// kernelSet has a kernel for rowStep rows and, where registers allow, one for
// twice as many; nil if there is none. Both give the same numbers.
type kernelSet struct {
	small, large kernel
}

// kernelGo is the kernel in plain Go. Where the compiler fuses multiplication
// and addition its sums are those of the assembly.
func kernelGo(k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	for r := range rowStep {
		row := a[r*lda:][:k]
		for j := 0; j < panel; j += 4 {
			s0, s1, s2, s3 := bias[j], bias[j+1], bias[j+2], bias[j+3]
			at := j
			for _, x := range row {
				v := b[at:][:4:4]
				s0 += x * v[0]
				s1 += x * v[1]
				s2 += x * v[2]
				s3 += x * v[3]
				at += panel
			}
			out := c[r*ldc+j:][:4:4]
			out[0], out[1], out[2], out[3] = s0, s1, s2, s3
		}
	}
}
