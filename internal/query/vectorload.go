package query

import (
	"bytes"
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"mneme/internal/projections"
	"mneme/internal/settings"
)

const (
	loadBatch = 4096    // vectors opened together
	loadBytes = 8 << 20 // sealed bytes held for them
)

// build opens the vectors of every partition of a state's view, several
// partitions and several vectors at a time. The view it returns is never nil
// and must be closed, also after an error.
func (s *Service) build(ctx context.Context, v *projections.View) (*vectorView, error) {
	out := newVectorView()
	namespaces, err := v.Namespaces()
	if err != nil {
		return out, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for _, ns := range namespaces {
		eff, err := s.opt.Book.Of(v, ns)
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

// loadSet opens the vectors of one partition, then takes over its saved graph.
func (s *Service) loadSet(ctx context.Context, v *projections.View, p projections.Partition, set *vectorSet) error {
	live := v.Live(p)
	dead := func(doc uint32) bool { return !live.Contains(doc) }
	l := loader{s: s, set: set, dead: dead}
	err := v.Vectors(p.ID, set.key.space, 0, func(id uint32, row projections.VectorRow) error {
		if len(l.rows) > 0 && id != l.from+uint32(len(l.rows)) {
			if err := l.flush(); err != nil {
				return err
			}
		}
		if len(l.rows) == 0 {
			l.from = id
		}
		row.Sealed = bytes.Clone(row.Sealed)
		l.rows = append(l.rows, row)
		if l.bytes += len(row.Sealed); len(l.rows) < loadBatch && l.bytes < loadBytes {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.flush()
	})
	if err == nil {
		err = l.flush()
	}
	if err != nil {
		return err
	}
	return s.loadGraph(set)
}

type loader struct {
	s     *Service
	set   *vectorSet
	dead  func(doc uint32) bool
	from  uint32
	rows  []projections.VectorRow
	bytes int
}

func (l *loader) flush() error {
	err := l.s.add(l.set, l.from, l.rows, l.dead)
	l.rows, l.bytes = l.rows[:0], 0
	return err
}
