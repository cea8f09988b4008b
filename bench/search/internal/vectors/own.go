package vectors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mneme/bench/search/internal/peer"
	"mneme/internal/index/vector"
)

// own is a Set of package vector behind the commands. A set knows vectors by an
// ID that is never used twice; a row keeps its number when its vector is
// replaced, and rows says which row an ID belongs to.
type own struct {
	opt  vector.Options
	dim  int
	set  *vector.Set
	file string // of the vectors, once built or loaded
	rows []int32
	ids  []vector.ID // of each row
	// vecs are what the set was filled with, mapped, for scoring what it finds.
	vecs    []*mapped
	filter  *mask
	loading atomic.Bool
}

// chunk is the number of vectors handed to the set at once.
const chunk = 4096

func newOwn(args []string) (*own, error) {
	if len(args) != 4 {
		return nil, errors.New("ENGINE DIM M EFC are wanted")
	}
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[1+i]); err != nil {
			return nil, fmt.Errorf("argument %q: %w", args[1+i], err)
		}
	}
	o := &own{dim: n[0]}
	o.opt = vector.Options{
		Engine: vector.Engine(args[0]),
		Params: vector.Params{M: n[1], EfConstruction: n[2]},
		// A graph of any size is to be measured, and no guard hides what it misses.
		ExactBelow: -1, GuardRecall: -1,
		Exact: o.exact, Pace: o.pace,
	}
	if err := o.opt.Validate(); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *own) close() {
	if o.set != nil {
		o.set.Close()
	}
	for _, m := range o.vecs {
		m.close()
	}
}

// open takes an empty set that is built by so many goroutines.
func (o *own) open(threads int) (err error) {
	if o.set != nil {
		o.set.Close()
	}
	o.opt.BuildWorkers = threads
	o.set, err = vector.NewSet(o.dim, o.opt)
	return err
}

// pace makes the builder step back while a saved graph is about to come, as it
// does in a node.
func (o *own) pace() time.Duration {
	if o.loading.Load() {
		return 20 * time.Millisecond
	}
	return 0
}

// exact gives the full-precision vectors of ids from the mapped files.
func (o *own) exact(_ context.Context, ids []vector.ID, dst []float32) error {
	for i, id := range ids {
		v, _ := o.run([]vector.ID{id})
		copy(dst[i*o.dim:], v)
	}
	return nil
}

// build fills the set from a file and waits for the graph.
func (o *own) build(ctx context.Context, file string, n, threads int) (peer.Reply, error) {
	m, err := mapFloats(file, n*o.dim)
	if err != nil {
		return peer.Reply{}, err
	}
	o.vecs = append(o.vecs, m)
	o.file = file
	o.rows, o.ids = make([]int32, 0, n), make([]vector.ID, 0, n)
	before := resident()
	if err := o.open(threads); err != nil {
		return peer.Reply{}, err
	}
	seconds, err := timed(threads, func() error {
		for at := 0; at < n; at += chunk {
			if err := o.append(m.floats[at*o.dim:min(n, at+chunk)*o.dim], at); err != nil {
				return err
			}
		}
		return o.set.Wait(ctx)
	})
	const tables = 8 // bytes a vector: rows and ids, which belong to the benchmark
	return peer.Reply{Seconds: seconds, Bytes: resident() - before - int64(tables*n)}, err
}

// append adds vectors as the rows from first on.
func (o *own) append(flat []float32, first int) error {
	rows := make([]int32, len(flat)/o.dim)
	for i := range rows {
		rows[i] = int32(first + i)
	}
	return o.appendRows(flat, rows)
}

func (o *own) appendRows(flat []float32, rows []int32) error {
	ids := make([]vector.ID, len(rows))
	for i, row := range rows {
		ids[i] = vector.ID(len(o.rows))
		o.rows = append(o.rows, row)
		for int(row) >= len(o.ids) {
			o.ids = append(o.ids, 0)
		}
		o.ids[row] = ids[i]
	}
	return o.set.AddBulk(ids, flat)
}

// searchFile searches whole rounds over the queries until at least seconds are
// over, and writes the rows found.
func (o *own) searchFile(ctx context.Context, file string, n, k, ef, threads int, seconds float64, to string) (peer.Reply, error) {
	queries, err := mapFloats(file, n*o.dim)
	if err != nil {
		return peer.Reply{}, err
	}
	defer queries.close()
	if err := o.set.SetEfSearch(ef); err != nil {
		return peer.Reply{}, err
	}
	found := make([]int32, n*k)
	rounds := 0
	took, err := timed(threads, func() error {
		for began := time.Now(); ; {
			if err := o.round(ctx, queries.floats, n, k, threads, found); err != nil {
				return err
			}
			rounds++
			if time.Since(began).Seconds() >= seconds {
				return nil
			}
		}
	})
	if err != nil {
		return peer.Reply{}, err
	}
	return peer.Reply{Seconds: took, Queries: rounds * n}, writeRows(to, found)
}

// round asks each query once.
func (o *own) round(ctx context.Context, queries []float32, n, k, threads int, found []int32) error {
	var f vector.Filter
	if o.filter != nil {
		f = o.filter
	}
	one := func(q int) error {
		hits, err := o.set.Search(ctx, queries[q*o.dim:(q+1)*o.dim], k, f)
		if err != nil {
			return err
		}
		to := found[q*k : (q+1)*k]
		for i := range to {
			to[i] = -1
			if i < len(hits) {
				to[i] = o.rows[hits[i].ID]
			}
		}
		return nil
	}
	return spread(threads, n, one)
}

// spread calls do(0..n-1) on that many goroutines.
func spread(threads, n int, do func(i int) error) error {
	if threads <= 1 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, threads)
	for t := range threads {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[t] == nil; i = int(next.Add(1)) - 1 {
				errs[t] = do(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fill adds rows that were added before.
func (o *own) fill(ids []vector.ID) error {
	for len(ids) > 0 {
		flat, count := o.run(ids[:min(chunk, len(ids))])
		if err := o.set.AddBulk(ids[:count], flat); err != nil {
			return err
		}
		ids = ids[count:]
	}
	return nil
}

// run returns the vectors of the first ids as far as they stand one after the
// other in a file: the IDs of a file follow each other.
func (o *own) run(ids []vector.ID) (flat []float32, count int) {
	at := int(ids[0]) * o.dim
	for _, m := range o.vecs {
		if at >= len(m.floats) {
			at -= len(m.floats)
			continue
		}
		left := (len(m.floats) - at) / o.dim
		for count = 1; count < min(len(ids), left) && ids[count] == ids[0]+vector.ID(count); {
			count++
		}
		return m.floats[at : at+count*o.dim], count
	}
	panic(fmt.Sprintf("vectors: id %d was never added", ids[0]))
}

// replace gives rows other vectors: the old ones are deleted, the new ones get
// new IDs.
func (o *own) replace(ctx context.Context, file, rowsFile string, n, threads int) (peer.Reply, error) {
	m, err := mapFloats(file, n*o.dim)
	if err != nil {
		return peer.Reply{}, err
	}
	o.vecs = append(o.vecs, m)
	rows, err := readRows(rowsFile)
	if err != nil {
		return peer.Reply{}, err
	}
	if len(rows) < n {
		return peer.Reply{}, fmt.Errorf("%s holds %d rows, %d are wanted", rowsFile, len(rows), n)
	}
	rows = rows[:n]
	seconds, err := timed(threads, func() error {
		for at := 0; at < n; at += chunk {
			part := rows[at:min(n, at+chunk)]
			for _, row := range part {
				if !o.set.Delete(o.ids[row]) {
					return fmt.Errorf("row %d is not there", row)
				}
			}
			if err := o.appendRows(m.floats[at*o.dim:(at+len(part))*o.dim], part); err != nil {
				return err
			}
		}
		return o.set.Wait(ctx)
	})
	return peer.Reply{Seconds: seconds}, err
}

// save writes the graph, and beside it how many vectors of which file it is of:
// the vectors themselves stay where they are.
func (o *own) save(path string) (r peer.Reply, err error) {
	if o.opt.Engine != vector.EngineMneme {
		return r, fmt.Errorf("%w: engine %s saves nothing", peer.ErrUnsupported, o.opt.Engine)
	}
	began := time.Now()
	f, err := os.Create(path)
	if err != nil {
		return r, err
	}
	if err := errors.Join(o.set.Save(f), f.Close()); err != nil {
		return r, err
	}
	seconds := time.Since(began).Seconds()
	info, err := os.Stat(path)
	if err != nil {
		return r, err
	}
	about := fmt.Sprintf("%d %s", len(o.rows), o.file)
	return peer.Reply{Seconds: seconds, Bytes: info.Size()}, os.WriteFile(path+".of", []byte(about), 0o600)
}

// load fills the set from the file of vectors and takes the saved graph.
func (o *own) load(ctx context.Context, path string) (r peer.Reply, err error) {
	var n int
	about, err := os.ReadFile(path + ".of")
	if err != nil {
		return r, err
	}
	if _, err := fmt.Sscan(string(about), &n, &o.file); err != nil {
		return r, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return r, err
	}
	began := time.Now()
	m, err := mapFloats(o.file, n*o.dim)
	if err != nil {
		return r, err
	}
	if err := o.open(runtime.GOMAXPROCS(0)); err != nil {
		return r, err
	}
	o.vecs, o.rows, o.ids = []*mapped{m}, nil, nil
	for id := range n {
		o.rows, o.ids = append(o.rows, int32(id)), append(o.ids, vector.ID(id))
	}
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	o.loading.Store(true)
	err = errors.Join(o.fill(o.ids), o.set.Load(f))
	o.loading.Store(false)
	if err := errors.Join(err, o.set.Wait(ctx)); err != nil {
		return r, err
	}
	return peer.Reply{Seconds: time.Since(began).Seconds(), Bytes: info.Size()}, nil
}
