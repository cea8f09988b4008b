package projections

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestTableIsAMap compares tables with maps; tables that were there before a
// change must stay what they were.
func TestTableIsAMap(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	tbl, want := newTable[uint32, int](func(k uint32) uint8 { return uint8(k) }), map[uint32]int{}
	type kept struct {
		table table[uint32, int]
		want  map[uint32]int
	}
	var old []kept
	for range 300 {
		c := changesOf(tbl)
		for range rnd.IntN(8) {
			k := rnd.Uint32N(1000)
			switch {
			case rnd.IntN(3) == 0:
				c.remove(k)
				delete(want, k)
			default:
				*c.edit(k)++
				want[k]++
			}
			if v := c.get(k); (v != nil) != (want[k] != 0) || v != nil && *v != want[k] {
				t.Fatalf("seed %d: key %d is %v, want %d", seed, k, v, want[k])
			}
		}
		tbl = c.after()
		old = append(old, kept{tbl, maps.Clone(want)})
	}
	for i, o := range old {
		got := map[uint32]int{}
		o.table.each(func(k uint32, v *int) { got[k] = *v })
		if !maps.Equal(got, o.want) {
			t.Fatalf("seed %d: table %d has changed", seed, i)
		}
	}
}
