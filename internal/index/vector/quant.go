package vector

import "math"

// A vector is kept as bytes with a scale: component i is about
// scale * (row[i] - zeroByte). The largest component, by size, is 127 steps
// from zero, so that no component is off by more than half a step. The scale is
// a step, corrected so that the length stays what it was.

const (
	steps = 127
	// fineSteps divides a step of the query once more, see fineQuery.
	fineSteps = 128
	// toInteger rounds a float32 of less than 2^22 to an integer, which then
	// stands in its low bits: 1.5 * 2^23.
	toInteger = 3 << 22
	// leastScale is the size below which a component counts as zero: its step
	// has no finite inverse.
	leastScale = 1e-36
)

// largest returns the largest component by size. Without their sign, floats are
// ordered as their bits are.
func largest(vec []float32) float32 {
	var m uint32
	for _, x := range vec {
		m = max(m, math.Float32bits(x)&^(1<<31))
	}
	return math.Float32frombits(m)
}

// quantise writes vec to row, which may be longer, and returns its scale, 0 for
// a vector of zeros.
func quantise(row []uint8, vec []float32) float32 {
	m, squares := largest(vec), int64(0)
	rest := row[len(vec):]
	if m < leastScale {
		rest = row
	} else {
		// The conversion keeps the compiler from fusing product and sum.
		inverse := steps / m
		row = row[:len(vec)]
		for i, x := range vec {
			n := int8(math.Float32bits(float32(x*inverse) + toInteger))
			row[i] = uint8(n) + zeroByte
			squares += int64(int32(n) * int32(n))
		}
	}
	for i := range rest {
		rest[i] = zeroByte
	}
	if m < leastScale {
		return 0
	}
	return float32(math.Sqrt(squareOf(vec, m) / float64(squares)))
}

// squareOf returns the square of the length of vec, whose largest component is m.
func squareOf(vec []float32, m float32) float64 {
	if m > 1e-10 && m < 1e10 {
		return float64(dotFloats(vec, vec))
	}
	// Squares of float32 may vanish or overflow.
	var sum float64
	for _, x := range vec {
		sum += float64(x) * float64(x)
	}
	return sum
}

// quantiseInt8 is quantise for a vector that is bytes already, of any length:
// the scale makes it a unit vector.
func quantiseInt8(row []uint8, vec []int8) float32 {
	var sum int64
	for i, x := range vec {
		row[i] = uint8(x) + zeroByte
		sum += int64(int32(x) * int32(x))
	}
	for i := len(vec); i < len(row); i++ {
		row[i] = zeroByte
	}
	if sum == 0 {
		return 0
	}
	return float32(1 / math.Sqrt(float64(sum)))
}

// fineQuery writes to fine what the quantised row leaves out of vec, in parts of
// a step, and to finer what is left after that; together they have the precision
// of a float32. It reports whether there is anything.
func fineQuery(fine, finer, row []uint8, scale float32, vec []float32) bool {
	if scale == 0 {
		return false
	}
	var some uint8
	inverse := 1 / float64(scale)
	for i, x := range vec {
		rest := (float64(x)*inverse - float64(int(row[i])-zeroByte)) * fineSteps
		n := roundHalfUp(rest)
		more := roundHalfUp((rest - float64(n)) * fineSteps)
		fine[i], finer[i] = uint8(n+zeroByte), uint8(more+zeroByte)
		some |= fine[i] ^ zeroByte | finer[i] ^ zeroByte
	}
	return some != 0
}

// roundHalfUp takes numbers above -zeroByte.
func roundHalfUp(x float64) int { return int(x+zeroByte+0.5) - zeroByte }

// dequantise writes what row stands for.
func dequantise(vec []float32, row []uint8, scale float32) {
	for i := range vec {
		vec[i] = float32(int(row[i])-zeroByte) * scale
	}
}
