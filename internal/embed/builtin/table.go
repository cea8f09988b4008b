package builtin

// table counts features by hash: open addressing over a list in order of arrival.
// Most texts fit in the space that comes with it.
type table struct {
	features []feature
	// index holds 1 + the place in features, or 0. Its length is a power of two and at
	// least twice that of features.
	index      []int32
	space      [96]feature
	indexSpace [256]int32
}

func (t *table) init() {
	t.features, t.index = t.space[:0], t.indexSpace[:]
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
	t.index = make([]int32, 4*len(t.index))
	mask := uint64(len(t.index) - 1)
	for i, f := range t.features {
		at := f.hash & mask
		for t.index[at] != 0 {
			at = (at + 1) & mask
		}
		t.index[at] = int32(i + 1)
	}
}
