package views

import (
	"context"
	"errors"
	"math"

	"mneme/internal/index/vector"
	"mneme/internal/projections"
)

// add puts vectors with consecutive IDs into the set, but for those of
// documents that skip names. Embedders inside this process give bytes, which a
// set keeps as they are; others give floats. A row that does not fit the set is
// left out, and the error for it returned after the rest was added.
func (s *VectorSet) add(from uint32, rows []projections.VectorRow, skip func(doc uint32) bool) error {
	refs := make([]chunkRef, len(rows))
	for i := range rows {
		refs[i] = chunkRef{rows[i].Doc, rows[i].Chunk}
	}
	known := s.note(from, refs)
	rows, from = rows[known:], from+uint32(known)
	run := vectorRun{set: s}
	var bad error
	for i := range rows {
		id := from + uint32(i)
		if skip != nil && skip(rows[i].Doc) {
			continue
		}
		numbers, small := rows[i].Small(s.dim)
		if err := run.begin(small, len(rows)-i); err != nil {
			return err
		}
		if small {
			run.addBytes(id, numbers)
		} else if err := run.addFloats(id, &rows[i]); err != nil && bad == nil {
			bad = err
		}
	}
	return errors.Join(run.end(), bad)
}

// vectorRun gathers vectors of one kind, for a set to take them at once.
type vectorRun struct {
	set    *VectorSet
	small  bool
	ids    []vector.ID
	bytes  []int8
	floats []float32
}

// begin ends the run if it is of the other kind; room is how many may follow.
func (r *vectorRun) begin(small bool, room int) error {
	if small != r.small {
		if err := r.end(); err != nil {
			return err
		}
	}
	r.small = small
	if cap(r.ids) == 0 {
		r.ids = make([]vector.ID, 0, room)
		if small {
			r.bytes = make([]int8, 0, room*r.set.dim)
		}
	}
	return nil
}

func (r *vectorRun) addBytes(id vector.ID, numbers []byte) {
	r.ids = append(r.ids, id)
	for _, b := range numbers {
		r.bytes = append(r.bytes, int8(b))
	}
}

func (r *vectorRun) addFloats(id vector.ID, row *projections.VectorRow) error {
	at := len(r.floats)
	r.floats = append(r.floats, make([]float32, r.set.dim)...)
	if err := row.Floats(r.floats[at:]); err != nil {
		r.floats = r.floats[:at]
		return err
	}
	r.ids = append(r.ids, id)
	return nil
}

func (r *vectorRun) end() error {
	var err error
	switch {
	case len(r.ids) == 0:
	case r.small:
		err = r.set.set.AddBulkInt8(r.ids, r.bytes)
	default:
		err = r.set.set.AddBulk(r.ids, r.floats)
	}
	r.ids, r.bytes, r.floats = r.ids[:0], r.bytes[:0], r.floats[:0]
	return err
}

// fullPrecision reads the vectors of a few candidates, for the set to score them
// again; it is a set's vector.Options.Exact. A vector that is gone meanwhile, or
// of another document in a state that was swapped, keeps the score it has.
func (s *vectors) fullPrecision(ctx context.Context, set *VectorSet, ids []vector.ID, dst []float32) (err error) {
	view := s.state.View()
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
		row, ok, err := view.Vector(set.key.partition, set.key.space, id)
		if err != nil {
			return err
		}
		if !ok || row.Doc != refs[id].doc || row.Chunk != refs[id].chunk {
			vec[0] = float32(math.NaN())
			continue
		}
		if err := row.Floats(vec); err != nil {
			return err
		}
	}
	return nil
}
