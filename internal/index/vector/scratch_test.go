package vector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestKeyOrder(t *testing.T) {
	scores := []float32{math.MaxFloat32, 1, 0.5, math.SmallestNonzeroFloat32, 0, -math.SmallestNonzeroFloat32, -0.5, -1, -math.MaxFloat32}
	for i, a := range scores {
		k := makeKey(a, 7)
		if keyScore(k) != a || keySlot(k) != 7 || keySlot(k|followed) != 7 || keyScore(k|followed) != a {
			t.Errorf("key of %v gives %v, slot %d", a, keyScore(k), keySlot(k))
		}
		for _, b := range scores[i+1:] {
			if makeKey(a, maxSlots) >= makeKey(b, 0) {
				t.Errorf("%v does not come before %v", a, b)
			}
		}
	}
	if makeKey(1, 3) >= makeKey(1, 4) {
		t.Error("ties do not go to the smaller slot")
	}
	if makeKey(float32(math.Copysign(0, -1)), 3) != makeKey(0, 3) {
		t.Error("-0 does not tie with 0")
	}
}

func TestRankedAndHeapEqualSort(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		limit, n := 1+rng.IntN(40), rng.IntN(200)
		var r ranked
		r.reset(limit)
		var h keyHeap
		var all []key
		for i := range n {
			k := makeKey(float32(rng.IntN(20)), uint32(i))
			all = append(all, k)
			h.push(k)
			if r.admits(k) {
				if at := r.add(k); r.keys[at] != k {
					t.Fatalf("seed %d: add says %d", seed, at)
				}
			}
		}
		slices.Sort(all)
		if !slices.Equal(r.keys, all[:min(limit, n)]) {
			t.Fatalf("seed %d: ranked %v, want %v", seed, r.keys, all[:min(limit, n)])
		}
		for i, want := range all {
			if got := h.pop(); got != want {
				t.Fatalf("seed %d: pop %d gives %v, want %v", seed, i, got, want)
			}
		}
	}
}

func TestEpochsWrap(t *testing.T) {
	sc := newScratch(16)
	sc.nextEpoch(10)
	sc.marks[3] = 1
	for range 1 << 16 {
		sc.nextEpoch(10)
		if sc.marks[3] == sc.epoch {
			t.Fatalf("mark of an earlier walk counts in epoch %d", sc.epoch)
		}
	}
}
