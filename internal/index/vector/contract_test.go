package vector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func engines() []Engine { return []Engine{EngineMneme, EngineCoder, EngineExact} }

// idFilter allows a sorted list of IDs; unknown hides its size.
type idFilter struct {
	ids     []ID
	unknown bool
}

func (f idFilter) Contains(id ID) bool { _, ok := slices.BinarySearch(f.ids, id); return ok }
func (f idFilter) Count() int {
	if f.unknown {
		return -1
	}
	return len(f.ids)
}
func (f idFilter) Each(yield func(ID) bool) {
	for _, id := range f.ids {
		if !yield(id) {
			return
		}
	}
}

const (
	// byteError is what scores of bytes may be off, where components are as
	// large as those of a vector of a few dimensions; exactError is what sums of
	// float32 may be.
	byteError  = 0.01
	exactError = 1e-5
)

// exactly gives the vectors of a twin in full precision.
func (t twin) exactly(_ context.Context, ids []ID, dst []float32) error {
	for i, id := range ids {
		n := len(dst) / len(ids)
		copy(dst[i*n:(i+1)*n], t[id])
	}
	return nil
}

// checkHits fails unless got are live, allowed, ordered, rightly scored and as
// many as exist. It returns the recall against the twin.
func checkHits(t *testing.T, live twin, q []float32, k int, f Filter, got []Hit) float64 {
	t.Helper()
	return checkScores(t, live, q, k, f, got, byteError)
}

func checkScores(t *testing.T, live twin, q []float32, k int, f Filter, got []Hit, off float64) float64 {
	t.Helper()
	want := live.search(q, k, f)
	if len(got) != len(want) {
		t.Fatalf("%d hits, %d exist", len(got), len(want))
	}
	found := 0
	for i, h := range got {
		v, ok := live[h.ID]
		if !ok || f != nil && !f.Contains(h.ID) {
			t.Fatalf("hit %d: id %d is not to be found", i, h.ID)
		}
		score := dotFloats(v, q)
		if math.Abs(float64(score-h.Score)) > off {
			t.Fatalf("hit %d: id %d scores %v, want %v", i, h.ID, h.Score, score)
		}
		if i > 0 && (h.Score > got[i-1].Score || h.Score == got[i-1].Score && h.ID <= got[i-1].ID) {
			t.Fatalf("hits %d and %d out of order: %v", i-1, i, got)
		}
		if float64(score) >= float64(want[len(want)-1].Score)-off {
			found++
		}
	}
	if len(want) == 0 {
		return 1
	}
	return float64(found) / float64(len(want))
}

// TestContract runs random operations on each engine beside the dumb twin.
func TestContract(t *testing.T) {
	for _, engine := range engines() {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/seed=%d", engine, seed), func(t *testing.T) {
				// Coder never passes the guard: trust it in odd seeds, to
				// see what reaches the caller from its walks.
				opt := Options{Engine: engine, ExactBelow: 40, Params: Params{M: 8, EfConstruction: 40}}
				if seed%2 == 1 {
					opt.GuardRecall = -1
				}
				opt.BuildWorkers = 1 + int(seed)%3
				if s, err := NewSet(5, opt); errors.Is(err, ErrEngineUnavailable) {
					t.Skip(err)
				} else {
					_ = s.Close()
				}
				runContract(t, seed, opt)
			})
		}
	}
}

func runContract(t *testing.T, seed uint64, opt Options) {
	rng := rand.New(rand.NewPCG(seed, 99))
	dim := 1 + rng.IntN(40)
	data := newClustered(seed, dim, 12, 0.7)
	s := mustSet(t, dim, opt)
	live := twin{}
	off := byteError
	if seed%3 == 0 {
		s.opt.Exact, off = live.exactly, exactError
	}
	next := ID(rng.IntN(3))
	recall, searches := 0.0, 0
	for range 500 {
		switch op := rng.IntN(20); {
		case op < 5:
			v := data.next()
			if rng.IntN(8) == 0 && len(live) > 0 { // a twin of some vector
				for _, other := range live {
					v = other
					break
				}
			}
			if err := s.Add(next, v); err != nil {
				t.Fatal(err)
			}
			live[next] = v
			next += 1 + ID(rng.IntN(3))
		case op < 6:
			vs := data.take(1 + rng.IntN(60))
			fill(t, s, next, vs)
			for i, v := range vs {
				live[next+ID(i)] = v
			}
			next += ID(len(vs))
		case op < 10 && next > 0:
			for range 1 + rng.IntN(4) {
				id := ID(rng.IntN(int(next)))
				_, want := live[id]
				if got := s.Delete(id); got != want {
					t.Fatalf("delete %d: %v, want %v", id, got, want)
				}
				delete(live, id)
			}
		case op == 10:
			mustWait(t, s)
		default:
			var f Filter
			if n := rng.IntN(4); n < 2 && next > 0 {
				ids := make([]ID, 0, next)
				share := rng.Float64()
				for id := range next + 5 {
					if rng.Float64() < share {
						ids = append(ids, id)
					}
				}
				f = idFilter{ids: ids, unknown: n == 0}
			}
			q, k := data.next(), rng.IntN(15)
			recall += checkScores(t, live, q, k, f, mustSearch(t, s, q, k, f), off)
			searches++
		}
	}
	mustWait(t, s)
	if st := s.Stats(); st.Live != len(live) || st.Deleted > compactMin && st.Deleted*10 > (st.Live+st.Deleted)*compactShare {
		t.Errorf("stats %+v with %d live", st, len(live))
	}
	if recall /= float64(searches); recall < 0.95 && opt.Engine != EngineCoder {
		t.Errorf("mean recall %.3f", recall)
	}
}

// TestSearchWhileBuilding searches, adds and deletes from several goroutines
// while the graph grows; run it with -race.
func TestSearchWhileBuilding(t *testing.T) {
	const n, dim = 2000, 24
	for _, engine := range engines() {
		t.Run(string(engine), func(t *testing.T) {
			s, err := NewSet(dim, Options{Engine: engine, ExactBelow: 200, GuardRecall: -1, Params: Params{M: 8, EfConstruction: 40}})
			if errors.Is(err, ErrEngineUnavailable) {
				t.Skip(err)
			}
			defer s.Close()
			data := newClustered(5, dim, 20, 0.7)
			vs := data.take(n)
			fill(t, s, 0, vs[:1000])
			var wg sync.WaitGroup
			done := make(chan struct{})
			stop := sync.OnceFunc(func() { close(done); wg.Wait() })
			defer stop()
			for range 3 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := 0; ; i++ {
						select {
						case <-done:
							return
						default:
						}
						// IDs 3m+1 are never deleted: the vector itself is found
						// or the graph lost it.
						id := ID(i*3+1) % 999
						if id%3 != 1 {
							continue
						}
						hits, err := s.Search(context.Background(), vs[id], 3, nil)
						if err != nil || len(hits) != 3 {
							t.Errorf("%d hits, %v", len(hits), err)
							return
						}
						s.Stats()
					}
				}()
			}
			for i := 1000; i < n; i++ {
				if err := s.Add(ID(i), vs[i]); err != nil {
					t.Fatal(err)
				}
				if i%3 != 1 {
					s.Delete(ID(i - 600))
				}
				hits := mustSearch(t, s, vs[i], 1, nil)
				// coder's graph loses vectors, which only the guard notices, and it is off.
				if len(hits) != 1 || engine != EngineCoder && hits[0].Score < 0.9999 {
					t.Fatalf("vector %d is not found after Add: %v", i, hits)
				}
			}
			stop()
			mustWait(t, s)
		})
	}
}

func TestInputErrors(t *testing.T) {
	s := mustSet(t, 3, Options{})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	good := []float32{1, 0, 0}
	if err := s.Add(7, good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want error
	}{
		{s.Add(8, []float32{1, 0}), ErrDimension},
		{s.Add(8, []float32{1, nan, 0}), ErrNotFinite},
		{s.Add(8, []float32{inf, 0, 0}), ErrNotFinite},
		{s.Add(8, []float32{3e38, 3e38, 0}), ErrNotFinite},
		{s.Add(7, good), ErrOrder},
		{s.Add(6, good), ErrOrder},
		{s.AddBulk([]ID{8, 9}, good), ErrDimension},
		{s.AddBulk([]ID{9, 8}, append(good, good...)), ErrOrder},
		{s.AddBulk([]ID{8, 9}, []float32{1, 0, 0, 1, nan, 0}), ErrNotFinite},
		{s.AddBulk([]ID{7}, good), ErrOrder},
		{s.AddBulk(nil, nil), nil},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("got %v, want %v", c.err, c.want)
		}
	}
	if n := s.Stats().Live; n != 1 {
		t.Errorf("%d vectors after refused additions", n)
	}
	for _, q := range [][]float32{{1}, {nan, 0, 0}} {
		if _, err := s.Search(context.Background(), q, 1, nil); err == nil {
			t.Errorf("search for %v gives no error", q)
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Search(gone, good, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled search: %v", err)
	}
	if hits := mustSearch(t, s, []float32{0, 0, 0}, 2, nil); len(hits) != 1 || hits[0] != (Hit{ID: 7}) {
		t.Errorf("search for zero: %v", hits)
	}
	if hits := mustSearch(t, s, good, 0, nil); hits != nil {
		t.Errorf("k 0 gives %v", hits)
	}
	if s.Delete(9) || !s.Delete(7) || s.Delete(7) {
		t.Error("delete says otherwise")
	}
	_ = s.Close()
	_ = s.Close()
	if err := s.Add(10, good); !errors.Is(err, ErrClosed) {
		t.Errorf("add after close: %v", err)
	}
	if err := s.Wait(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("wait after close: %v", err)
	}
	if s.Delete(7) {
		t.Error("deleted after close")
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Engine: "other"}, {GuardSample: -1}, {GuardRecall: 1.5}, {GuardRecall: math.NaN()},
		{Params: Params{M: 1}}, {Params: Params{M: 200}}, {Params: Params{EfConstruction: 3}},
		{Params: Params{EfSearch: -1}}, {Params: Params{EfSearch: 1 << 20}},
	} {
		if _, err := NewSet(4, o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, dim := range []int{0, -1, maxDim + 1} {
		if _, err := NewSet(dim, Options{}); !errors.Is(err, ErrOptions) {
			t.Errorf("dimension %d: %v", dim, err)
		}
	}
}

func TestSearchAllocatesItsResultOnly(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	data := newClustered(8, 32, 20, 0.7)
	s := mustSet(t, 32, Options{ExactBelow: 100})
	fill(t, s, 0, data.take(2000))
	mustWait(t, s)
	if st := s.Stats(); st.Engine != EngineMneme {
		t.Fatalf("graph does not answer: %+v", st)
	}
	var narrow, wide idFilter
	for id := range ID(2000) {
		wide.ids = append(wide.ids, id)
		if id%100 == 0 {
			narrow.ids = append(narrow.ids, id)
		}
	}
	wide.unknown = true
	q, ctx := data.next(), context.Background()
	for name, f := range map[string]Filter{"all": nil, "narrow": &narrow, "wide": &wide} {
		if n := testing.AllocsPerRun(200, func() { _, _ = s.Search(ctx, q, 10, f) }); n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
