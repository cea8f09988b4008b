package text

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// A document in clear, its terms ascending by field and text:
//
//	document  04 | field lengths, uvarint each | terms a field, uvarint each | terms
//	term      length 1 | text | tf uvarint
//
// This is what commands carry, what the state hash covers, and what the row of a
// document without postings holds (tailrow.go). Equal documents have equal bytes.
const (
	docVersion = 0x04
	// leastTerm is the fewest bytes of a term: its length, a letter, its tf.
	leastTerm = 3
)

// EncodeDoc appends d in clear to dst, whatever the order of its terms. The DocID
// is not part of it. Errors: ErrInvalid.
func EncodeDoc(dst []byte, d Doc) ([]byte, error) {
	terms, err := inOrder(&d)
	if err != nil {
		return nil, fmt.Errorf("encode document %d: %w", d.ID, err)
	}
	return AppendDoc(dst, d.Lengths, terms), nil
}

// inOrder checks a document and gives its terms in order.
func inOrder(d *Doc) ([]Term, error) {
	terms := d.Terms
	if checkDistinct(terms) != nil {
		terms = slices.Clone(terms)
		slices.SortFunc(terms, CompareTerms)
		if err := checkDistinct(terms); err != nil {
			return nil, err
		}
	}
	return terms, checkDoc(d.Lengths, terms)
}

// AppendDoc is EncodeDoc for terms that are valid and in order.
func AppendDoc(dst []byte, lengths [NumFields]uint32, terms []Term) []byte {
	dst = appendLengths(append(dst, docVersion), lengths)
	var counts [NumFields]uint64
	for i := range terms {
		counts[terms[i].Field]++
	}
	for _, n := range counts {
		dst = binary.AppendUvarint(dst, n)
	}
	for i := range terms {
		t := &terms[i]
		dst = append(append(dst, byte(len(t.Text))), t.Text...)
		dst = binary.AppendUvarint(dst, uint64(t.TF))
	}
	return dst
}

// docLen is how many bytes AppendDoc appends.
func docLen(lengths [NumFields]uint32, terms []Term) int {
	n := 1
	var counts [NumFields]uint32
	for i := range terms {
		t := &terms[i]
		counts[t.Field]++
		n += 1 + len(t.Text) + uvarintLen(t.TF)
	}
	for f := range counts {
		n += uvarintLen(lengths[f]) + uvarintLen(counts[f])
	}
	return n
}

func uvarintLen(x uint32) int { return (bits.Len32(x|1) + 6) / 7 }

func appendLengths(dst []byte, lengths [NumFields]uint32) []byte {
	for _, n := range lengths {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

// readLengths reads the field lengths at v[i:]; j is the position after them, -1 if
// they are damaged.
func readLengths(v []byte, i int) (lengths [NumFields]uint32, j int) {
	for f := range lengths {
		if lengths[f], i = readUvarint(v, i); i < 0 || lengths[f] > MaxLength {
			return lengths, -1
		}
	}
	return lengths, i
}

// CompareTerms orders terms by field, then text.
func CompareTerms(a, b Term) int {
	if a.Field != b.Field {
		return int(a.Field) - int(b.Field)
	}
	return cmp.Compare(a.Text, b.Text)
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
			return fmt.Errorf("%w: term %q: %s", ErrInvalid, t.Text, t.Field)
		case t.TF == 0 || t.TF > MaxTF:
			return fmt.Errorf("%w: term %q: frequency %d", ErrInvalid, t.Text, t.TF)
		case !ValidTerm(t.Text):
			return fmt.Errorf("%w: term %q", ErrInvalid, t.Text)
		}
	}
	return nil
}

// checkDistinct checks that terms ascend strictly.
func checkDistinct(terms []Term) error {
	for i := 1; i < len(terms); i++ {
		if CompareTerms(terms[i-1], terms[i]) >= 0 {
			return fmt.Errorf("%w: term %q twice in %s", ErrInvalid, terms[i].Text, terms[i].Field)
		}
	}
	return nil
}

// DecodeDoc takes a document in clear apart, as EncodeDoc gave it; the result
// shares nothing with v. Error: ErrCorrupt.
func DecodeDoc(id uint32, v []byte) (Doc, error) {
	r, err := openDoc(v)
	if err != nil {
		return Doc{}, err
	}
	all := string(v) // one allocation for all terms
	d := Doc{ID: id, Lengths: r.lengths, Terms: make([]Term, 0, r.left())}
	for r.next() {
		d.Terms = append(d.Terms, Term{Field: r.field, Text: all[r.from:r.to], TF: r.tf})
	}
	if r.err != nil {
		return Doc{}, r.err
	}
	if checkDoc(d.Lengths, d.Terms) != nil || checkDistinct(d.Terms) != nil {
		return Doc{}, fmt.Errorf("%w: terms of a document", ErrCorrupt)
	}
	return d, nil
}

// docReader walks the terms of a document in clear.
type docReader struct {
	v       []byte
	lengths [NumFields]uint32
	counts  [NumFields]uint32 // terms to come
	at      int
	err     error

	// The present term.
	field    Field
	from, to int // of its text in v
	tf       uint32
}

func openDoc(v []byte) (r docReader, err error) {
	if len(v) == 0 || v[0] != docVersion {
		return r, fmt.Errorf("%w: version of a document", ErrCorrupt)
	}
	r.v = v
	if r.lengths, r.at = readLengths(v, 1); r.at < 0 {
		return r, fmt.Errorf("%w: lengths of a document", ErrCorrupt)
	}
	for f := range r.counts {
		if r.counts[f], r.at = readUvarint(v, r.at); r.at < 0 {
			return r, fmt.Errorf("%w: counts of a document", ErrCorrupt)
		}
	}
	if r.left() > (len(v)-r.at)/leastTerm {
		return r, fmt.Errorf("%w: counts of a document", ErrCorrupt)
	}
	return r, nil
}

// left is the number of terms to come.
func (r *docReader) left() (n int) {
	for _, c := range r.counts {
		n += int(c)
	}
	return n
}

// next goes to the next term. At the end, or at damage, which err then tells, it
// reports false.
func (r *docReader) next() bool {
	for r.counts[r.field] == 0 {
		if r.field == NumFields-1 {
			if r.at != len(r.v) {
				r.err = fmt.Errorf("%w: end of a document", ErrCorrupt)
			}
			return false
		}
		r.field++
	}
	r.counts[r.field]--
	return r.term()
}

// term reads the term at r.at and goes behind it.
func (r *docReader) term() bool {
	if r.at < len(r.v) {
		r.from = r.at + 1
		r.to = r.from + int(r.v[r.at])
		if r.to < len(r.v) {
			if r.tf = uint32(r.v[r.to]); r.tf < 0x80 {
				r.at = r.to + 1
				return true
			}
			if r.tf, r.at = readUvarint(r.v, r.to); r.at >= 0 {
				return true
			}
		}
	}
	r.err = fmt.Errorf("%w: terms of a document are cut", ErrCorrupt)
	return false
}

// text is the present term.
func (r *docReader) text() []byte { return r.v[r.from:r.to] }
