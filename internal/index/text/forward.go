package text

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// A forward row holds all of a document, terms ascending by key and field:
//
//	02 | fields uvarint | fields × length uvarint | count uvarint |
//	count × key 12 | count × uvarint((tf-1)<<2 | field)
//
// It never changes. That the document was removed says the mark beside it, whose
// value is the version byte alone. The keys lie together so that a search can look
// terms up in a row without decoding it.
const (
	forwardVersion = 0x02
	fieldBits      = 2
)

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
	for i := range terms {
		dst = append(dst, terms[i].Key[:]...)
	}
	for _, t := range terms {
		dst = binary.AppendUvarint(dst, uint64(t.TF-1)<<fieldBits|uint64(t.Field))
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

// forward is a forward row split into its parts, which lie in the row.
type forward struct {
	lengths [NumFields]uint32
	keys    []byte // count × 12
	heads   []byte // count uvarints; one byte each if len(heads) is count
}

func (f *forward) count() int { return len(f.keys) / len(TermKey{}) }

func (f *forward) key(i int) []byte { return f.keys[i*len(TermKey{}):][:len(TermKey{})] }

func splitForward(v []byte) (f forward, err error) {
	if len(v) < 2 || v[0] != forwardVersion {
		return f, fmt.Errorf("%w: forward row version", ErrCorrupt)
	}
	// An older program wrote fewer fields; the missing ones are empty.
	n, i := readUvarint(v, 1)
	if i < 0 || n > NumFields {
		return f, fmt.Errorf("%w: forward row of %d fields", ErrCorrupt, n)
	}
	for k := range int(n) {
		if f.lengths[k], i = readUvarint(v, i); i < 0 || f.lengths[k] > MaxLength {
			return f, fmt.Errorf("%w: forward row length", ErrCorrupt)
		}
	}
	count, i := readUvarint(v, i)
	const least = len(TermKey{}) + 1
	if i < 0 || uint64(count)*uint64(least) > uint64(len(v)-i) {
		return f, fmt.Errorf("%w: forward row count", ErrCorrupt)
	}
	keysEnd := i + int(count)*len(TermKey{})
	f.keys, f.heads = v[i:keysEnd], v[keysEnd:]
	return f, nil
}

// find gives the frequency of a term, 0 if the document has none. Keys are HMACs,
// so the first guess is where a uniform one would lie.
func (f *forward) find(key *TermKey, field Field) uint32 {
	n := f.count()
	if n == 0 {
		return 0
	}
	want := binary.BigEndian.Uint64(key[:])
	at, _ := bits.Mul64(want, uint64(n))
	i := int(at)
	for i > 0 && binary.BigEndian.Uint64(f.key(i-1)) >= want {
		i--
	}
	for i < n && binary.BigEndian.Uint64(f.key(i)) < want {
		i++
	}
	for ; i < n && binary.BigEndian.Uint64(f.key(i)) == want; i++ {
		if tf, in := f.head(i); in == field && bytes.Equal(f.key(i), key[:]) {
			return tf
		}
	}
	return 0
}

// head gives the frequency and field of the i-th term.
func (f *forward) head(i int) (tf uint32, field Field) {
	if len(f.heads) == f.count() {
		return uint32(f.heads[i])>>fieldBits + 1, Field(f.heads[i] & (1<<fieldBits - 1))
	}
	var x uint32
	for at := 0; i >= 0 && at >= 0; i-- {
		x, at = readUvarint(f.heads, at)
	}
	return x>>fieldBits + 1, Field(x & (1<<fieldBits - 1))
}

// DecodeForward takes a forward row apart; the result shares nothing with v.
// Error: ErrCorrupt.
func DecodeForward(id uint32, v []byte) (Doc, error) {
	f, err := splitForward(v)
	if err != nil {
		return Doc{}, err
	}
	d := Doc{ID: id, Lengths: f.lengths, Terms: make([]Term, 0, f.count())}
	if d.Terms, err = f.appendTerms(d.Terms); err != nil {
		return Doc{}, err
	}
	return d, nil
}

// appendTerms decodes and checks all terms.
func (f *forward) appendTerms(dst []Term) ([]Term, error) {
	from, at := len(dst), 0
	for i := range f.count() {
		var x uint32
		if x, at = readUvarint(f.heads, at); at < 0 {
			return dst, fmt.Errorf("%w: forward row cut", ErrCorrupt)
		}
		dst = append(dst, Term{Key: TermKey(f.key(i)), Field: Field(x & (1<<fieldBits - 1)), TF: x>>fieldBits + 1})
	}
	if at != len(f.heads) {
		return dst, fmt.Errorf("%w: forward row end", ErrCorrupt)
	}
	if checkDistinct(dst[from:]) != nil || checkDoc(f.lengths, dst[from:]) != nil {
		return dst, fmt.Errorf("%w: forward row terms", ErrCorrupt)
	}
	return dst, nil
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
