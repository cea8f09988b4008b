package query

import (
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
	l := loader{s: s, set: set, dead: func(doc uint32) bool { return !live.Contains(doc) }}
	err := v.Vectors(p.ID, set.key.space, 0, func(id uint32, row projections.VectorRow) error {
		if !l.takes(id, &row) {
			if err := errors.Join(ctx.Err(), l.flush()); err != nil {
				return err
			}
		}
		l.take(id, row)
		return nil
	})
	if err == nil {
		err = l.flush()
	}
	if err = errors.Join(err, l.wait()); err != nil {
		return err
	}
	return s.loadGraph(set)
}

// loader gathers rows into batches. While one is opened and added, the next is
// read.
type loader struct {
	s     *Service
	set   *vectorSet
	dead  func(doc uint32) bool
	next  loadedRows
	spare loadedRows // memory of the batch before
	under chan error // the batch being added; nil if there is none
}

type loadedRows struct {
	from  uint32
	rows  []projections.VectorRow
	bytes []byte // what their seals refer to
}

// takes reports whether a row fits into the batch.
func (l *loader) takes(id uint32, row *projections.VectorRow) bool {
	n := len(l.next.rows)
	return n == 0 || n < loadBatch && id == l.next.from+uint32(n) && len(l.next.bytes)+len(row.Sealed) <= loadBytes
}

func (l *loader) take(id uint32, row projections.VectorRow) {
	b := &l.next
	if len(b.rows) == 0 {
		b.from = id
	}
	at := len(b.bytes)
	b.bytes = append(b.bytes, row.Sealed...)
	row.Sealed = b.bytes[at:len(b.bytes):len(b.bytes)]
	b.rows = append(b.rows, row)
}

// flush hands the batch over, once the one before it is in.
func (l *loader) flush() error {
	if err := l.wait(); err != nil {
		return err
	}
	batch := l.next
	l.next = loadedRows{rows: l.spare.rows[:0], bytes: l.spare.bytes[:0]}
	l.spare = batch // free when under is done
	l.under = make(chan error, 1)
	go func(done chan<- error) { done <- l.s.add(l.set, batch.from, batch.rows, l.dead) }(l.under)
	return nil
}

// wait returns when no batch is being added.
func (l *loader) wait() error {
	if l.under == nil {
		return nil
	}
	err := <-l.under
	l.under = nil
	return err
}
