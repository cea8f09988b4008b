package vectors

import (
	"math/bits"
	"os"

	"mneme/internal/index/vector"
)

// mask is a filter over IDs, like a bitmap of what a query may see.
type mask struct {
	words []uint64
	count int
}

func (m *mask) Contains(id vector.ID) bool { return m.words[id/64]>>(id%64)&1 == 1 }

func (m *mask) Count() int { return m.count }

func (m *mask) Each(yield func(vector.ID) bool) {
	for i, word := range m.words {
		for ; word != 0; word &= word - 1 {
			if !yield(vector.ID(64*i + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// setFilter reads a byte for each row; "-" allows all.
func (o *own) setFilter(file string) error {
	o.filter = nil
	if file == "-" {
		return nil
	}
	allowed, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	m := &mask{words: make([]uint64, len(o.rows)/64+1)}
	for row, ok := range allowed {
		if ok != 0 {
			id := o.ids[row]
			m.words[id/64] |= 1 << (id % 64)
			m.count++
		}
	}
	o.filter = m
	return nil
}
