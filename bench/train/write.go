package main

import (
	"cmp"
	"math"
	"os"
	"slices"

	"mneme/internal/embed/static"
)

// write quantises the rows and writes them in the format of package static.
func (m *model) write(path string) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

func (m *model) encode() ([]byte, error) {
	order := make([]int, len(m.words))
	hashes := make([]uint64, len(m.words))
	top := float32(0)
	for i, w := range m.words {
		order[i], hashes[i] = i, static.Hash(w)
		for _, x := range m.rows[i*m.dims:][:m.dims] {
			top = max(top, x, -x)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(hashes[a], hashes[b]) })
	rows := make([]static.Row, len(order))
	for k, i := range order {
		rows[k] = quantise(hashes[i], m.rows[i*m.dims:][:m.dims], top)
	}
	return static.Encode(m.dims, rows)
}

// quantise scales a row to -127..127; its scale is in 65535ths of the largest.
func quantise(hash uint64, row []float32, top float32) static.Row {
	peak := float32(1e-12)
	for _, x := range row {
		peak = max(peak, x, -x)
	}
	r := static.Row{Hash: hash, Scale: uint16(max(1, math.Round(float64(peak)/float64(top)*65535))), Values: make([]int8, len(row))}
	for k, x := range row {
		r.Values[k] = int8(math.Round(float64(x) / float64(peak) * 127))
	}
	return r
}
