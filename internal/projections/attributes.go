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

// attributes is the projection into bitmaps of documents by attribute, split into
// blocks of 65,536 documents, and into documents by time. Bits are only ever added,
// but for erasing; who is alive is known apart.
type attributes struct {
	defaults
	t    *tx
	bits map[bitmapRef]*roaring.Bitmap // new bits by bitmap row
}

type bitmapRef struct {
	part  uint32
	attr  AttrKey
	block uint16
}

var attributeRows = declaration{
	name: "attributes",
	rows: []rows{
		{prefix: prefixTime, scope: ofPartition, key: "partition4 occurred8 doc4", holds: "(order by time)"},
		{prefix: prefixConversation, scope: ofPartition, key: "partition4 length1 conversation occurred8 doc4", holds: "(order in a conversation)"},
		{prefix: prefixBitmap, scope: ofPartition, key: "partition4 attribute block2", holds: "roaring bitmap of DocIDs, merged by union"},
		{prefix: prefixAttrs, scope: ofPartition, fact: true, key: "partition4 doc4", holds: "the attributes that the payload has; no row if it has none"},
	},
	sections: []section{{tag: sectionAttributes,
		append: func(c *Contribution, b []byte) []byte {
			for _, k := range c.Attrs {
				b = append(b, k...)
			}
			return b
		},
		decode: func(c *Contribution, d *decoder) { c.decodeAttrs(d) }}},
}

func (x *attributes) declared() *declaration { return &attributeRows }

// attributes are the attributes of a version that its event's header says.
func (d *Doc) attributes() []AttrKey {
	return []AttrKey{Attr(AttrAgent, d.Agent), Attr(AttrKind, string(d.Kind.Public())), DayKey(d.OccurredAt)}
}

// fold notes what a new version has: what its event's header says, and what the
// payload contributed, which has a row of its own for its removal.
func (x *attributes) fold(ev *event) error {
	v, c := ev.began, ev.contribution
	if v == nil {
		return nil
	}
	part := v.part.ID
	if err := x.t.b.Set(timeKey(part, ev.OccurredAt, v.doc), nil, nil); err != nil || c == nil {
		return err
	}
	for _, keys := range [][]AttrKey{v.row.attributes(), c.Attrs} {
		for _, k := range keys {
			ref := bitmapRef{part, k, uint16(v.doc >> 16)}
			if x.bits[ref] == nil {
				x.bits[ref] = roaring.New()
			}
			x.bits[ref].Add(v.doc & 0xffff)
		}
	}
	if conversation := c.Conversation(); conversation != "" {
		if err := x.t.b.Set(conversationKey(part, conversation, ev.OccurredAt, v.doc), nil, nil); err != nil {
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
	return x.t.addFact(ev.Namespace, attrsKey(part, v.doc), row)
}

func (x *attributes) drop(_ events.ID, parts []uint32) {
	for ref := range x.bits {
		if slices.Contains(parts, ref.part) {
			delete(x.bits, ref)
		}
	}
}

// erase takes a version out of the bitmaps, also out of those of its header: a
// version whose key is gone is in none.
func (x *attributes) erase(v *version) error {
	if err := x.finish(); err != nil {
		return err
	}
	key := attrsKey(v.part.ID, v.doc)
	row, err := x.t.get(key)
	if err != nil {
		return err
	}
	keys := v.row.attributes()
	for k, rest := cutAttr(row); k != ""; k, rest = cutAttr(rest) {
		keys = append(keys, k)
		if k.Field() == AttrConversation {
			if err := x.t.b.Delete(conversationKey(v.part.ID, k, v.row.OccurredAt, v.doc), nil); err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		if err := x.eraseBit(bitmapRef{v.part.ID, k, uint16(v.doc >> 16)}, v.doc&0xffff); err != nil {
			return err
		}
	}
	if row == nil {
		return nil
	}
	return x.t.deleteFact(v.part.Namespace, key, row)
}

func (x *attributes) eraseBit(ref bitmapRef, bit uint32) error {
	key := bitmapKey(ref.part, ref.attr, ref.block)
	raw, err := x.t.get(key)
	if err != nil || raw == nil {
		return err
	}
	bm, err := decodeBitmap(raw)
	if err != nil {
		return err
	}
	if bm.Remove(bit); bm.IsEmpty() {
		return x.t.b.Delete(key, nil)
	}
	if raw, err = bm.ToBytes(); err != nil {
		return fmt.Errorf("encode bitmap: %w", err)
	}
	return x.t.b.Set(key, raw, nil) // the former one leaves with State.Purge
}

// finish merges the gathered bits into their rows, in key order.
func (x *attributes) finish() error {
	refs := slices.SortedFunc(maps.Keys(x.bits), func(a, b bitmapRef) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.attr, b.attr), cmp.Compare(a.block, b.block))
	})
	for _, ref := range refs {
		raw, err := x.bits[ref].ToBytes()
		if err != nil {
			return fmt.Errorf("encode bitmap: %w", err)
		}
		if err := x.t.b.Merge(bitmapKey(ref.part, ref.attr, ref.block), raw, nil); err != nil {
			return err
		}
	}
	clear(x.bits)
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
