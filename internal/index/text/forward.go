package text

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// A forward row holds all of a document, terms ascending by key and field:
//
//	01 | fields uvarint | fields × length uvarint | count uvarint |
//	count × (key 12 | field 1 | tf uvarint)
//
// It never changes. That the document was removed says the mark beside it, whose
// value is the version byte alone.
const forwardVersion = 0x01

// EncodeForward appends d's forward row to dst. It is canonical: equal documents
// give equal bytes, whatever the order of Terms. The DocID is not part of it.
// Errors: ErrInvalid.
func EncodeForward(dst []byte, d Doc) ([]byte, error) {
	terms := d.Terms
	if !slices.IsSortedFunc(terms, compareTerms) {
		terms = slices.Clone(terms)
		slices.SortFunc(terms, compareTerms)
	}
	if err := errors.Join(checkDoc(d.Lengths, terms), checkDistinct(terms)); err != nil {
		return nil, fmt.Errorf("encode document %d: %w", d.ID, err)
	}
	return appendForward(dst, d.Lengths, terms), nil
}

func appendForward(dst []byte, lengths [NumFields]uint32, terms []Term) []byte {
	dst = append(dst, forwardVersion, NumFields)
	for _, n := range lengths {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = binary.AppendUvarint(dst, uint64(len(terms)))
	for _, t := range terms {
		dst = append(append(dst, t.Key[:]...), byte(t.Field))
		dst = binary.AppendUvarint(dst, uint64(t.TF))
	}
	return dst
}

func compareTerms(a, b Term) int {
	if c := bytes.Compare(a.Key[:], b.Key[:]); c != 0 {
		return c
	}
	return int(a.Field) - int(b.Field)
}

// checkDoc checks the limits.
func checkDoc(lengths [NumFields]uint32, terms []Term) error {
	for f, n := range lengths {
		if n > MaxLength {
			return fmt.Errorf("%w: length %d of %s", ErrInvalid, n, Field(f))
		}
	}
	for i := range terms {
		switch t := &terms[i]; {
		case t.Field >= NumFields:
			return fmt.Errorf("%w: term %s: %s", ErrInvalid, t.Key, t.Field)
		case t.TF == 0 || t.TF > MaxTF:
			return fmt.Errorf("%w: term %s: frequency %d", ErrInvalid, t.Key, t.TF)
		}
	}
	return nil
}

// checkDistinct checks that terms ascend strictly.
func checkDistinct(terms []Term) error {
	for i := 1; i < len(terms); i++ {
		if compareTerms(terms[i-1], terms[i]) >= 0 {
			return fmt.Errorf("%w: term %s twice in %s", ErrInvalid, terms[i].Key, terms[i].Field)
		}
	}
	return nil
}

// forwardLengths reads the front of a forward row; rest begins at the count.
func forwardLengths(v []byte) (lengths [NumFields]uint32, rest []byte, err error) {
	if len(v) < 2 || v[0] != forwardVersion {
		return lengths, nil, fmt.Errorf("%w: forward row version", ErrCorrupt)
	}
	// An older program wrote fewer fields; the missing ones are empty.
	n, i := readUvarint(v, 1)
	if i < 0 || n > NumFields {
		return lengths, nil, fmt.Errorf("%w: forward row of %d fields", ErrCorrupt, n)
	}
	for f := range int(n) {
		if lengths[f], i = readUvarint(v, i); i < 0 || lengths[f] > MaxLength {
			return lengths, nil, fmt.Errorf("%w: forward row length", ErrCorrupt)
		}
	}
	return lengths, v[i:], nil
}

// DecodeForward takes a forward row apart; the result shares nothing with v.
// Error: ErrCorrupt.
func DecodeForward(id uint32, v []byte) (Doc, error) {
	lengths, v, err := forwardLengths(v)
	if err != nil {
		return Doc{}, err
	}
	d := Doc{ID: id, Lengths: lengths}
	count, i := readUvarint(v, 0)
	const least = 12 + 1 + 1
	if i < 0 || uint64(count)*least > uint64(len(v)-i) {
		return Doc{}, fmt.Errorf("%w: forward row count", ErrCorrupt)
	}
	d.Terms = make([]Term, count)
	for k := range d.Terms {
		if i < 0 || len(v)-i < least {
			return Doc{}, fmt.Errorf("%w: forward row cut", ErrCorrupt)
		}
		t := Term{Key: TermKey(v[i : i+12]), Field: Field(v[i+12])}
		t.TF, i = readUvarint(v, i+13)
		d.Terms[k] = t
	}
	if i != len(v) {
		return Doc{}, fmt.Errorf("%w: forward row end", ErrCorrupt)
	}
	if checkDistinct(d.Terms) != nil || checkDoc(d.Lengths, d.Terms) != nil {
		return Doc{}, fmt.Errorf("%w: forward row terms", ErrCorrupt)
	}
	return d, nil
}

// ForwardRow reads a document, also a removed one. Errors: ErrNotFound (never
// added, or erased), ErrCorrupt, the database's.
func ForwardRow(r pebble.Reader, partition, id uint32) (Doc, error) {
	var d Doc
	err := view(r, appendForwardKey(nil, partition, id), func(v []byte) (err error) {
		d, err = DecodeForward(id, v)
		return err
	})
	if err != nil {
		return Doc{}, fmt.Errorf("read document %d of partition %d: %w", id, partition, err)
	}
	return d, nil
}

// Removed reports whether a document was removed (and not erased).
func Removed(r pebble.Reader, partition, id uint32) (bool, error) {
	err := view(r, appendRemovedKey(nil, partition, id), func([]byte) error { return nil })
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read removed mark %d of partition %d: %w", id, partition, err)
	}
	return true, nil
}

// view calls f with the value of key, which is valid during the call only.
func view(r pebble.Reader, key []byte, f func([]byte) error) error {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return errors.Join(f(v), closer.Close())
}
