package query

import (
	"cmp"
	"context"
	"iter"
	"slices"

	index "mneme/internal/index/text"
)

// words are the words of a query in all partitions of a search, read once. Those of each
// shard are read by themselves, and weighed by the counters of all.
type words struct {
	s  *search
	on []*index.Prepared // by shard
}

// words reads the rows of a query's words.
func (s *search) words(ctx context.Context, q index.Query) (*words, error) {
	w := &words{s: s, on: make([]*index.Prepared, 0, s.shards)}
	for shard := range s.shards {
		var in *searched
		parts := make([]index.Partition, 0, len(s.places))
		for i := range s.namespaces {
			if s.namespaces[i].shard == shard {
				in = &s.namespaces[i]
			}
		}
		for i := range s.places {
			p := &s.places[i]
			if p.in.shard != shard {
				continue
			}
			part := index.Partition{ID: p.ID, Live: p.Live}
			if p.allow != nil {
				part.Allow = p.allow
			}
			parts = append(parts, part)
		}
		on, err := in.s.texts.Prepare(ctx, in.view.State.Reader(), parts, q)
		if err != nil {
			w.close()
			return nil, err
		}
		w.on = append(w.on, on)
	}
	index.Together(w.on)
	return w, nil
}

// again looks for another query. Rows that were read for the one before are not read again. After an
// error w is closed.
func (w *words) again(ctx context.Context, q index.Query) error {
	for _, on := range w.on {
		if err := on.Again(ctx, q); err != nil {
			w.close()
			return err
		}
	}
	index.Together(w.on)
	return nil
}

func (w *words) close() {
	for _, on := range w.on {
		on.Close()
	}
}

// place is where a partition of a shard stands among those that are searched.
func (s *search) place(shard int, id uint32) int {
	return slices.IndexFunc(s.places, func(p place) bool { return p.in.shard == shard && p.ID == id })
}

// scored is a document by its words.
type scored struct {
	place int
	doc   uint32
	score float64
}

// compare orders the best first, as the index does on each shard.
func (a scored) compare(b scored) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place), cmp.Compare(a.doc, b.doc))
}

// top visits the best k documents of all shards, the best first, with their ranks from 1;
// with all set, whatever the filter and the phrases say.
func (w *words) top(ctx context.Context, k int, all bool, visit func(partition int, doc uint32, rank int)) error {
	best := func(on *index.Prepared) ([]index.Hit, error) {
		if all {
			return on.TopOfAll(ctx, k)
		}
		return on.Top(ctx, k, nil)
	}
	if len(w.on) == 1 {
		hits, err := best(w.on[0])
		for i, h := range hits {
			visit(w.s.place(0, h.Partition), h.Doc, i+1)
		}
		return err
	}
	var found []scored
	for shard, on := range w.on {
		hits, err := best(on)
		if err != nil {
			return err
		}
		for _, h := range hits {
			found = append(found, scored{w.s.place(shard, h.Partition), h.Doc, h.Score})
		}
	}
	slices.SortFunc(found, scored.compare)
	for i, h := range found[:min(k, len(found))] {
		visit(h.place, h.doc, i+1)
	}
	return nil
}

// each visits the documents of all shards, the best first, until visit says false.
func (w *words) each(ctx context.Context, visit func(partition int, doc uint32) bool) error {
	if len(w.on) == 1 {
		return w.on[0].Each(ctx, func(h *index.Hit) bool { return visit(w.s.place(0, h.Partition), h.Doc) })
	}
	// Each shard gives its next best one, and the best of these is visited.
	next := make([]func() (scored, error, bool), len(w.on))
	heads := make([]*scored, len(w.on))
	advance := func(shard int) error {
		h, err, ok := next[shard]()
		heads[shard] = nil
		if ok {
			heads[shard] = &h
		}
		return err
	}
	for shard := range w.on {
		var stop func()
		next[shard], stop = iter.Pull2(w.ranked(ctx, shard))
		defer stop()
		if err := advance(shard); err != nil {
			return err
		}
	}
	for {
		best := -1
		for shard, h := range heads {
			if h != nil && (best < 0 || h.compare(*heads[best]) < 0) {
				best = shard
			}
		}
		if best < 0 || !visit(heads[best].place, heads[best].doc) {
			return nil
		}
		if err := advance(best); err != nil {
			return err
		}
	}
}

// ranked gives the documents of a shard, the best first; an error is the last.
func (w *words) ranked(ctx context.Context, shard int) iter.Seq2[scored, error] {
	return func(yield func(scored, error) bool) {
		on := true
		err := w.on[shard].Each(ctx, func(h *index.Hit) bool {
			on = yield(scored{w.s.place(shard, h.Partition), h.Doc, h.Score}, nil)
			return on
		})
		if err != nil && on {
			yield(scored{}, err)
		}
	}
}
