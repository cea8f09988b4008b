package text

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// The dictionary of a partition gives each term that has postings an id. Ids are
// given out in the order in which terms first get postings: by tail, in a tail by
// field and text. So they are a function of the documents and what was erased, not
// of batches. An id is not given out again: a term that left and comes back gets a
// new one. Ids are no facts.

// maxEntries bounds the terms that a Writer remembers, about 80 bytes each.
const maxEntries = 1 << 18

// entry is a term that a Writer knows.
type entry struct {
	field Field
	text  string
	id    uint32
	named bool // has an id

	call  uint64 // the inversion that met it last,
	place int    // and its place in inversion.terms
}

// vocabulary is what a Writer knows of a partition's dictionary, as the batch
// leaves it so far.
type vocabulary struct {
	entries [NumFields]map[string]*entry
	whole   bool                       // all terms that have an id are in entries
	left    [NumFields]map[string]bool // terms that left in this batch
}

// dictionary knows the terms of partitions. What it knows of a batch that was given
// up is wrong: then it forgets everything.
type dictionary struct {
	r       pebble.Reader
	parts   map[uint32]*vocabulary
	size    int
	changed bool // by the batch under way
	key     []byte
}

func newDictionary(r pebble.Reader) dictionary {
	return dictionary{r: r, parts: map[uint32]*vocabulary{}}
}

// committed takes note that the batch under way is in the database.
func (d *dictionary) committed() {
	if d.size > maxEntries {
		d.forget()
		return
	}
	if d.changed {
		d.changed = false
		for _, v := range d.parts {
			v.left = [NumFields]map[string]bool{}
		}
	}
}

// givenUp takes note that the batch under way, if any, is not.
func (d *dictionary) givenUp() {
	if d.changed {
		d.forget()
	}
}

func (d *dictionary) forget() {
	clear(d.parts)
	d.size, d.changed = 0, false
}

// part finds what is known of a partition. nextID is the id that its next new term
// gets: at 0 there is nothing to know.
func (d *dictionary) part(partition, nextID uint32) *vocabulary {
	v := d.parts[partition]
	if v == nil {
		v = &vocabulary{whole: nextID == 0}
		for f := range v.entries {
			v.entries[f] = map[string]*entry{}
		}
		d.parts[partition] = v
	}
	return v
}

// entry finds a term, or begins to know it.
func (d *dictionary) entry(v *vocabulary, f Field, term string) *entry {
	if e := v.entries[f][term]; e != nil {
		return e
	}
	return d.meet(v, f, strings.Clone(term)) // not all that it is cut out of
}

// entryOf is entry for a term in a row.
func (d *dictionary) entryOf(v *vocabulary, f Field, term []byte) *entry {
	if e := v.entries[f][string(term)]; e != nil {
		return e
	}
	return d.meet(v, f, string(term))
}

func (d *dictionary) meet(v *vocabulary, f Field, text string) *entry {
	e := &entry{field: f, text: text}
	v.entries[f][text] = e
	d.size++
	return e
}

// find looks up the ids of entries, which stay without one if their terms are new. The
// entries ascend by field and text, so that one iterator goes over the dictionary once.
func (d *dictionary) find(v *vocabulary, partition uint32, entries iter.Seq[*entry]) (err error) {
	if v.whole {
		return nil
	}
	var it *pebble.Iterator
	defer func() {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}()
	for e := range entries {
		if e.named || v.left[e.field][e.text] {
			continue
		}
		if it == nil {
			if it, err = d.r.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixDictionary}, UpperBound: []byte{PrefixDictionary + 1}}); err != nil {
				return err
			}
		}
		d.key = appendDictionaryKey(d.key[:0], partition, e.field, e.text)
		if err := e.find(it, d.key); err != nil {
			return fmt.Errorf("look up term %q: %w", e.text, err)
		}
	}
	return nil
}

func (e *entry) find(it *pebble.Iterator, key []byte) error {
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		return it.Error()
	}
	row, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	e.id, err = readID(row)
	e.named = err == nil
	return err
}

// leave takes a term out, which has no postings any more.
func (d *dictionary) leave(v *vocabulary, n name) {
	if _, known := v.entries[n.field][n.text]; known {
		delete(v.entries[n.field], n.text)
		d.size--
	}
	if v.left[n.field] == nil {
		v.left[n.field] = map[string]bool{}
	}
	v.left[n.field][n.text] = true
	d.changed = true
}

// readID reads a dictionary row: the id, uvarint.
func readID(row []byte) (uint32, error) {
	id, end := readUvarint(row, 0)
	if end != len(row) || id > maxTermID {
		return 0, fmt.Errorf("%w: dictionary row %x", ErrCorrupt, row)
	}
	return id, nil
}

// admit gives ids to terms, in this order, and writes them. Rows of names end where
// a tail does, which cuts says, so that batches do not show in them.
func (d *dictionary) admit(b *pebble.Batch, partition uint32, t *tail, terms []*entry, cuts func(i int) bool) error {
	var names []name
	var val []byte
	first := t.nextID
	flush := func() error {
		if len(names) == 0 {
			return nil
		}
		d.key = appendNamesKey(d.key[:0], partition, first)
		val = appendNames(val[:0], names)
		first += uint32(len(names))
		names = names[:0]
		return b.Set(d.key, val, nil)
	}
	for i, e := range terms {
		if t.nextID > maxTermID {
			return ErrFull
		}
		if len(names) == maxNames || cuts(i) {
			if err := flush(); err != nil {
				return err
			}
		}
		e.id, e.named = t.nextID, true
		t.nextID++
		d.changed = true
		names = append(names, name{e.field, e.text})
		d.key = appendDictionaryKey(d.key[:0], partition, e.field, e.text)
		val = binary.AppendUvarint(val[:0], uint64(e.id))
		if err := b.Set(d.key, val, nil); err != nil {
			return err
		}
	}
	return flush()
}

// dismiss removes a term from the rows of the dictionary. b is indexed.
func (d *dictionary) dismiss(b *pebble.Batch, v *vocabulary, partition uint32, id uint32, n name) (err error) {
	d.leave(v, n)
	if err := b.Delete(appendDictionaryKey(nil, partition, n.field, n.text), nil); err != nil {
		return err
	}
	names, err := openNames(b, partition)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, names.it.Close()) }()
	if err := names.row(id); err != nil {
		return err
	}
	names.names[id-names.first].text = ""
	key := appendNamesKey(nil, partition, names.first)
	for _, n := range names.names {
		if n.text != "" {
			return b.Set(key, appendNames(nil, names.names), nil)
		}
	}
	return b.Delete(key, nil)
}
