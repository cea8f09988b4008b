package text

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTermTableTwin: it holds what a map holds, of terms that look alike too.
func TestTermTableTwin(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 2))
	var table TermTable[int]
	if _, ok := table.Get(""); ok || table.Len() != 0 {
		t.Error("the empty one holds something")
	}
	twin := map[string]int{}
	term := func() string {
		return fmt.Sprint([]string{"", "a", "ab", "ba", "猫", "deploy"}[rng.IntN(6)], rng.IntN(300))
	}
	for i := range 200 {
		s := term()
		table.Set(s, i)
		twin[s] = i
	}
	table.Set("", 7)
	twin[""] = 7
	for range 5000 {
		s := term()
		got, ok := table.Get(s)
		if want, has := twin[s]; got != want || ok != has {
			t.Fatalf("%q: got %d, %t, want %d, %t", s, got, ok, want, has)
		}
	}
	if v, ok := table.Get(""); v != 7 || !ok || table.Len() != len(twin) {
		t.Errorf("%d, %t for the empty term; %d terms of %d", v, ok, table.Len(), len(twin))
	}
}
