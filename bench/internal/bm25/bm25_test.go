package bm25

import (
	"math"
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	got := split("Go1.23 isn't 数据库x, «Été»\xff")
	if want := []string{"go1", "23", "isn", "t", "数", "据", "库", "x", "été"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSearch(t *testing.T) {
	var x Index
	all := func(int) bool { return true }
	if hits := x.Search("a", 9, all); len(hits) != 0 {
		t.Error("an empty index:", hits)
	}
	for _, text := range []string{"a b", "a a c", "d", "b a"} {
		x.Add(text)
	}
	idf := func(df float64) float64 { return math.Log(1 + (4-df+0.5)/(df+0.5)) }
	tf := func(tf, length float64) float64 { return tf * 2.2 / (tf + 1.2*(0.25+0.75*length/2)) }
	want := []Hit{{1, idf(3)*tf(2, 3) + idf(1)*tf(1, 3)}, {0, idf(3) * tf(1, 2)}, {3, idf(3) * tf(1, 2)}}
	got := x.Search("A c", 9, all)
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range got {
		if got[i].Doc != want[i].Doc || math.Abs(got[i].Score-want[i].Score) > 1e-12 {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	if got := x.Search("a", 1, func(doc int) bool { return doc != 1 }); len(got) != 1 || got[0].Doc != 0 {
		t.Error("without the best, one at most:", got)
	}
}
