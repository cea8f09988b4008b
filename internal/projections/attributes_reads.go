package projections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"mneme/internal/events"
)

// attributeReads are the reads of attributes.
type attributeReads struct{ p *published }

// Bitmap is the set of documents with an attribute, dead ones included.
func (v attributeReads) Bitmap(part uint32, attr AttrKey) (*roaring.Bitmap, error) {
	return v.bitmaps(bitmapPrefix(part, attr), nil)
}

// Days is the set of documents that occurred on the UTC days from..to, both
// included, given as days since 1970.
func (v attributeReads) Days(part uint32, from, to int64) (*roaring.Bitmap, error) {
	upper := bitmapPrefix(part, dayNumberKey(to+1))
	return v.bitmaps(bitmapPrefix(part, dayNumberKey(from)), upper)
}

func (v attributeReads) bitmaps(lower, upper []byte) (*roaring.Bitmap, error) {
	opt := prefixOptions(lower)
	if upper != nil {
		opt.UpperBound = upper
	}
	it, err := v.p.snap.NewIter(opt)
	if err != nil {
		return nil, err
	}
	out := roaring.New()
	for ok := it.First(); ok; ok = it.Next() {
		raw, err := it.ValueAndErr()
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		bm, err := decodeBitmap(raw)
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		block := binary.BigEndian.Uint16(it.Key()[len(it.Key())-2:])
		out.Or(roaring.AddOffset64(bm, int64(block)<<16))
	}
	return out, errors.Join(it.Error(), it.Close())
}

// Between visits the documents that occurred in [from, to), in order of time,
// or backwards.
func (v attributeReads) Between(part uint32, from, to int64, backwards bool, visit func(occurred int64, doc uint32) bool) error {
	return v.timeRange(timeKey(part, from, 0), timeKey(part, to, 0), 5, backwards, visit)
}

// Conversation visits the documents of one conversation in [from, to), in order
// of time, or backwards.
func (v attributeReads) Conversation(part uint32, conversation AttrKey, from, to int64, backwards bool, visit func(occurred int64, doc uint32) bool) error {
	lower, upper := conversationKey(part, conversation, from, 0), conversationKey(part, conversation, to, 0)
	return v.timeRange(lower, upper, len(lower)-timeDocBytes, backwards, visit)
}

// Conversations visits the documents of all conversations of a partition, one
// conversation after the other, each in order of time. The name of the
// conversation is valid during the call only.
func (v attributeReads) Conversations(part uint32, visit func(name []byte, occurred int64, doc uint32)) error {
	return eachRow(v.p.snap, be32([]byte{prefixConversation}, part), func(key, _ []byte) error {
		at := len(key) - timeDocBytes
		if at < 6 || at != 6+int(key[5]) {
			return fmt.Errorf("conversation row %x: %w", key, events.ErrMalformed)
		}
		visit(key[6:at], decodeTime(key[at:]), binary.BigEndian.Uint32(key[at+8:]))
		return nil
	})
}

func (v attributeReads) timeRange(lower, upper []byte, at int, backwards bool, visit func(int64, uint32) bool) error {
	it, err := v.p.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	first, next := it.First, it.Next
	if backwards {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		if !visit(decodeTime(it.Key()[at:]), binary.BigEndian.Uint32(it.Key()[at+8:])) {
			break
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// timeDocBytes is the length of a time and a DocID at the end of a key.
const timeDocBytes = 8 + 4
