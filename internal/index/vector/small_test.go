package vector

import (
	"runtime"
	"testing"
)

// A set of one vector held 29 KB, so that names of agents with one private memory
// each filled the memory of a node.
func TestSetOfOneVectorWasLarge(t *testing.T) {
	const sets, dim, most = 1000, 384, 2 << 10
	held := make([]*Set, sets)
	row := make([]int8, dim)
	row[0] = 1
	before := heapInUse()
	for i := range held {
		s, err := NewSet(dim, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.AddBulkInt8([]ID{1}, row); err != nil {
			t.Fatal(err)
		}
		held[i] = s
	}
	if each := (heapInUse() - before) / sets; each > most {
		t.Errorf("a set of one vector holds %d bytes, at most %d are meant", each, most)
	} else {
		t.Logf("a set of one vector holds %d bytes", each)
	}
	for _, s := range held {
		mustSearch(t, s, unitVector(dim), 1, nil)
	}
	if each := (heapInUse() - before) / sets; each > most {
		t.Errorf("after a search a set of one vector holds %d bytes", each)
	}
	for _, s := range held {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func unitVector(dim int) []float32 {
	v := make([]float32, dim)
	v[0] = 1
	return v
}

// heapInUse is what is allocated and reachable. A difference may be negative: what
// earlier tests left is collected some time.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
