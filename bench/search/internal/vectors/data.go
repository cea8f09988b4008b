package vectors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"mneme/bench/internal/points"
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
	about   string // for people
}

// newData draws everything into dir. A part of the clustered vectors share a centre;
// there are perCluster a centre whatever n is, so that neighbours stay as hard
// to tell apart. None replace vectors of texts, of which there are not so many.
func newData(ctx context.Context, dir string, opt Options, n, dim int) (*data, error) {
	d := &data{dir: dir, n: n, dim: dim, queries: opt.Queries, changed: n / 2}
	if opt.Of == points.Texts {
		d.changed = 0
	}
	for name, at := range map[string]*string{"base": &d.base, "queries": &d.asked, "fresh": &d.fresh, "rows": &d.rows, "mixed": &d.mixed} {
		*at = filepath.Join(dir, fmt.Sprintf("%s-%d-%d", name, n, dim))
	}
	source, err := points.New(ctx, opt.Of, points.Options{Seed: opt.Seed, Dim: dim, Count: n + d.changed, Queries: d.queries,
		Clusters: max(n/opt.PerCluster, 1), Noise: opt.Noise, Texts: opt.Texts})
	if err != nil {
		return nil, err
	}
	d.about = source.About
	for _, err := range []error{source.Write(d.base, n), source.WriteQueries(d.asked, d.queries), source.Write(d.fresh, d.changed)} {
		if err != nil {
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

// tie is how far apart two products of one distance may lie.
const tie = 1e-6

// recall is the share of the true rows that were found; both hold k a query, -1 for none.
// A row as near to the query as the last of the true ones is one of them. rows and queries
// are of dim floats each.
func recall(found, truth []int32, k int, rows, queries []float32, dim int) float64 {
	right, all := 0, 0
	dot := func(q int, row int32) float32 {
		sum := float32(0)
		vector := rows[int(row)*dim : (int(row)+1)*dim]
		for j, x := range queries[q*dim : (q+1)*dim] {
			sum += x * vector[j]
		}
		return sum
	}
	for q := 0; (q+1)*k <= len(truth); q++ {
		want := truth[q*k : (q+1)*k]
		for len(want) > 0 && want[len(want)-1] < 0 {
			want = want[:len(want)-1]
		}
		if len(want) == 0 {
			continue
		}
		all += len(want)
		least := dot(q, want[len(want)-1]) - tie
		counted := 0
		for i, row := range found[q*k : (q+1)*k] {
			if row < 0 || slices.Contains(found[q*k:q*k+i], row) || counted == len(want) {
				continue
			}
			if slices.Contains(want, row) || dot(q, row) >= least {
				counted++
			}
		}
		right += counted
	}
	if all == 0 {
		return 1
	}
	return float64(right) / float64(all)
}
