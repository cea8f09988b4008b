package main

import (
	"log"
	"maps"
	"math"
	"slices"
)

// removeCommon takes the strongest directions of the vectors of texts out of every
// row: they say that something is a text, not what about (Arora et al. 2017, the
// common component). A sum of rows is without them as well, so that nothing is left
// to do when a text is embedded.
func removeCommon(rows []float32, groups map[string][]pair, o fitOptions) {
	const texts, rounds = 20000, 30
	for k := range o.remove {
		var units []float32
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			step := max(1, len(groups[name])*len(groups)/texts)
			for i := 0; i < len(groups[name]); i += step {
				units = append(units, unitSum(rows, groups[name][i].A, o.dims)...)
			}
		}
		direction := make([]float32, o.dims)
		for i := range direction {
			direction[i] = 1
		}
		strength := float32(0)
		for range rounds { // power iteration on the second moments
			next := make([]float32, o.dims)
			for at := 0; at < len(units); at += o.dims {
				u := units[at:][:o.dims]
				axpy(dot(u, direction), u, next)
			}
			strength = float32(math.Sqrt(float64(dot(next, next)))) + 1e-12
			for i := range next {
				direction[i] = next[i] / strength
			}
		}
		for at := 0; at < len(rows); at += o.dims {
			row := rows[at:][:o.dims]
			axpy(-dot(row, direction), direction, row)
		}
		log.Printf("common component %d: %.3f of the texts' energy", k+1, strength/float32(len(units)/o.dims))
	}
}

// unitSum returns the sum of the rows of ids with length 1.
func unitSum(rows []float32, ids []int32, dims int) []float32 {
	u := make([]float32, dims)
	for _, id := range ids {
		axpy(1, rows[int(id)*dims:][:dims], u)
	}
	length := float32(math.Sqrt(float64(dot(u, u)))) + 1e-12
	for i := range u {
		u[i] /= length
	}
	return u
}
