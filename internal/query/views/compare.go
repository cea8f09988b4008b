package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

const (
	compareSample  = 32 // records whose neighbours are looked for
	compareNearest = 10
	compareWait    = 30 * time.Second // for a partition's graph
	// compareSlack is how much less than the tenth nearest a hit may score: an
	// index may round.
	compareSlack = 1e-4
)

// CompareSpaces looks for the nearest neighbours of a sample of a namespace's
// records in both spaces: what a search of the new one finds of an exact scan,
// and what both have in common. It waits until the new space's graphs are
// built. The sample is spread over the records by DocID, so it is the same for
// the same state. Counts are the caller's.
func (s *Views) CompareSpaces(ctx context.Context, ns events.ID, from, to embed.Space) (c memory.SpaceComparison, err error) {
	v := s.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	parts, err := v.Partitions(ns)
	if err != nil {
		return c, err
	}
	var living uint64
	for _, p := range parts {
		living += v.LiveCount(p)
	}
	var sum comparison
	for _, p := range parts {
		n := v.LiveCount(p)
		if n == 0 {
			continue
		}
		share := max(1, int(compareSample*n/living))
		if err := s.comparePart(ctx, v, p, share, settings.KeyOf(from), settings.KeyOf(to), &sum); err != nil {
			return c, err
		}
	}
	c.Sample = sum.sample
	if sum.nearest > 0 {
		c.Recall = float64(sum.found) / float64(sum.nearest)
	}
	if sum.pairs > 0 {
		c.Agreement = float64(sum.common) / float64(sum.pairs)
	}
	return c, nil
}

// comparison counts neighbours.
type comparison struct {
	sample         int
	found, nearest int // of the exact scan's, in the new space
	common, pairs  int // of both spaces
}

// sampled is one record of the sample: its vector in the new space and its nearest
// vectors there by an exact scan.
type sampled struct {
	doc     uint32
	vector  []float32
	nearest []scored // best first, at most compareNearest
}

// scored is a document's best chunk.
type scored struct {
	doc   uint32
	score float64
}

func (s *Views) comparePart(ctx context.Context, v *projections.View, p projections.Partition, n int, from, to projections.SpaceKey, sum *comparison) error {
	vectors := s.vectors.current()
	old, next := vectors.get(setKey{p.ID, from}), vectors.get(setKey{p.ID, to})
	if next == nil {
		return nil // nothing in it has a vector
	}
	if err := waitForGraph(ctx, next); err != nil {
		return err
	}
	samples, err := sampleOf(v, p, n, next)
	if err != nil {
		return err
	}
	if err := scanExactly(ctx, v, p, next, samples); err != nil {
		return err
	}
	for i := range samples {
		pr := &samples[i]
		got, err := nearestDocs(ctx, next, p, pr.vector)
		if err != nil {
			return err
		}
		sum.sample++
		sum.nearest += len(pr.nearest)
		sum.found += min(countAbove(got, pr.nearest), len(pr.nearest))
		if old == nil {
			continue
		}
		mine, err := vectorOf(v, p, old, pr.doc)
		if err != nil || mine == nil {
			return err
		}
		before, err := nearestDocs(ctx, old, p, mine)
		if err != nil {
			return err
		}
		sum.pairs += max(len(before), len(got))
		for _, h := range before {
			if slices.ContainsFunc(got, func(o scored) bool { return o.doc == h.doc }) {
				sum.common++
			}
		}
	}
	return nil
}

// waitForGraph gives a set's builder time to finish. Under steady writes it may
// never, and the comparison goes on: a search scans what is not built.
func waitForGraph(ctx context.Context, set *VectorSet) error {
	limited, cancel := context.WithTimeout(ctx, compareWait)
	defer cancel()
	err := set.set.Wait(limited)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// countAbove counts the hits that are as near as the exact scan's last one.
func countAbove(got, exact []scored) (n int) {
	if len(exact) == 0 {
		return 0
	}
	floor := exact[len(exact)-1].score - compareSlack
	for _, h := range got {
		if h.score >= floor {
			n++
		}
	}
	return n
}

// sampleOf picks up to n living records of a partition that have vectors in a
// set, evenly spread.
func sampleOf(v *projections.View, p projections.Partition, n int, set *VectorSet) ([]sampled, error) {
	live := v.Live(p)
	var out []sampled
	next := uint32(0)
	for i := range n {
		for doc := max(next, uint32(uint64(p.NextDoc)*uint64(i)/uint64(n))); doc < p.NextDoc; doc++ {
			if !live.Contains(doc) {
				continue
			}
			vec, err := vectorOf(v, p, set, doc)
			if err != nil {
				return nil, err
			}
			if vec != nil {
				out, next = append(out, sampled{doc: doc, vector: vec}), doc+1
				break
			}
		}
	}
	return out, nil
}

// vectorOf reads the first vector of a document; nil if it has none, or one of
// zeros, which is near to nothing.
func vectorOf(v *projections.View, p projections.Partition, set *VectorSet, doc uint32) ([]float32, error) {
	ids := set.idsOf(nil, doc)
	if len(ids) == 0 {
		return nil, nil
	}
	var out []float32
	enough := errors.New("enough")
	err := v.Vectors(p.ID, set.key.space, uint32(ids[0]), func(id uint32, row projections.VectorRow) error {
		if id != uint32(ids[0]) {
			return enough
		}
		vec := make([]float32, set.dim)
		err := row.Floats(vec)
		if err == nil && slices.ContainsFunc(vec, func(x float32) bool { return x != 0 }) {
			out = vec
		}
		return cmp.Or(err, enough)
	})
	if err != nil && !errors.Is(err, enough) {
		return nil, err
	}
	return out, nil
}

// scanExactly finds the nearest documents of each sampled by looking at every
// vector of the partition once.
func scanExactly(ctx context.Context, v *projections.View, p projections.Partition, set *VectorSet, samples []sampled) error {
	live := v.Live(p)
	vec := make([]float32, set.dim)
	return v.Vectors(p.ID, set.key.space, 0, func(id uint32, row projections.VectorRow) error {
		if id%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("scan vectors: %w", ctx.Err())
		}
		if !live.Contains(row.Doc) {
			return nil
		}
		if err := row.Floats(vec); err != nil {
			return err
		}
		for i := range samples {
			dot := float64(0)
			for d, x := range samples[i].vector {
				dot += float64(x) * float64(vec[d])
			}
			samples[i].nearest = keepBest(samples[i].nearest, scored{row.Doc, dot})
		}
		return nil
	})
}

// keepBest puts a hit in its place among the nearest documents.
func keepBest(best []scored, h scored) []scored {
	if len(best) == compareNearest && h.score <= best[len(best)-1].score {
		return best
	}
	if i := slices.IndexFunc(best, func(o scored) bool { return o.doc == h.doc }); i >= 0 {
		if best[i].score >= h.score {
			return best
		}
		best = slices.Delete(best, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(best, h, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	best = slices.Insert(best, at, h)
	return best[:min(len(best), compareNearest)]
}

// nearestDocs looks for the nearest documents as a search does.
func nearestDocs(ctx context.Context, set *VectorSet, p projections.Partition, q []float32) (out []scored, err error) {
	look := Lookup{Query: q}
	err = look.Nearest(ctx, set, 2*compareNearest, p.NextDoc, nil, func(m Match) { out = append(out, scored{m.Doc, m.Cosine}) })
	return out[:min(len(out), compareNearest)], err
}
