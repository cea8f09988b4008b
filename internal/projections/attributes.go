package projections

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"mneme/internal/events"
)

// Attributes: roaring bitmaps of DocIDs by attribute key, split into blocks of
// 65,536 documents. Bits are only ever added; who is alive is known apart.

func (t *tx) addAttributes(p *Partition, doc uint32, occurred int64, c *Contribution) error {
	keys := append(slices.Clone(c.Attrs), DayKey(occurred))
	for _, k := range keys {
		ref := bitmapRef{p.ID, k, uint16(doc >> 16)}
		bm := t.bitmaps[ref]
		if bm == nil {
			bm = roaring.New()
			t.bitmaps[ref] = bm
		}
		bm.Add(doc & 0xffff)
	}
	if c.Conversation != (AttrKey{}) {
		if err := t.b.Set(talkKey(p.ID, c.Conversation, occurred, doc), nil, nil); err != nil {
			return err
		}
	}
	row := make([]byte, 0, 12*len(keys))
	for _, k := range keys {
		row = append(row, k[:]...)
	}
	return t.addFact(p.Namespace, attrsKey(p.ID, doc), row)
}

// flushBitmaps merges the gathered bits into their rows, in key order.
func (t *tx) flushBitmaps() error {
	refs := slices.SortedFunc(maps.Keys(t.bitmaps), func(a, b bitmapRef) int {
		return cmp.Or(cmp.Compare(a.part, b.part), bytes.Compare(a.attr[:], b.attr[:]), cmp.Compare(a.block, b.block))
	})
	for _, ref := range refs {
		raw, err := t.bitmaps[ref].ToBytes()
		if err != nil {
			return fmt.Errorf("encode bitmap: %w", err)
		}
		if err := t.b.Merge(bitmapKey(ref.part, ref.attr, ref.block), raw, nil); err != nil {
			return err
		}
	}
	return nil
}

// mergeBitmaps is the merge function of bitmap rows: the union of operands.
func mergeBitmaps(acc, operand []byte) ([]byte, error) {
	if len(acc) == 0 {
		return append(acc, operand...), nil
	}
	a, err := decodeBitmap(acc)
	if err != nil {
		return nil, err
	}
	b, err := decodeBitmap(operand)
	if err != nil {
		return nil, err
	}
	a.Or(b)
	return a.ToBytes()
}

func decodeBitmap(raw []byte) (*roaring.Bitmap, error) {
	bm := roaring.New()
	if err := bm.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("bitmap row: %w", events.ErrMalformed)
	}
	return bm, nil
}
