package vectors

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"mneme/bench/internal/cluster"
)

// data is the files of one run: what all indexes read.
type data struct {
	dir     string
	n, dim  int
	queries int
	base    string // n vectors
	asked   string // the queries
	fresh   string // the vectors that replace others
	rows    string // uint32: which rows those are
	mixed   string // base with those rows replaced
	changed int    // how many
}

// newData draws everything into dir. A part of the vectors share a centre;
// there are perCluster a centre whatever n is, so that neighbours stay as hard
// to tell apart.
func newData(dir string, opt Options, n, dim int) (*data, error) {
	d := &data{dir: dir, n: n, dim: dim, queries: opt.Queries, changed: n / 2}
	for name, at := range map[string]*string{"base": &d.base, "queries": &d.asked, "fresh": &d.fresh, "rows": &d.rows, "mixed": &d.mixed} {
		*at = filepath.Join(dir, fmt.Sprintf("%s-%d-%d", name, n, dim))
	}
	source := cluster.New(opt.Seed, dim, max(n/opt.PerCluster, 1), opt.Noise)
	for _, f := range []struct {
		path  string
		count int
	}{{d.base, n}, {d.asked, d.queries}, {d.fresh, d.changed}} {
		if err := source.Write(f.path, f.count); err != nil {
			return nil, err
		}
	}
	rng := rand.New(rand.NewPCG(opt.Seed, 5))
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	rng.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	rows = rows[:d.changed]
	if err := writeRows(d.rows, rows); err != nil {
		return nil, err
	}
	return d, d.mix(rows)
}

// mix writes base with the fresh vectors in place of those rows.
func (d *data) mix(rows []int32) error {
	base, err := os.ReadFile(d.base)
	if err != nil {
		return err
	}
	fresh, err := os.ReadFile(d.fresh)
	if err != nil {
		return err
	}
	size := 4 * d.dim
	for i, row := range rows {
		copy(base[int(row)*size:(int(row)+1)*size], fresh[i*size:(i+1)*size])
	}
	return os.WriteFile(d.mixed, base, 0o600)
}

// mask writes a filter that allows count rows, spread at random.
func (d *data) mask(seed uint64, count int) (path string, err error) {
	rng := rand.New(rand.NewPCG(seed, 6))
	allowed := make([]byte, d.n)
	for i := range count {
		allowed[i] = 1
	}
	rng.Shuffle(d.n, func(i, j int) { allowed[i], allowed[j] = allowed[j], allowed[i] })
	path = filepath.Join(d.dir, fmt.Sprintf("mask-%d-%d-%d", d.n, d.dim, count))
	return path, os.WriteFile(path, allowed, 0o600)
}

// recall is the share of the true rows that were found; both hold k a query,
// -1 for none.
func recall(found, truth []int32, k int) float64 {
	right, all := 0, 0
	for q := 0; q+k <= len(truth); q += k {
		want := map[int32]bool{}
		for _, row := range truth[q : q+k] {
			if row >= 0 {
				want[row] = true
				all++
			}
		}
		for _, row := range found[q : q+k] {
			if want[row] {
				delete(want, row)
				right++
			}
		}
	}
	if all == 0 {
		return 1
	}
	return float64(right) / float64(all)
}
