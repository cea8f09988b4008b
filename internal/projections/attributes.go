package projections

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"mneme/internal/events"
)

// Attributes: roaring bitmaps of DocIDs by attribute, split into blocks of
// 65,536 documents. Bits are only ever added; who is alive is known apart.

// Fields of attributes, append-only. Tags, conversation and sources come from
// the sealed payload, in contributions; the others from the header.
const (
	AttrTag          = 1 // folded
	AttrConversation = 2
	AttrDerivedFrom  = 3 // 16 bytes of a record id
	AttrAgent        = 4
	AttrKind         = 5 // the public name
	AttrDay          = 6 // UTC day, 8 bytes
)

// AttrKey is an attribute as keys hold it: u8 field ‖ u8 length ‖ value. No key
// is the beginning of another one.
type AttrKey string

// A value of more than maxAttrValue bytes is cut and ends in a SHA-256 of the
// whole, so that keys are bounded and different values stay different.
const (
	maxAttrValue = 254
	cutAttrValue = 255 // length of such a value
)

// Attr is the key of a value in a field.
func Attr(field uint8, value string) AttrKey {
	if len(value) > maxAttrValue {
		sum := sha256.Sum256([]byte(value))
		value = value[:cutAttrValue-len(sum)] + string(sum[:])
	}
	return AttrKey([]byte{field, byte(len(value))}) + AttrKey(value)
}

// Field is the attribute's field; 0 for the zero key.
func (k AttrKey) Field() uint8 {
	if k == "" {
		return 0
	}
	return k[0]
}

// Value is the attribute's value, cut as Attr says; empty for the zero key.
func (k AttrKey) Value() string {
	if k == "" {
		return ""
	}
	return string(k[2:])
}

// String prints the attribute for people.
func (k AttrKey) String() string {
	if k == "" {
		return "none"
	}
	names := [...]string{AttrTag: "tag", AttrConversation: "conversation", AttrDerivedFrom: "source", AttrAgent: "agent", AttrKind: "kind", AttrDay: "day"}
	name := ""
	if int(k[0]) < len(names) {
		name = names[k[0]]
	}
	return strings.TrimSpace(fmt.Sprintf("%s %q", name, k.Value()))
}

// cutAttr takes an attribute from the front of encoded ones; "" if there is none.
func cutAttr(b []byte) (AttrKey, []byte) {
	if len(b) < 2 || len(b) < 2+int(b[1]) || b[0] < AttrTag || b[0] > AttrDay {
		return "", nil
	}
	n := 2 + int(b[1])
	return AttrKey(b[:n]), b[n:]
}

// addAttributes notes what a version has: what its event's header says, and
// what the payload contributed, which has a row of its own for its removal.
func (t *tx) addAttributes(ev *eventContext, p *Partition, doc uint32, c *Contribution) error {
	header := []AttrKey{Attr(AttrAgent, ev.Agent), Attr(AttrKind, string(ev.Kind.Public())), DayKey(ev.OccurredAt)}
	for _, keys := range [][]AttrKey{header, c.Attrs} {
		for _, k := range keys {
			ref := bitmapRef{p.ID, k, uint16(doc >> 16)}
			bm := t.bitmaps[ref]
			if bm == nil {
				bm = roaring.New()
				t.bitmaps[ref] = bm
			}
			bm.Add(doc & 0xffff)
		}
	}
	if conversation := c.Conversation(); conversation != "" {
		if err := t.b.Set(conversationKey(p.ID, conversation, ev.OccurredAt, doc), nil, nil); err != nil {
			return err
		}
	}
	if len(c.Attrs) == 0 {
		return nil
	}
	var row []byte
	for _, k := range c.Attrs {
		row = append(row, k...)
	}
	return t.addFact(p.Namespace, attrsKey(p.ID, doc), row)
}

// flushBitmaps merges the gathered bits into their rows, in key order.
func (t *tx) flushBitmaps() error {
	refs := slices.SortedFunc(maps.Keys(t.bitmaps), func(a, b bitmapRef) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.attr, b.attr), cmp.Compare(a.block, b.block))
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
