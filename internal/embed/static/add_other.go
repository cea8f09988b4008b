//go:build !amd64

package static

// addScaled adds scale times a vector of signed bytes. scale has 16 bits.
func addScaled(sums *[semantic]int64, vector *[semantic]byte, scale int64) {
	addGo(sums, vector, scale)
}
