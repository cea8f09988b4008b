package vector

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// logLines collects what the builder logs; the builder is waited for before
// it is read.
func logLines() (*slog.Logger, *bytes.Buffer) {
	var buf bytes.Buffer
	return slog.New(slog.NewTextHandler(&buf, nil)), &buf
}

func TestGuardPassesOwnGraph(t *testing.T) {
	data := newClustered(21, 32, 30, 0.8)
	s := mustSet(t, 32, Options{ExactBelow: 500})
	if st := s.Stats(); st.Guard != GuardNone || st.Engine != EngineExact || st.Configured != EngineMneme {
		t.Errorf("empty: %+v", st)
	}
	fill(t, s, 0, data.take(1500))
	mustWait(t, s)
	st := s.Stats()
	if st.Guard != GuardOK || st.Recall < 0.95 || st.Engine != EngineMneme || st.InGraph != 1500 || st.Tail != 0 {
		t.Errorf("built: %+v", st)
	}
	if st.Bytes < 1500*32 || st.BytesPerVector < 32+2*16*4 || st.BytesPerVector > 300 {
		t.Errorf("bytes: %+v", st)
	}
}

// With v0.6.1 the coder engine finds too little on clustered data. Should a
// later version pass, this test says so and the default may be thought over.
func TestGuardTripsOnCoder(t *testing.T) {
	log, lines := logLines()
	const n = 1500
	data := newClustered(22, 32, 30, 0.8)
	vs := data.take(n)
	s, err := NewSet(32, Options{Engine: EngineCoder, ExactBelow: 500, Logger: log})
	if errors.Is(err, ErrEngineUnavailable) {
		t.Skip(err)
	}
	defer s.Close()
	fill(t, s, 0, vs)
	mustWait(t, s)
	st := s.Stats()
	t.Logf("coder recall %.3f", st.Recall)
	if st.Guard != GuardTripped || st.Recall >= 0.95 || st.Engine != EngineExact {
		t.Fatalf("not tripped: %+v", st)
	}
	if !strings.Contains(lines.String(), "recall guard tripped") || !strings.Contains(lines.String(), "engine=coder") {
		t.Errorf("log: %q", lines)
	}
	live := twin{}
	for i, v := range vs {
		live[ID(i)] = v
	}
	for _, q := range data.take(20) {
		if r := checkHits(t, live, q, 10, nil, mustSearch(t, s, q, 10, nil)); r < 1 {
			t.Errorf("recall %.2f behind a tripped guard", r)
		}
	}
}

// faulty loses what its slots say, or panics like a broken library.
type faulty struct {
	graph
	loseNth      func(nth int) bool // of different queries
	mu           sync.Mutex
	queries      map[string]int // their numbers
	lose, broken bool
	loseOf       map[int]bool // searches for so many
	searched     atomic.Int64
}

func (f *faulty) search(view *storeView, sc *scratch, k int, fl Filter, upto uint32) bool {
	f.searched.Add(1)
	if !f.graph.search(view, sc, k, fl, upto) {
		return false
	}
	nth := 0
	if f.loseNth != nil {
		f.mu.Lock()
		if _, ok := f.queries[string(sc.query)]; !ok {
			f.queries[string(sc.query)] = len(f.queries)
		}
		nth = f.queries[string(sc.query)]
		f.mu.Unlock()
	}
	if f.loseNth != nil && f.loseNth(nth) {
		sc.best.keys = sc.best.keys[:guardK/2]
	}
	if f.lose || f.loseOf[k] {
		sc.best.keys = sc.best.keys[:len(sc.best.keys)/2]
	}
	return true
}

func (f *faulty) insert(limit int) bool {
	if f.broken && f.inserted() >= 600 {
		return false
	}
	return f.graph.insert(limit)
}

func TestGuardWatchesOwnGraphToo(t *testing.T) {
	for name, fault := range map[string]*faulty{"loses": {lose: true}, "breaks": {broken: true}} {
		t.Run(name, func(t *testing.T) {
			log, lines := logLines()
			data := newClustered(23, 16, 30, 0.8)
			s := mustSet(t, 16, Options{ExactBelow: 500, Logger: log, Params: Params{M: 8, EfConstruction: 40}})
			gen := s.gen.Load()
			fault.graph = s.withGraph(gen).graph
			gen.graph = fault
			vs := data.take(1000)
			fill(t, s, 0, vs)
			mustWait(t, s)
			st := s.Stats()
			if st.Guard != GuardTripped || st.Engine != EngineExact || lines.Len() == 0 {
				t.Fatalf("not tripped: %+v, log %q", st, lines)
			}
			asked := fault.searched.Load()
			live := twin{}
			for i, v := range vs {
				live[ID(i)] = v
			}
			if r := checkHits(t, live, vs[5], 10, nil, mustSearch(t, s, vs[5], 10, nil)); r < 1 || fault.searched.Load() != asked {
				t.Errorf("recall %.2f, graph asked %d times", r, fault.searched.Load()-asked)
			}
			// More vectors keep a broken graph broken, and the set whole.
			fill(t, s, 1000, data.take(600))
			mustWait(t, s)
			if got := mustSearch(t, s, vs[7], 20, nil); len(got) != 20 || s.Stats().Guard != GuardTripped {
				t.Errorf("%d hits, %+v", len(got), s.Stats())
			}
		})
	}
}

// A graph that was good and is no longer is noticed when it has grown.
func TestGuardLooksAgain(t *testing.T) {
	data := newClustered(24, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{M: 8, EfConstruction: 40}})
	fault := &faulty{graph: s.withGraph(s.gen.Load()).graph}
	s.gen.Load().graph = fault
	fill(t, s, 0, data.take(800))
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK {
		t.Fatalf("%+v", st)
	}
	fault.lose = true
	fill(t, s, 800, data.take(50)) // below an eighth
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK || st.InGraph != 850 {
		t.Fatalf("%+v", st)
	}
	fill(t, s, 850, data.take(60))
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardTripped {
		t.Fatalf("%+v", st)
	}
	fault.lose = false
	fill(t, s, 910, data.take(200))
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK {
		t.Fatalf("%+v", st)
	}
}

// A graph that finds stored vectors, and what lies between them, and not what people ask, is
// found out once they ask.
func TestGuardAsksWhatWasAsked(t *testing.T) {
	data := newClustered(29, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{M: 8, EfConstruction: 40}})
	fault := &faulty{graph: s.withGraph(s.gen.Load()).graph}
	s.gen.Load().graph = fault
	vs := data.take(800)
	fill(t, s, 0, vs)
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK {
		t.Fatalf("%+v", st)
	}
	fault.loseOf = map[int]bool{7 + fineExtra: true} // searches for 7 find half of them
	live := twin{}
	for i, v := range vs {
		live[ID(i)] = v
	}
	filter := idFilter{unknown: true}
	for id := range ID(800) {
		filter.ids = append(filter.ids, id)
	}
	for i := range recentFirst - 1 {
		mustSearch(t, s, vs[i], 7, nil)
		mustSearch(t, s, vs[i], 7, filter) // is not noted
	}
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK {
		t.Fatalf("too soon: %+v", st)
	}
	mustSearch(t, s, vs[99], 7, nil)
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardTripped || st.Recall > 0.9 {
		t.Fatalf("not tripped: %+v", st)
	}
	for i := range 20 {
		if r := checkHits(t, live, vs[i], 7, nil, mustSearch(t, s, vs[i], 7, nil)); r < 1 {
			t.Errorf("recall %.2f behind a tripped guard", r)
		}
	}
}

// What the guard asks of itself, before anybody has asked anything, may be harder than what people
// ask: of 100,000 comments that are nearly alike a graph found 0.97 half-way between two, and 0.99
// of what was asked, and searches scanned for ever.
func TestATrippedGuardAsksWhatWasAsked(t *testing.T) {
	data := newClustered(31, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{M: 8, EfConstruction: 40}})
	fault := &faulty{graph: s.withGraph(s.gen.Load()).graph, loseOf: map[int]bool{guardK: true}} // the guard's own
	s.gen.Load().graph = fault
	vs := data.take(800)
	fill(t, s, 0, vs)
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardTripped {
		t.Fatalf("%+v", st)
	}
	for i := range recentFirst - 1 {
		mustSearch(t, s, vs[i], 7, nil)
	}
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardTripped {
		t.Fatalf("too soon: %+v", st)
	}
	mustSearch(t, s, vs[99], 7, nil)
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK || st.Recall < 0.98 {
		t.Fatalf("still tripped: %+v", st)
	}
}

// Sixty-four queries say little of a graph that finds about as much as it has to: it is asked more
// of them before it is believed or not. One that is far off is not.
func TestAGuardInDoubtAsksMore(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(nth int) bool
		want  GuardState
		asked int
	}{
		"flawed by chance": {func(nth int) bool { return nth < 4 }, GuardOK, guardMore * defaultGuardSample},
		"flawed":           {func(nth int) bool { return nth%20 < 1 }, GuardTripped, guardMore * defaultGuardSample},
		"bad":              {func(nth int) bool { return nth%5 < 1 }, GuardTripped, defaultGuardSample},
		"good":             {func(nth int) bool { return nth == 7 }, GuardOK, defaultGuardSample},
	} {
		t.Run(name, func(t *testing.T) {
			data := newClustered(32, 16, 30, 0.8)
			s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{M: 8, EfConstruction: 40, EfSearch: 100}})
			fault := &faulty{graph: s.withGraph(s.gen.Load()).graph, loseNth: c.lose, queries: map[string]int{}}
			s.gen.Load().graph = fault
			fill(t, s, 0, data.take(3000))
			mustWait(t, s)
			if st := s.Stats(); st.Guard != c.want || len(fault.queries) != c.asked {
				t.Errorf("%d queries, %+v", len(fault.queries), st)
			}
		})
	}
}

// What was asked is enough to judge by, once there is as much as the guard asks; before, it is
// asked besides.
func TestAGuardInDoubtKeepsToWhatWasAsked(t *testing.T) {
	data := newClustered(33, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{M: 8, EfConstruction: 40, EfSearch: 100}})
	fault := &faulty{graph: s.withGraph(s.gen.Load()).graph, queries: map[string]int{}, loseNth: func(int) bool { return false }}
	s.gen.Load().graph = fault
	vs := data.take(3000)
	fill(t, s, 0, vs)
	mustWait(t, s)
	fault.queries = map[string]int{}
	for i := range recentFirst {
		mustSearch(t, s, vs[i], 7, nil)
	}
	mustWait(t, s)
	if len(fault.queries) != recentFirst {
		t.Fatalf("%d queries", len(fault.queries))
	}
	fault.loseNth = func(nth int) bool { return nth%20 < 1 } // a few of those that were asked, and of others
	fill(t, s, 3000, data.take(400))
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardTripped || len(fault.queries) != recentFirst {
		t.Errorf("%d queries, %+v", len(fault.queries), st)
	}
}

// A list whose walk costs more than half of a scan is not worth it, so that a small set has a
// shorter longest one than a large set, and none has less than it is set to.
func TestTheLongestListGrowsWithTheSet(t *testing.T) {
	g := newHNSW(Params{}.withDefaults(), 1, nil, nil)
	for n, want := range map[uint32]int{0: 40, 3000: 40, 4096: 54, 20_000: 266, 100_000: 1333, maxSlots: maxEf} {
		if got := g.longestList(n); got != want {
			t.Errorf("among %d: %d, want %d", n, got, want)
		}
	}
}

// The guard comes a little late, when more than the first were asked, and is not late for the next
// time because of it.
func TestALateLookDelayedTheNext(t *testing.T) {
	data := newClustered(34, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{M: 8, EfConstruction: 40, EfSearch: 100}})
	fault := &faulty{graph: s.withGraph(s.gen.Load()).graph}
	gen := s.gen.Load()
	gen.graph = fault
	vs := data.take(800)
	fill(t, s, 0, vs)
	mustWait(t, s)
	gen.queries.Store(recentFirst + 6)
	s.recent.asked.Store(4*recentFirst - 1)
	mustSearch(t, s, vs[0], 7, nil)
	mustWait(t, s)
	if got := gen.queries.Load(); got != 4*recentFirst {
		t.Errorf("looked last after %d queries", got)
	}
}

// A search asks for more than an answer shows, and some for much more. The guard judges by the
// nearest alone: a graph that misses others of four hundred is no worse for it.
func TestGuardJudgesByTheNearest(t *testing.T) {
	data := newClustered(30, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300})
	fault := &faulty{graph: s.withGraph(s.gen.Load()).graph}
	s.gen.Load().graph = fault
	vs := data.take(2000)
	fill(t, s, 0, vs)
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK {
		t.Fatalf("%+v", st)
	}
	fault.loseOf = map[int]bool{100 + fineExtra: true} // those behind the best 54
	asked := fault.searched.Load()
	for i := range recentFirst {
		mustSearch(t, s, vs[i], 100, nil)
	}
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK || fault.searched.Load() < asked+2*recentFirst {
		t.Fatalf("tripped by what no answer shows: %+v, %d searches", st, fault.searched.Load())
	}
}

// What is asked may be easier than what the guard asked before: the candidate list gets
// shorter again, and is no longer than it has to be.
func TestGuardFindsTheShortestList(t *testing.T) {
	data := newClustered(31, 16, 30, 0.8)
	s := mustSet(t, 16, Options{ExactBelow: 300, Params: Params{EfSearch: 4}})
	fill(t, s, 0, data.take(4000))
	mustWait(t, s)
	gen := s.gen.Load()
	g := gen.graph.(*hnsw)
	longest := g.longestList(g.inserted())
	g.setEf(longest)
	if r, ok := s.measureRecall(context.Background(), gen, g.inserted()); !ok || r < defaultGuardRecall || int(g.ef.Load()) >= longest {
		t.Errorf("recall %.3f with a list of %d, of at most %d", r, g.ef.Load(), longest)
	}
}

// watched notes what is asked of a graph.
type watched struct {
	*hnsw
	queries map[string]bool
}

func (w watched) searchWide(view *storeView, sc *scratch, k, ef int, f Filter, upto uint32) bool {
	w.queries[string(sc.query)] = true
	return w.hnsw.searchWide(view, sc, k, ef, f, upto)
}

// Of two lists that were chosen on 64 queries of the same kind one was seven times as long as the
// other. It is chosen by more of what was asked, where that is there, and is the shortest that
// finds enough of it.
func TestAListIsChosenByWhatIsAsked(t *testing.T) {
	data := newClustered(35, 16, 1, 50)
	s := mustSet(t, 16, Options{ExactBelow: 500, Params: Params{M: 10, EfConstruction: 100, EfSearch: 10}})
	vs := data.take(6000)
	fill(t, s, 0, vs)
	mustWait(t, s)
	gen := s.gen.Load()
	g := gen.graph.(*hnsw)
	for _, asked := range []int{0, 40, 100, 300} {
		for i := s.recent.asked.Load(); i < uint64(asked); i++ {
			mustSearch(t, s, data.next(), 7, nil)
		}
		mustWait(t, s)
		spy := watched{g, map[string]bool{}}
		gen.graph = spy
		recall, ok := s.measureRecall(context.Background(), gen, g.inserted())
		if !ok {
			t.Fatal("interrupted")
		}
		gen.graph = g
		want := defaultGuardSample
		if asked > want {
			want = min(asked, recentMost)
		}
		if len(spy.queries) != want && !(asked < defaultGuardSample && recall < 0.98) {
			t.Errorf("%d were asked: %d queries", asked, len(spy.queries))
		}
		tr := trial{set: s, gen: gen, inserted: g.inserted(), lists: candidateLists(10, g.longestList(g.inserted()))}
		if !tr.extend(context.Background(), want) || len(tr.sample) != want {
			t.Fatalf("%d were asked: %d of %d", asked, len(tr.sample), want)
		}
		chosen := slices.Index(tr.lists, int(g.ef.Load()))
		if chosen < 1 {
			t.Fatalf("%d were asked: a list of %d, of %v: the data is too easy for this test", asked, g.ef.Load(), tr.lists)
		}
		at, _ := tr.recall(context.Background(), chosen)
		before, _ := tr.recall(context.Background(), chosen-1)
		if at != recall || at < tr.enough() && chosen < len(tr.lists)-1 || before >= tr.enough() {
			t.Errorf("%d were asked: a list of %d finds %.4f (%.4f), one of %d %.4f, enough is %.4f",
				asked, tr.lists[chosen], at, recall, tr.lists[chosen-1], before, tr.enough())
		}
	}
}

func TestEnoughIsLessOfMore(t *testing.T) {
	tr := trial{set: mustSet(t, 8, Options{})}
	for n, want := range map[int]float64{0: 1, 64: 0.987, 256: 0.9835} {
		tr.sample = make([]judged, n)
		if got := tr.enough(); math.Abs(got-want) > 1e-9 {
			t.Errorf("of %d queries %v, want %v", n, got, want)
		}
	}
}

// The guard looks after so many queries, and four times as many each time; of many queries one
// in so many is remembered.
func TestRecent(t *testing.T) {
	var r recent
	sc := newScratch(64)
	var looked []int
	for i := range 5000 {
		sc.query[0], sc.scale = uint8(i), float32(i)
		if r.note(sc, i) {
			looked = append(looked, i+1)
		}
		if i == 9 {
			if k := r.take(sc, 9); k != 0 || sc.query[0] != 0 || sc.scale != 0 || r.take(sc, 10) != 0 || r.kept() != 10 {
				t.Errorf("the first: %d, %d, %v", k, sc.query[0], sc.scale)
			}
			if k := r.take(sc, 0); k != 9 || sc.query[0] != 9 || sc.scale != 9 {
				t.Errorf("the last: %d, %d, %v", k, sc.query[0], sc.scale)
			}
		}
	}
	if !slices.Equal(looked, []int{64, 256, 1024, 4096}) {
		t.Errorf("looked at %v", looked)
	}
	for n, want := range map[uint64]int{0: 0, 63: 0, 64: 1, 255: 1, 256: 2, 1024: 3, 4095: 3} {
		if got := looks(n); got != want {
			t.Errorf("%d looks at %d, want %d", got, n, want)
		}
	}
	for i := range recentMost {
		if k := r.take(sc, i); k < 5000-recentMost*recentEach-recentEach || (k+1)%recentEach != 0 || sc.scale != float32(k) {
			t.Errorf("%d: %d", i, k)
		}
	}
}

func TestDeletedSampleAndEmptyGraph(t *testing.T) {
	s := mustSet(t, 8, Options{ExactBelow: -1})
	data := newClustered(25, 8, 3, 0.5)
	fill(t, s, 0, data.take(100))
	mustWait(t, s)
	for id := range ID(100) {
		if !s.Delete(id) {
			t.Fatalf("id %d was not there", id)
		}
	}
	if hits := mustSearch(t, s, data.next(), 5, nil); len(hits) != 0 {
		t.Errorf("deleted vectors found: %v", hits)
	}
	if r, ok := s.measureRecall(context.Background(), s.gen.Load(), 100); r != 1 || !ok {
		t.Errorf("recall of nothing %v, %v", r, ok)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	big := mustSet(t, 8, Options{Engine: EngineMneme, ExactBelow: -1, Params: Params{M: 4, EfConstruction: 8}})
	fill(t, big, 0, data.take(2*scanCheck))
	mustWait(t, big)
	if _, ok := big.measureRecall(stopped, big.gen.Load(), 2*scanCheck); ok {
		t.Error("guard ignores its context")
	}
}

func TestCloseWhileBuildingAndWaitDeadline(t *testing.T) {
	data := newClustered(26, 64, 30, 0.8)
	s := mustSet(t, 64, Options{ExactBelow: -1})
	fill(t, s, 0, data.take(4000))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Wait(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("close took %v", took)
	}
	if st := s.Stats(); st.InGraph == 4000 {
		t.Errorf("nothing was interrupted: %+v", st)
	}
}

// Deletions and additions that arrive while a compaction runs must survive
// the swap.
func TestChangesDuringCompaction(t *testing.T) {
	const n = 2000
	data := newClustered(27, 16, 30, 0.8)
	for _, engine := range []Engine{EngineMneme, EngineExact} {
		s := mustSet(t, 16, Options{Engine: engine, ExactBelow: 400, Params: Params{M: 8, EfConstruction: 40}})
		live := twin{}
		vs := data.take(2 * n)
		fill(t, s, 0, vs[:n])
		for i, v := range vs[:n] {
			live[ID(i)] = v
		}
		mustWait(t, s)
		overlapped := false
		for i := range n * 2 / 3 {
			s.Delete(ID(i))
			delete(live, ID(i))
			if err := s.Add(ID(n+i), vs[n+i]); err != nil {
				t.Fatal(err)
			}
			live[ID(n+i)] = vs[n+i]
			overlapped = overlapped || compactionDue(s.gen.Load())
			if i%50 == 0 {
				checkHits(t, live, vs[i], 10, nil, mustSearch(t, s, vs[i], 10, nil))
			}
		}
		if !overlapped {
			t.Error("no change met a compaction")
		}
		mustWait(t, s)
		checkHits(t, live, vs[0], 2*n, nil, mustSearch(t, s, vs[0], 2*n, nil))
		if st := s.Stats(); st.Live != len(live) || st.Deleted*10 > 3*(st.Live+st.Deleted) {
			t.Errorf("%s: %+v", engine, st)
		}
	}
}

// Data without clusters needs a longer candidate list than the default: the
// guard finds one before it gives up on the graph.
func TestGuardWidensBeforeItTrips(t *testing.T) {
	data := newClustered(23, 16, 1, 50) // one cluster drowned in noise: nearly uniform
	s := mustSet(t, 16, Options{ExactBelow: 500, Params: Params{M: 10, EfConstruction: 100, EfSearch: 10}})
	fill(t, s, 0, data.take(6000))
	mustWait(t, s)
	st := s.Stats()
	t.Logf("recall %.3f", st.Recall)
	if st.Guard != GuardOK || st.Recall < 0.98 {
		t.Fatalf("tripped although a wider search would do: %+v", st)
	}
	narrow := mustSet(t, 16, Options{ExactBelow: 500, GuardRecall: -1, Params: Params{M: 10, EfConstruction: 100, EfSearch: 10}})
	fill(t, narrow, 0, newClustered(23, 16, 1, 50).take(6000))
	mustWait(t, narrow)
	inserted := narrow.gen.Load().graph.inserted()
	if r, ok := narrow.measureRecall(context.Background(), narrow.gen.Load(), inserted); !ok || r >= 0.98 {
		t.Fatalf("the data is too easy for this test: recall %.3f without widening", r)
	}
}
