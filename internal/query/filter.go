package query

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	index "mneme/internal/index/text"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/internal/text"
	"mneme/memory"
)

// docSet is the documents of one partition that a filter allows; nil = all. It
// is an index.WordSet.
type docSet struct {
	index.Bits
	n int
}

func newDocSet(bm *roaring.Bitmap) *docSet {
	d := &docSet{Bits: make(index.Bits, bm.DenseSize()), n: int(bm.GetCardinality())}
	bm.WriteDenseTo(d.Bits)
	return d
}

// allow makes the set that a filter allows in a partition; nil = everything.
func (r *Reader) allow(part uint32, f *memory.Filter) (*docSet, error) {
	if f == nil {
		return nil, nil
	}
	var out *roaring.Bitmap
	and := func(bm *roaring.Bitmap, err error) error {
		switch {
		case err != nil:
			return err
		case out == nil:
			out = bm
		default:
			out.And(bm)
		}
		return nil
	}
	attr := func(field uint8, value string) (*roaring.Bitmap, error) {
		return r.view.Bitmap(part, projections.Attr(field, value))
	}
	if len(f.Agents) > 0 {
		if err := and(anyOf(projections.AttrAgent, f.Agents, attr)); err != nil {
			return nil, err
		}
	}
	if len(f.Kinds) > 0 {
		if err := and(anyOf(projections.AttrKind, f.Kinds, attr)); err != nil {
			return nil, err
		}
	}
	for _, tag := range f.Tags {
		if err := and(attr(projections.AttrTag, text.Fold(tag))); err != nil {
			return nil, err
		}
	}
	if f.Conversation != "" {
		if err := and(attr(projections.AttrConversation, f.Conversation)); err != nil {
			return nil, err
		}
	}
	if f.Since != nil || f.Until != nil {
		if err := and(r.occurred(part, nanos(f.Since, math.MinInt64), nanos(f.Until, math.MaxInt64))); err != nil {
			return nil, err
		}
	}
	if out == nil {
		return nil, nil
	}
	return newDocSet(out), nil
}

func anyOf[T ~string](field uint8, values []T, attr func(uint8, string) (*roaring.Bitmap, error)) (*roaring.Bitmap, error) {
	out := roaring.New()
	for _, v := range values {
		bm, err := attr(field, string(v))
		if err != nil {
			return nil, err
		}
		out.Or(bm)
	}
	return out, nil
}

// nanos gives a bound in nanoseconds, moved into what they can hold.
func nanos(t *time.Time, missing int64) int64 {
	switch {
	case t == nil:
		return missing
	case t.Year() < 1678:
		return math.MinInt64
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

const dayNanos = int64(24 * time.Hour)

// occurred is the documents of [since, until): whole UTC days from the day
// bitmaps, the ragged ends from the rows in order of time.
func (r *Reader) occurred(part uint32, since, until int64) (*roaring.Bitmap, error) {
	out := roaring.New()
	add := func(from, to int64) error {
		if from >= to {
			return nil
		}
		return r.view.Between(part, from, to, false, func(_ int64, doc uint32) bool {
			out.Add(doc)
			return true
		})
	}
	first, last := ceilDay(since), floorDay(until)-1 // whole days between
	if first > last {
		return out, add(since, until)
	}
	days, err := r.view.Days(part, first, last)
	if err != nil {
		return nil, err
	}
	out.Or(days)
	if err := add(since, first*dayNanos); err != nil {
		return nil, err
	}
	return out, add((last+1)*dayNanos, until)
}

func floorDay(t int64) int64 {
	d := t / dayNanos
	if t%dayNanos < 0 {
		d--
	}
	return d
}

// ceilDay is the first day that begins at or after t.
func ceilDay(t int64) int64 {
	d := t / dayNanos
	if t%dayNanos > 0 {
		d++
	}
	return d
}

// vectorFilter lets a set return the vectors of allowed documents only.
type vectorFilter struct {
	set  *vectorSet
	refs []chunkRef
	docs *docSet
}

// Contains implements vector.Filter. A vector that is newer than the snapshot
// is newer than the reader's view.
func (f *vectorFilter) Contains(id vector.ID) bool {
	return int(id) < len(f.refs) && f.docs.Contains(f.refs[id].doc)
}

// Count implements vector.Filter with the number of documents: their vectors
// are about as many, and none exactly if there are none.
func (f *vectorFilter) Count() int { return f.docs.n }

// Each implements vector.Filter. Vectors that were attached late do not stand
// in the order of their documents.
func (f *vectorFilter) Each(yield func(vector.ID) bool) {
	ids := make([]vector.ID, 0, f.docs.n)
	f.docs.each(func(doc uint32) { ids = f.set.idsOf(ids, doc) })
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	for _, id := range ids {
		if !yield(id) {
			return
		}
	}
}

// each visits the documents in order.
func (d *docSet) each(visit func(doc uint32)) {
	for w, word := range d.Bits {
		for ; word != 0; word &= word - 1 {
			visit(uint32(w)<<6 | uint32(bits.TrailingZeros64(word)))
		}
	}
}

// idFilter allows a sorted list of VectorIDs.
type idFilter []vector.ID

// Contains implements vector.Filter.
func (f idFilter) Contains(id vector.ID) bool {
	_, ok := slices.BinarySearch(f, id)
	return ok
}

// Count implements vector.Filter.
func (f idFilter) Count() int { return len(f) }

// Each implements vector.Filter.
func (f idFilter) Each(yield func(vector.ID) bool) {
	for _, id := range f {
		if !yield(id) {
			return
		}
	}
}

// allows reports whether a document passes the filter; a nil filter lets all
// through.
func (d *docSet) allows(doc uint32) bool { return d == nil || d.Contains(doc) }

var _ interface {
	projections.Live
	index.WordSet
} = (*docSet)(nil)
