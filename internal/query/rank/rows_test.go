package rank

import (
	"math/rand/v2"
	"testing"
)

// TestRowsLikeAMap holds the table to a map, through growth and use again.
func TestRowsLikeAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var r rows
	for round := range 4 {
		r.reset()
		twin := map[docKey]int32{}
		for range []int{10, minTable, 4 * minTable, 50}[round] {
			k := docKey{rng.IntN(3), uint32(rng.IntN(2 * minTable))}
			if rng.IntN(4) == 0 {
				k.doc <<= 20
			}
			want, there := twin[k]
			if row, ok := r.find(k); ok != there || ok && row != want {
				t.Fatalf("round %d, %v: %d, %v, want %d, %v", round, k, row, ok, want, there)
			}
			if !there {
				want = int32(len(twin))
				twin[k] = want
			}
			if row, isNew := r.add(k); row != want || isNew == there || r.docs[row] != k {
				t.Fatalf("round %d, %v: %d, %v, want %d, %v", round, k, row, isNew, want, !there)
			}
		}
		if len(r.docs) != len(twin) {
			t.Fatalf("round %d: %d rows, want %d", round, len(r.docs), len(twin))
		}
	}
}
