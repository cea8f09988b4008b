package views

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"mneme/internal/projections"
	"mneme/internal/settings"
)

const (
	loadBatch = 4096    // vectors added together
	loadBytes = 1 << 20 // bytes held for them
	batches   = 3       // of a set: one is read, one waits, one is added
)

// load reads the vectors of every partition of a state's view, several
// partitions at a time. The view it returns is never nil and must be closed, also
// after an error.
func (s *vectors) load(ctx context.Context, v *projections.View) (*vectorView, error) {
	out := newVectorView()
	if err := s.weigh(v, debug.SetMemoryLimit(-1)); err != nil {
		return out, err
	}
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

// besideBytes is what a vector takes in memory beside its numbers: its id and its links.
const besideBytes = 145

// weigh says before they are read that the vectors will hardly fit into the memory that the
// process may have: the kernel ends one that takes more, and says nothing. A record has one
// vector at least in each of its namespace's spaces.
func (s *vectors) weigh(v *projections.View, limit int64) error {
	var records, need uint64
	for _, ns := range v.Namespaces() {
		eff, err := s.settings.Of(v, ns)
		if err != nil {
			return err
		}
		for _, space := range eff.Spaces() {
			n, err := v.SpaceRecords(ns.ID, settings.KeyOf(space))
			if err != nil {
				return err
			}
			records, need = records+n, need+n*uint64(space.Dimensions+besideBytes)
		}
	}
	if need/3*4 > uint64(limit) {
		s.logger.Warn("the vectors take most of the memory that this process may have, or more", "vectors", records, "bytes", need, "limit", limit,
			"hint", "raise the container's limit of memory, or GOMEMLIMIT; docs/operate/size.md says how much a memory takes")
	}
	return nil
}

// loadSet reads the vectors of one partition, then takes over its saved graph. While
// one batch is added, the next is read.
func (s *vectors) loadSet(ctx context.Context, v *projections.View, p projections.Partition, set *VectorSet) error {
	live := v.Live(p)
	dead := func(doc uint32) bool { return !live.Contains(doc) }
	full, empty := make(chan *vectorBatch, 1), make(chan *vectorBatch, batches)
	for range batches {
		empty <- &vectorBatch{set: set, dead: dead}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for b := range full {
			if err := b.flush(); err != nil {
				return err
			}
			empty <- b
		}
		return nil
	})
	g.Go(func() error {
		defer close(full)
		return readVectors(ctx, v, p, set.key.space, full, empty)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	s.graphs.load(set)
	return nil
}

// readVectors fills empty batches with the vectors of a partition and hands them over.
func readVectors(ctx context.Context, v *projections.View, p projections.Partition, space projections.SpaceKey, full chan<- *vectorBatch, empty <-chan *vectorBatch) error {
	batch := <-empty
	hand := func() error {
		select {
		case full <- batch:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := v.Vectors(p.ID, space, 0, func(id uint32, row projections.VectorRow) error {
		if !batch.takes(id, &row) {
			if err := hand(); err != nil {
				return err
			}
			select {
			case batch = <-empty:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		batch.take(id, row)
		return nil
	})
	if err != nil {
		return err
	}
	return hand()
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
