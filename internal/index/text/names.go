package text

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// A names row says which terms have the ids from that of its key on:
//
//	names  entry, entry, …
//	entry  uvarint(shared<<2 | field) | length uvarint | text
//
// text is what follows the first shared bytes of the text before. An empty text is
// that of a term which has left the dictionary; its id is not given out again.
const (
	fieldBits = 2
	maxNames  = 64 // entries of a row
	maxTermID = 1<<31 - 1
)

// name is the field and text of a term; its text is empty when it has left.
type name struct {
	field Field
	text  string
}

func appendNames(dst []byte, names []name) []byte {
	before := ""
	for _, n := range names {
		shared := 0
		for shared < min(len(before), len(n.text)) && before[shared] == n.text[shared] {
			shared++
		}
		dst = binary.AppendUvarint(dst, uint64(shared)<<fieldBits|uint64(n.field))
		dst = binary.AppendUvarint(dst, uint64(len(n.text)-shared))
		dst = append(dst, n.text[shared:]...)
		before = n.text
	}
	return dst
}

// readNames decodes a row and appends its names to dst.
func readNames(dst []name, v []byte) ([]name, error) {
	from, before := len(dst), ""
	for i := 0; i < len(v); {
		var head, n uint32
		if head, i = readUvarint(v, i); i >= 0 {
			n, i = readUvarint(v, i)
		}
		shared, field := int(head>>fieldBits), Field(head&(1<<fieldBits-1))
		if i < 0 || uint64(n) > uint64(len(v)-i) || shared > len(before) || field >= NumFields || len(dst)-from == maxNames {
			return dst, fmt.Errorf("%w: names", ErrCorrupt)
		}
		text := before[:shared] + string(v[i:i+int(n)])
		if text != "" && !ValidTerm(text) {
			return dst, fmt.Errorf("%w: name %q", ErrCorrupt, text)
		}
		dst = append(dst, name{field, text})
		before, i = text, i+int(n)
	}
	if len(dst) == from {
		return dst, fmt.Errorf("%w: no names", ErrCorrupt)
	}
	return dst, nil
}

// nameReader finds names of one partition by id.
type nameReader struct {
	it    *pebble.Iterator
	part  uint32
	first uint32 // id of names[0]
	names []name // the row that was read last
	key   []byte
}

func openNames(r pebble.Reader, partition uint32) (*nameReader, error) {
	prefix := appendPartition(nil, PrefixNames, partition)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return nil, err
	}
	return &nameReader{it: it, part: partition}, nil
}

// row goes to the row that has an id.
func (n *nameReader) row(id uint32) error {
	if id >= n.first && id-n.first < uint32(len(n.names)) {
		return nil
	}
	n.key = appendNamesKey(n.key[:0], n.part, id+1)
	if !n.it.SeekLT(n.key) {
		return errors.Join(fmt.Errorf("%w: term %d has no name", ErrCorrupt, id), n.it.Error())
	}
	k := n.it.Key()
	v, err := n.it.ValueAndErr()
	if err != nil {
		return err
	}
	if len(k) != namesKeyLen {
		return fmt.Errorf("%w: names key %x", ErrCorrupt, k)
	}
	n.first = binary.BigEndian.Uint32(k[partitionLen:])
	if n.names, err = readNames(n.names[:0], v); err != nil {
		return err
	}
	if id-n.first >= uint32(len(n.names)) {
		return fmt.Errorf("%w: term %d has no name", ErrCorrupt, id)
	}
	return nil
}

// name finds the name of an id. Ascending ids cost least.
func (n *nameReader) name(id uint32) (name, error) {
	if err := n.row(id); err != nil {
		return name{}, err
	}
	found := n.names[id-n.first]
	if found.text == "" {
		return name{}, fmt.Errorf("%w: term %d has left", ErrCorrupt, id)
	}
	return found, nil
}

// readNamed reads an inverted document with the texts of its terms.
func readNamed(r pebble.Reader, partition uint32, v []byte) (d Doc, err error) {
	lengths, terms, err := readInverted(nil, v)
	if err != nil {
		return d, err
	}
	names, err := openNames(r, partition)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, names.it.Close()) }()
	d = Doc{Lengths: lengths, Terms: make([]Term, 0, len(terms))}
	for _, t := range terms {
		n, err := names.name(t.id)
		if err != nil {
			return d, err
		}
		d.Terms = append(d.Terms, Term{Field: n.field, Text: n.text, TF: t.tf})
	}
	slices.SortFunc(d.Terms, CompareTerms)
	if checkDistinct(d.Terms) != nil {
		return d, fmt.Errorf("%w: a document names a term twice", ErrCorrupt)
	}
	return d, nil
}
