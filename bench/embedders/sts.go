package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// sts returns Spearman's correlation between judged similarity and cosine.
func sts(dir, lang string, e embedder) (float64, error) {
	path := filepath.Join(dir, "sts", "stsb-"+lang+"-dev.csv")
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("open STS-B: %w", err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	var judged, measured []float64
	for i, r := range rows {
		if len(r) != 3 {
			return 0, fmt.Errorf("read %s: row %d has %d columns", path, i+1, len(r))
		}
		x, err := strconv.ParseFloat(r[2], 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: row %d: %w", path, i+1, err)
		}
		judged, measured = append(judged, x), append(measured, dot(e.vector(r[0]), e.vector(r[1])))
	}
	return spearman(judged, measured), nil
}

func dot(a, b []float32) float64 {
	sum := float32(0)
	for i := range a {
		sum += a[i] * b[i]
	}
	return float64(sum)
}

// spearman is Pearson's correlation of ranks; equal values share their mean rank.
func spearman(a, b []float64) float64 {
	a, b = ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - mean) * (b[i] - mean)
		aa += (a[i] - mean) * (a[i] - mean)
		bb += (b[i] - mean) * (b[i] - mean)
	}
	return ab / math.Sqrt(aa*bb)
}

func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	out := make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}
