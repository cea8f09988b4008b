package views

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// vectors keeps the vector sets of a state: it reads them at start, follows what
// is applied, and owns the background work on them.
type vectors struct {
	state    *projections.State
	settings *settings.Cache
	logger   *slog.Logger
	opt      vector.Options
	graphs   graphs
	pace     pace
	view     atomic.Pointer[vectorView]
	wg       sync.WaitGroup // closing of dropped sets
}

func newVectors(opt *Options) (*vectors, error) {
	s := &vectors{state: opt.State, settings: opt.Settings, logger: opt.Logger, graphs: graphs{opt.FS, opt.GraphDir, opt.Logger},
		pace: pace{now: time.Now}}
	s.opt = opt.Vector
	s.opt.Logger, s.opt.Pace = opt.Logger, s.pace.rest
	probe, err := vector.NewSet(1, s.opt)
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	s.view.Store(newVectorView())
	return s, nil
}

func (s *vectors) current() *vectorView { return s.view.Load() }

// close stops the builders and saves the graphs.
func (s *vectors) close() error {
	v := s.current()
	err := s.graphs.save(v.all())
	v.close()
	s.wg.Wait()
	return err
}

// drop ends a set that its namespace does not have any more, and removes its file.
func (s *vectors) drop(set *VectorSet) {
	_ = set.set.Close() // always nil; its builder may take a moment
	s.graphs.remove(set)
}

// newSet makes an empty set for a partition of the view; nil if the partition
// is not there any more or its namespace does not have that space.
func (s *vectors) newSet(v *projections.View, key setKey) (*VectorSet, error) {
	p, ok := v.PartitionByID(key.partition)
	if !ok {
		return nil, nil
	}
	ns, ok := v.NamespaceByID(p.Namespace)
	if !ok || ns.Deleted {
		return nil, nil
	}
	eff, err := s.settings.Of(v, ns)
	if err != nil {
		return nil, err
	}
	space, ok := eff.SpaceOf(key.space)
	if !ok {
		return nil, nil
	}
	return s.makeSet(key, ns.ID, space.Dimensions)
}

func (s *vectors) makeSet(key setKey, ns events.ID, dim int) (*VectorSet, error) {
	out := &VectorSet{key: key, ns: ns, dim: dim}
	opt := s.opt
	opt.Exact = func(ctx context.Context, ids []vector.ID, dst []float32) error {
		return s.fullPrecision(ctx, out, ids, dst)
	}
	var err error
	if out.set, err = vector.NewSet(dim, opt); err != nil {
		return nil, err
	}
	return out, nil
}

// apply brings a view up to date. Calls do not overlap.
func (s *vectors) apply(v *vectorView, a *projections.Applied) {
	for _, gone := range a.DroppedSpaces {
		for _, set := range v.dropSpace(gone) {
			s.wg.Go(func() { s.drop(set) })
		}
	}
	for from := 0; from < len(a.Vectors); {
		first := &a.Vectors[from]
		key := setKey{first.Partition, first.Space}
		to := from + 1
		for to < len(a.Vectors) && a.Vectors[to].Partition == key.partition && a.Vectors[to].Space == key.space &&
			a.Vectors[to].ID == a.Vectors[to-1].ID+1 {
			to++
		}
		rows := make([]projections.VectorRow, 0, to-from)
		for i := from; i < to; i++ {
			rows = append(rows, a.Vectors[i].Row)
		}
		set, err := s.setFor(v, key)
		if err == nil && set != nil {
			err = set.add(first.ID, rows, nil)
		}
		if err != nil {
			// The records are found by text; there is nobody to return to.
			s.logger.Error("vectors could not be added", "partition", key.partition, "first", first.ID, "err", err)
		}
		from = to
	}
	for _, d := range a.Deaths {
		for _, set := range v.of(d.Partition) {
			set.remove(d.Doc)
		}
	}
	for _, ns := range a.Dropped {
		for _, set := range v.drop(ns) {
			s.wg.Go(func() { s.drop(set) })
		}
	}
}

// setFor finds a set or makes it; nil as newSet says.
func (s *vectors) setFor(v *vectorView, key setKey) (*VectorSet, error) {
	if set := v.get(key); set != nil {
		return set, nil
	}
	view := s.state.View()
	set, err := s.newSet(view, key)
	if cerr := view.Close(); err == nil {
		err = cerr
	}
	if set != nil {
		v.put(set)
	}
	return set, err
}
