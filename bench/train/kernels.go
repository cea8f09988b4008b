package main

// dotGo returns the inner product of a and b, whose length is a multiple of 32. It
// sums in the order of the vector kernel, and each product is rounded by itself, so
// that training gives the same bytes with and without that kernel.
func dotGo(a, b []float32) float32 {
	var lanes [32]float32
	for i := 0; i < len(a); i += 32 {
		for j := range 32 {
			lanes[j] += float32(a[i+j] * b[i+j])
		}
	}
	for j := range 8 {
		lanes[j] = (lanes[j] + lanes[8+j]) + (lanes[16+j] + lanes[24+j])
	}
	for j := range 4 {
		lanes[j] += lanes[4+j]
	}
	return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

// axpyGo adds alpha x to y.
func axpyGo(alpha float32, x, y []float32) {
	for i, v := range x {
		y[i] += float32(alpha * v)
	}
}
