package views

import (
	"math"
	"math/bits"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	index "mneme/internal/index/text"
	"mneme/internal/projections"
	"mneme/internal/text"
	"mneme/memory"
)

// DocSet is the documents of one partition that a filter allows; nil = all. It
// is an index.WordSet.
type DocSet struct {
	index.Bits
	n int
}

func newDocSet(bm *roaring.Bitmap) *DocSet {
	d := &DocSet{Bits: make(index.Bits, bm.DenseSize()), n: int(bm.GetCardinality())}
	bm.WriteDenseTo(d.Bits)
	return d
}

// Len is the number of documents.
func (d *DocSet) Len() int { return d.n }

// Allow makes the set that a filter allows in a partition; nil = everything. The
// filter's scope is for InScope.
func (v *View) Allow(partition uint32, f *memory.Filter) (*DocSet, error) {
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
		return v.State.Bitmap(partition, projections.Attr(field, value))
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
		if err := and(v.occurred(partition, nanos(f.Since, math.MinInt64), nanos(f.Until, math.MaxInt64))); err != nil {
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
	for _, value := range values {
		bm, err := attr(field, string(value))
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
func (v *View) occurred(partition uint32, since, until int64) (*roaring.Bitmap, error) {
	out := roaring.New()
	add := func(from, to int64) error {
		if from >= to {
			return nil
		}
		return v.State.Between(partition, from, to, false, func(_ int64, doc uint32) bool {
			out.Add(doc)
			return true
		})
	}
	first, last := ceilDay(since), floorDay(until)-1 // whole days between
	if first > last {
		return out, add(since, until)
	}
	days, err := v.State.Days(partition, first, last)
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

// each visits the documents in order.
func (d *DocSet) each(visit func(doc uint32)) {
	for w, word := range d.Bits {
		for ; word != 0; word &= word - 1 {
			visit(uint32(w)<<6 | uint32(bits.TrailingZeros64(word)))
		}
	}
}

// Allows reports whether a document is in the set; nil allows all.
func (d *DocSet) Allows(doc uint32) bool { return d == nil || d.Contains(doc) }

var _ index.WordSet = (*DocSet)(nil)
