package static

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Whatever a processor has for it, the sums are those of plain Go, to the last bit.
func TestAddScaledIsThatOfPlainGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	scales := []int64{0, 1, math.MaxInt16, math.MaxInt16 + 1, math.MaxUint16}
	for round := range 2000 {
		var vector [semantic]byte
		var got, want [semantic]int64
		for i := range vector {
			vector[i] = byte(rng.Uint32())
			got[i] = rng.Int64() >> rng.IntN(64)
		}
		vector[round%semantic] = 0x80 // the least signed byte
		want = got
		before := got
		scale := rng.Int64N(math.MaxUint16 + 1)
		if round < len(scales) {
			scale = scales[round]
		}
		addScaled(&got, &vector, scale)
		addGo(&want, &vector, scale)
		if got != want {
			t.Fatalf("round %d, scale %d: the sums differ", round, scale)
		}
		if i := round % semantic; got[i] != before[i]-128*scale {
			t.Fatalf("round %d, scale %d: %d became %d", round, scale, before[i], got[i])
		}
	}
}

func BenchmarkAddScaled(b *testing.B) {
	var sums [semantic]int64
	vector := (*[semantic]byte)(weights[1<<20:])
	b.Run("go", func(b *testing.B) {
		for b.Loop() {
			addGo(&sums, vector, 1000)
		}
	})
	b.Run("best", func(b *testing.B) {
		for b.Loop() {
			addScaled(&sums, vector, 1000)
		}
	})
}
