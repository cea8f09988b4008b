package text

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// The row of a document that has postings says which terms it has, so that these
// can be found again when it is removed or erased:
//
//	inverted  06 | field lengths, uvarint each | entries, ids ascending
//	entry     uvarint(gap<<1 | many) | tf-2 uvarint, if many
//
// gap is the id of the term in the partition's dictionary, afterwards less the
// previous id and 1. Without many, tf is 1. That the document was removed says the
// mark beside it, whose value is 01.
const invertedVersion = 0x06

// numbered is a term by its id.
type numbered struct{ id, tf uint32 }

// appendInverted appends the row of a document; terms ascend by id.
func appendInverted(dst []byte, lengths [NumFields]uint32, terms []numbered) []byte {
	dst = appendLengths(append(dst, invertedVersion), lengths)
	next := uint32(0)
	for _, t := range terms {
		gap := uint64(t.id-next) << 1
		if t.tf > 1 {
			dst = binary.AppendUvarint(dst, gap|1)
			dst = binary.AppendUvarint(dst, uint64(t.tf-2))
		} else {
			dst = binary.AppendUvarint(dst, gap)
		}
		next = t.id + 1
	}
	return dst
}

// readInverted decodes the row of a document that has postings and appends its
// terms to dst.
func readInverted(dst []numbered, v []byte) (lengths [NumFields]uint32, terms []numbered, err error) {
	if len(v) == 0 || v[0] != invertedVersion {
		return lengths, dst, fmt.Errorf("%w: version of an inverted document", ErrCorrupt)
	}
	lengths, i := readLengths(v, 1)
	for next := uint64(0); i >= 0 && i < len(v); {
		var head uint32
		if head, i = readUvarint(v, i); i < 0 {
			break
		}
		t := numbered{tf: 1}
		if head&1 != 0 {
			if t.tf, i = readUvarint(v, i); i < 0 || t.tf > MaxTF-2 {
				i = -1
				break
			}
			t.tf += 2
		}
		id := next + uint64(head>>1)
		if id > maxTermID {
			i = -1
			break
		}
		t.id = uint32(id)
		dst = append(dst, t)
		next = id + 1
	}
	if i < 0 {
		return lengths, dst, fmt.Errorf("%w: inverted document", ErrCorrupt)
	}
	return lengths, dst, nil
}

// lengthsOf reads the field lengths of a row of either kind.
func lengthsOf(v []byte) (lengths [NumFields]uint32, err error) {
	if len(v) == 0 || v[0] != invertedVersion {
		_, d, err := openTailRow(v)
		return d.lengths, err
	}
	lengths, i := readLengths(v, 1)
	if i < 0 {
		return lengths, fmt.Errorf("%w: lengths of a document", ErrCorrupt)
	}
	return lengths, nil
}

// ReadDoc reads a document, also a removed one. Errors: ErrNotFound (never added, or
// erased), ErrCorrupt, the database's.
func ReadDoc(r pebble.Reader, partition, id uint32) (Doc, error) {
	var d Doc
	err := view(r, appendForwardKey(nil, partition, id), func(v []byte) (err error) {
		if len(v) > 0 && v[0] == invertedVersion {
			d, err = readNamed(r, partition, v)
			return err
		}
		_, row, err := openTailRow(v)
		if err == nil {
			d, err = DecodeDoc(id, row.v)
		}
		return err
	})
	if err != nil {
		return Doc{}, fmt.Errorf("read document %d of partition %d: %w", id, partition, err)
	}
	d.ID = id
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
