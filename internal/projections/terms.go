package projections

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// terms is the projection into the text index, whose rows package text knows.
type terms struct {
	defaults
	t    *tx
	w    *text.Writer
	docs map[uint32][]text.Doc // new documents by partition, in DocID order
	gone map[uint32][]uint32   // documents to be erased by partition
}

var termRows = declaration{
	name: "terms",
	rows: []rows{
		{prefix: text.PrefixPostings, scope: ofPartition, key: "partition4 field1 term 00 block2", holds: "postings"},
		{prefix: text.PrefixStatistics, scope: ofPartition, key: "partition4", holds: "counters"},
		{prefix: text.PrefixForward, scope: ofPartition, fact: true, key: "partition4 doc4 [01]",
			holds: "terms of a document; with 01: it is removed. The fact is the document in clear"},
		{prefix: text.PrefixDictionary, scope: ofPartition, key: "partition4 field1 term", holds: "id of the term"},
		{prefix: text.PrefixNames, scope: ofPartition, key: "partition4 first4", holds: "terms by id"},
	},
	sections: []section{{tag: sectionText,
		append: func(c *Contribution, b []byte) []byte { return c.appendText(b) },
		decode: func(c *Contribution, d *decoder) { c.decodeText(d) }}},
}

func (x *terms) declared() *declaration { return &termRows }

// fold gathers a new version's terms, which are written once a transaction, and
// counts those of one that ends out of the statistics.
func (x *terms) fold(ev *event) error {
	if v := ev.ended; v != nil {
		if err := x.flush(v.part.ID); err != nil {
			return err
		}
		// A version whose key is gone contributed no terms.
		if err := x.w.Remove(x.t.b, v.part.ID, v.doc); err != nil && !errors.Is(err, text.ErrNotFound) {
			return err
		}
	}
	v, c := ev.began, ev.contribution
	if v == nil || c == nil {
		return nil
	}
	d := text.Doc{ID: v.doc, Terms: c.Terms, Lengths: c.Lengths}
	row, err := text.EncodeDoc(nil, d)
	if err != nil {
		return err
	}
	d.Row = row
	x.docs[v.part.ID] = append(x.docs[v.part.ID], d)
	x.t.facts.add(ev.Namespace, forwardFactKey(v.part.ID, v.doc), row)
	return nil
}

// forwardFactKey names a document's terms as the state hash does.
func forwardFactKey(part, doc uint32) []byte {
	return be32(be32([]byte{text.PrefixForward}, part), doc)
}

// flush writes what was gathered for one partition now, so that a removal in the
// same transaction finds it.
func (x *terms) flush(part uint32) error {
	docs := x.docs[part]
	delete(x.docs, part)
	if err := x.w.Add(x.t.b, part, docs); err != nil {
		return fmt.Errorf("add terms: %w", err)
	}
	return nil
}

func (x *terms) drop(_ events.ID, parts []uint32) {
	for _, part := range parts {
		delete(x.docs, part)
		delete(x.gone, part)
	}
}

// erase deletes the terms of a version, and those that no other document has.
func (x *terms) erase(v *version) error {
	if err := x.flush(v.part.ID); err != nil {
		return err
	}
	d, err := text.ReadDoc(x.t.b, v.part.ID, v.doc)
	if errors.Is(err, text.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	row, err := text.EncodeDoc(nil, d)
	if err != nil {
		return err
	}
	x.t.facts.remove(v.part.Namespace, forwardFactKey(v.part.ID, v.doc), row)
	x.gone[v.part.ID] = append(x.gone[v.part.ID], v.doc) // together: they share rows
	return nil
}

func (x *terms) finish() error {
	for _, part := range slices.Sorted(maps.Keys(x.docs)) {
		if err := x.flush(part); err != nil {
			return err
		}
	}
	for _, part := range slices.Sorted(maps.Keys(x.gone)) {
		if err := x.w.RemovePhysical(x.t.b, part, x.gone[part]...); err != nil {
			return fmt.Errorf("erase terms: %w", err)
		}
	}
	return nil
}
