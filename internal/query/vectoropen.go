package query

import (
	"context"
	"math"
	"sync"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// opened is a batch of vectors that were taken out of their seals. Embedders
// inside this process seal bytes, which a set keeps as they are; others floats.
type opened struct {
	dim      int
	kind     []vectorKind // by row
	errs     []error
	bytes    []int8    // dim a row
	floats   []float32 // dim a row; made when the first such row comes
	makeOnce sync.Once
}

type vectorKind uint8

const (
	notOpened vectorKind = iota
	ofBytes
	ofFloats
)

// openAll opens rows on all processors, but for those of documents that skip
// names.
func (s *Service) openAll(set *vectorSet, rows []projections.VectorRow, skip func(doc uint32) bool) *opened {
	o := &opened{
		dim:   set.dim,
		kind:  make([]vectorKind, len(rows)),
		errs:  make([]error, len(rows)),
		bytes: make([]int8, len(rows)*set.dim),
	}
	_ = derive.Parallel(len(rows), func(i int) error { // never fails: errs
		if skip == nil || !skip(rows[i].Doc) {
			o.kind[i], o.errs[i] = s.open(o, i, set, &rows[i])
		}
		return nil
	})
	return o
}

// plainPool holds memory for opened bytes.
var plainPool = sync.Pool{New: func() any { return new([]byte) }}

// open opens the i-th row. One whose key was destroyed is no error.
func (s *Service) open(o *opened, i int, set *vectorSet, row *projections.VectorRow) (vectorKind, error) {
	from, to := i*o.dim, (i+1)*o.dim
	if len(row.Sealed) != keyring.Overhead+1+o.dim {
		o.makeOnce.Do(func() { o.floats = make([]float32, len(o.bytes)) })
		ok, err := s.openVector(row, set.key.space, o.floats[from:to])
		if !ok {
			return notOpened, err
		}
		return ofFloats, nil
	}
	key, err := s.opt.Keys.KeyByID(row.Key)
	var plain []byte
	if err == nil {
		buf := plainPool.Get().(*[]byte)
		defer plainPool.Put(buf)
		if plain, err = key.Open((*buf)[:0], derive.VectorIdentity(row.Event, int(row.Chunk)), set.key.space[:], row.Sealed); err == nil {
			*buf = plain
		}
	}
	switch {
	case settings.IsErased(err):
		return notOpened, nil
	case err == nil && plain[0] != derive.VectorInt8:
		err = events.ErrMalformed
	}
	if err != nil {
		return notOpened, vectorError(row, err)
	}
	for j, b := range plain[1:] {
		o.bytes[from+j] = int8(b)
	}
	return ofBytes, nil
}

// addTo adds what was opened to a set, under IDs from from on: runs of bytes and
// runs of floats, since IDs ascend.
func (o *opened) addTo(set *vectorSet, from uint32) error {
	ids := make([]vector.ID, 0, len(o.kind))
	for at := 0; at < len(o.kind); {
		kind, first := o.kind[at], at
		ids = ids[:0]
		for ; at < len(o.kind) && o.kind[at] == kind; at++ {
			ids = append(ids, from+uint32(at))
		}
		var err error
		switch kind {
		case ofBytes:
			err = set.set.AddBulkInt8(ids, o.bytes[first*o.dim:at*o.dim])
		case ofFloats:
			err = set.set.AddBulk(ids, o.floats[first*o.dim:at*o.dim])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// failed returns the first error.
func (o *opened) failed() error {
	for _, err := range o.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// fullPrecision opens the vectors of a few candidates, for the set to score them
// again; it is a set's vector.Options.Exact. A vector that is gone meanwhile, or
// of another document in a state that was swapped, keeps the score it has.
func (s *Service) fullPrecision(ctx context.Context, set *vectorSet, ids []vector.ID, dst []float32) (err error) {
	view := s.opt.State.View()
	defer func() {
		if cerr := view.Close(); err == nil {
			err = cerr
		}
	}()
	refs := set.snapshot()
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		vec := dst[i*set.dim : (i+1)*set.dim]
		row, ok, err := view.Vector(set.key.part, set.key.space, id)
		if err != nil {
			return err
		}
		if ok = ok && row.Doc == refs[id].doc && row.Chunk == refs[id].chunk; ok {
			if ok, err = s.openVector(&row, set.key.space, vec); err != nil {
				return err
			}
		}
		if !ok {
			vec[0] = float32(math.NaN())
		}
	}
	return nil
}
