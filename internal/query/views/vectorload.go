package views

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"mneme/internal/projections"
	"mneme/internal/settings"
)

const (
	loadBatch = 4096    // vectors added together
	loadBytes = 1 << 20 // bytes held for them
)

// load reads the vectors of every partition of a state's view, several
// partitions at a time. The view it returns is never nil and must be closed, also
// after an error.
func (s *vectors) load(ctx context.Context, v *projections.View) (*vectorView, error) {
	out := newVectorView()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for _, ns := range v.Namespaces() {
		eff, err := s.settings.Of(v, ns)
		if err != nil {
			return out, errors.Join(err, g.Wait())
		}
		parts, err := v.Partitions(ns.ID)
		if err != nil {
			return out, errors.Join(err, g.Wait())
		}
		for _, p := range parts {
			for _, space := range eff.Spaces() {
				g.Go(func() error {
					set, err := s.makeSet(setKey{p.ID, settings.KeyOf(space)}, ns.ID, space.Dimensions)
					if err != nil {
						return err
					}
					out.put(set)
					return s.loadSet(ctx, v, p, set)
				})
			}
		}
	}
	return out, g.Wait()
}

// loadSet reads the vectors of one partition, then takes over its saved graph.
func (s *vectors) loadSet(ctx context.Context, v *projections.View, p projections.Partition, set *VectorSet) error {
	live := v.Live(p)
	batch := vectorBatch{set: set, dead: func(doc uint32) bool { return !live.Contains(doc) }}
	err := v.Vectors(p.ID, set.key.space, 0, func(id uint32, row projections.VectorRow) error {
		if !batch.takes(id, &row) {
			if err := errors.Join(ctx.Err(), batch.flush()); err != nil {
				return err
			}
		}
		batch.take(id, row)
		return nil
	})
	if err = errors.Join(err, batch.flush()); err != nil {
		return err
	}
	s.graphs.load(set)
	return nil
}

// vectorBatch gathers rows for a set.
type vectorBatch struct {
	set   *VectorSet
	dead  func(doc uint32) bool
	from  uint32
	rows  []projections.VectorRow
	bytes []byte // what the rows' numbers refer to
}

// takes reports whether a row fits into the batch.
func (b *vectorBatch) takes(id uint32, row *projections.VectorRow) bool {
	n := len(b.rows)
	return n == 0 || n < loadBatch && id == b.from+uint32(n) && len(b.bytes)+len(row.Numbers) <= cap(b.bytes)
}

func (b *vectorBatch) take(id uint32, row projections.VectorRow) {
	if len(b.rows) == 0 {
		b.from = id
		if need := max(loadBytes, len(row.Numbers)); cap(b.bytes) < need {
			b.bytes = make([]byte, 0, need)
		}
	}
	at := len(b.bytes)
	b.bytes = append(b.bytes, row.Numbers...)
	row.Numbers = b.bytes[at:len(b.bytes):len(b.bytes)]
	b.rows = append(b.rows, row)
}

func (b *vectorBatch) flush() error {
	err := b.set.add(b.from, b.rows, b.dead)
	b.rows, b.bytes = b.rows[:0], b.bytes[:0]
	return err
}
