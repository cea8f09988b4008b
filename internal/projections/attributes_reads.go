package projections

import (
	"encoding/binary"
	"fmt"
	"github.com/RoaringBitmap/roaring/v2"
	"mneme/internal/events"
	"mneme/internal/storage"
)

// attributeReads are the reads of attributes.
type attributeReads struct{ p *published }

// Bitmap is the set of documents with an attribute, dead ones included.
func (v attributeReads) Bitmap(part uint32, attr AttrKey) (*roaring.Bitmap, error) {
	prefix := bitmapPrefix(part, attr)
	return v.bitmaps(prefix, storage.PrefixEnd(prefix))
}

// Days is the set of documents that occurred on the UTC days from..to, both
// included, given as days since 1970.
func (v attributeReads) Days(part uint32, from, to int64) (*roaring.Bitmap, error) {
	upper := bitmapPrefix(part, dayNumberKey(to+1))
	return v.bitmaps(bitmapPrefix(part, dayNumberKey(from)), upper)
}

func (v attributeReads) bitmaps(lower, upper []byte) (*roaring.Bitmap, error) {
	out := roaring.New()
	err := v.p.walk(lower, upper, false, func(key, value []byte) (bool, error) {
		bm, err := decodeBitmap(value)
		if err != nil {
			return false, err
		}
		block := binary.BigEndian.Uint16(key[len(key)-2:])
		out.Or(roaring.AddOffset64(bm, int64(block)<<16))
		return true, nil
	})
	return out, err
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
	return v.p.walk(lower, upper, backwards, func(key, _ []byte) (bool, error) {
		return visit(decodeTime(key[at:]), binary.BigEndian.Uint32(key[at+8:])), nil
	})
}

// timeDocBytes is the length of a time and a DocID at the end of a key.
const timeDocBytes = 8 + 4
