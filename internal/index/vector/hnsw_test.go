package vector

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
)

// reachable counts the slots that a walk over the ground layer comes to.
func reachable(g *hnsw) int {
	view := g.view()
	entry, _ := g.entry()
	seen := map[uint32]bool{entry: true}
	for queue := []uint32{entry}; len(queue) > 0; queue = queue[1:] {
		row := view.links(queue[0], 0)
		for _, to := range row[:linkCount(row)] {
			to &^= treeLink
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return len(seen)
}

// hardSets are data on which pruning cuts nodes off: equal vectors, few
// directions, far clusters.
func hardSets(n, dim int) map[string][][]float32 {
	sets := map[string][][]float32{"clusters": newClustered(1, dim, 10, 0.5).take(n)}
	same := newClustered(2, dim, 1, 0.5).next()
	few := newClustered(3, dim, 5, 0.5).take(5)
	for i := range n {
		sets["equal"] = append(sets["equal"], same)
		sets["five"] = append(sets["five"], few[i%5])
		sets["in turn"] = append(sets["in turn"], few[i*5/n])
		sets["zero"] = append(sets["zero"], make([]float32, dim))
	}
	far := newClustered(4, dim, 30, 0.001)
	sets["tight"] = far.take(n)
	return sets
}

func TestEveryNodeIsReachable(t *testing.T) {
	const n, dim = 700, 16
	for name, vs := range hardSets(n, dim) {
		for _, m := range []int{2, 4, 16} {
			t.Run(fmt.Sprintf("%s/M=%d", name, m), func(t *testing.T) {
				s := mustSet(t, dim, Options{ExactBelow: -1, Params: Params{M: m, EfConstruction: 20}})
				fill(t, s, 0, vs)
				mustWait(t, s)
				g := s.gen.Load().graph.(*hnsw)
				if got := reachable(g); got != n {
					t.Errorf("%d of %d nodes reachable", got, n)
				}
				ids := g.store.ids.view()
				entry, _ := g.entry()
				if err := checkGraph(g, &ids, n, entry); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// How many build, and how the vectors came, does not show in the graph.
func TestWorkersBuildOneGraph(t *testing.T) {
	const n, dim = 1500, 16
	vs := newClustered(6, dim, 10, 0.5).take(n)
	var files [][]byte
	for _, workers := range []int{1, 2, 3, 8} {
		s := mustSet(t, dim, Options{ExactBelow: n, BuildWorkers: workers, Params: Params{M: 8, EfConstruction: 40}})
		for i := 0; i < n; i += 100 * workers {
			fill(t, s, ID(i), vs[i:min(n, i+100*workers)])
		}
		mustWait(t, s)
		files = append(files, saved(t, s))
	}
	for i, file := range files {
		if !bytes.Equal(file, files[0]) {
			t.Errorf("graph %d differs from the first", i)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, m := range []int{2, 16, 100} {
		counts := make([]int, maxLevel+1)
		const n = 200000
		for id := range ID(n) {
			counts[levelOf(id, m)]++
		}
		above := n - counts[0]
		if want := n / m; above < want*9/10 || above > want*11/10 {
			t.Errorf("M %d: %d of %d above the ground, want about %d", m, above, n, want)
		}
	}
	// Levels are part of the file format.
	var got []int
	for id := range ID(24) {
		got = append(got, levelOf(id, 2))
	}
	if want := []int{0, 0, 0, 1, 1, 1, 0, 2, 0, 0, 1, 2, 0, 0, 3, 0, 2, 0, 1, 0, 6, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("levels %v", got)
	}
}

// TestSelectivities asks under filters that allow from 0.01 % to all.
func TestSelectivities(t *testing.T) {
	const n, dim = 5000, 24
	data := newClustered(11, dim, 50, 0.8)
	vs := data.take(n)
	live := twin{}
	s := mustSet(t, dim, Options{ExactBelow: 500, Params: Params{EfConstruction: 60}})
	fill(t, s, 0, vs)
	for i, v := range vs {
		live[ID(i)] = v
	}
	for i := 3; i < n; i += 10 {
		s.Delete(ID(i))
		delete(live, ID(i))
	}
	mustWait(t, s)
	if st := s.Stats(); st.Guard != GuardOK {
		t.Fatalf("guard: %+v", st)
	}
	for _, step := range []int{10000, 3333, 1000, 333, 100, 33, 10, 4, 2, 1} {
		for _, unknown := range []bool{false, true} {
			var even, first idFilter // spread, and all in one place
			for i := 0; i < n; i += step {
				even.ids = append(even.ids, ID(i))
				first.ids = append(first.ids, ID(len(first.ids)))
			}
			even.unknown, first.unknown = unknown, unknown
			recall, q := 0.0, data.take(5)
			for i := range q {
				recall += checkHits(t, live, q[i], 10, even, mustSearch(t, s, q[i], 10, even))
				recall += checkHits(t, live, q[i], 10, first, mustSearch(t, s, q[i], 10, first))
			}
			if recall /= 10; recall < 0.95 {
				t.Errorf("every %d allowed, unknown %v: recall %.3f", step, unknown, recall)
			}
		}
	}
	// k beyond what exists, and a filter for IDs the set does not hold.
	checkHits(t, live, vs[0], 2*n, nil, mustSearch(t, s, vs[0], 2*n, nil))
	checkHits(t, live, vs[0], 2*n, nil, mustSearch(t, s, vs[0], math.MaxInt, nil))
	if hits := mustSearch(t, s, vs[0], 5, idFilter{ids: []ID{n + 5, n + 9}}); len(hits) != 0 {
		t.Errorf("foreign ids give %v", hits)
	}
}

// A filter that allows only what lies far from the query makes the walk give
// up; the scan that follows must miss nothing.
func TestFilterFarFromTheQuery(t *testing.T) {
	const n, dim = 5000, 16
	data := newClustered(12, dim, 2, 0.05)
	vs := data.take(n)
	s := mustSet(t, dim, Options{ExactBelow: 500, Params: Params{M: 8, EfConstruction: 40}, GuardRecall: -1})
	fill(t, s, 0, vs)
	mustWait(t, s)
	live := twin{}
	var far idFilter
	for i, v := range vs {
		live[ID(i)] = v
		if dotFloats(v, data.centres[0]) < 0.5 {
			far.ids = append(far.ids, ID(i))
		}
	}
	far.unknown = true
	if r := checkHits(t, live, data.centres[0], 10, far, mustSearch(t, s, data.centres[0], 10, far)); r < 1 {
		t.Errorf("recall %.2f", r)
	}
}

// TestChurn replaces half the vectors and compares with a fresh build.
func TestChurn(t *testing.T) {
	const n, dim = 2000, 32
	data := newClustered(13, dim, 40, 0.9)
	opt := Options{ExactBelow: 500, Params: Params{M: 12, EfConstruction: 80, EfSearch: 32}, GuardRecall: -1}
	s := mustSet(t, dim, opt)
	old, added := data.take(n), data.take(n/2)
	fill(t, s, 0, old)
	mustWait(t, s)
	live := twin{}
	for i, v := range old {
		live[ID(i)] = v
	}
	compacted := false
	for i, v := range added {
		s.Delete(ID(2 * i))
		delete(live, ID(2*i))
		if err := s.Add(ID(n+i), v); err != nil {
			t.Fatal(err)
		}
		live[ID(n+i)] = v
		if i%100 == 0 {
			mustWait(t, s)
		}
		st := s.Stats()
		compacted = compacted || i > 0 && st.Deleted < i/2
	}
	mustWait(t, s)
	if !compacted {
		t.Error("tombstones were never compacted")
	}
	fresh := mustSet(t, dim, opt)
	var ids []ID
	for id := range live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := fresh.Add(id, live[id]); err != nil {
			t.Fatal(err)
		}
	}
	mustWait(t, fresh)
	var churned, built float64
	queries := data.take(200)
	for _, q := range queries {
		churned += checkHits(t, live, q, 10, nil, mustSearch(t, s, q, 10, nil))
		built += checkHits(t, live, q, 10, nil, mustSearch(t, fresh, q, 10, nil))
	}
	churned, built = churned/float64(len(queries)), built/float64(len(queries))
	t.Logf("recall after churn %.4f, fresh %.4f; %+v", churned, built, s.Stats())
	if churned < built-0.01 || built < 0.95 {
		t.Errorf("recall after churn %.4f, fresh %.4f", churned, built)
	}
	if got := reachable(s.gen.Load().graph.(*hnsw)); got != s.Stats().InGraph {
		t.Errorf("%d of %d nodes reachable", got, s.Stats().InGraph)
	}
}
