package builtin

// table counts features by hash: open addressing over a list in order of arrival.
// It keeps the room that it has grown to, up to keptFeatures.
type table struct {
	features []feature
	// index holds 1 + the place in features, or 0. Its length is a power of two and at
	// least twice that of features; the texts of a table begin with the least.
	index []int32
}

const (
	leastIndex   = 256
	keptFeatures = 4096
)

func (t *table) init() {
	if cap(t.features) > keptFeatures || t.index == nil {
		t.features, t.index = make([]feature, 0, leastIndex/2), make([]int32, leastIndex)
	}
	t.features, t.index = t.features[:0], t.index[:leastIndex]
	clear(t.index)
}

// add counts one occurrence. Of features with one hash the greatest weight and
// number of dimensions count, so that their order does not matter.
func (t *table) add(f feature) {
	mask := uint64(len(t.index) - 1)
	for at := f.hash & mask; ; at = (at + 1) & mask {
		k := t.index[at]
		if k == 0 {
			f.count = 1
			t.features = append(t.features, f)
			t.index[at] = int32(len(t.features))
			break
		}
		if old := &t.features[k-1]; old.hash == f.hash {
			old.count++
			old.weight, old.dims = max(old.weight, f.weight), max(old.dims, f.dims)
			return
		}
	}
	if 2*len(t.features) > len(t.index) {
		t.grow()
	}
}

func (t *table) grow() {
	if n := 4 * len(t.index); n <= cap(t.index) {
		t.index = t.index[:n]
		clear(t.index)
	} else {
		t.index = make([]int32, n)
	}
	mask := uint64(len(t.index) - 1)
	for i, f := range t.features {
		at := f.hash & mask
		for t.index[at] != 0 {
			at = (at + 1) & mask
		}
		t.index[at] = int32(i + 1)
	}
}
