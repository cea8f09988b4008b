package text

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The row of a document without postings is the document in clear, behind what helps
// to find a term in it:
//
//	tail row  05 | terms uvarint | fingerprint 1 each | offset 4 of each 16th | document in clear
//
// Fingerprints stand in the order of the terms; those of a field lie together. The
// offsets, little endian, say where the terms 16, 32, … begin behind the first.
const (
	tailVersion = 0x05
	tailStep    = 16
)

// fingerprint folds the 32 bits of FNV-1a (Fowler, Noll and Vo) into 8.
func fingerprint[T string | []byte](term T) byte {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	return byte(h ^ h>>8 ^ h>>16 ^ h>>24)
}

// appendTailRow appends the row of a document in clear, as EncodeDoc gives it.
func appendTailRow(dst, doc []byte) ([]byte, error) {
	d, err := openDoc(doc)
	if err != nil {
		return dst, err
	}
	n := d.left()
	dst = binary.AppendUvarint(append(dst, tailVersion), uint64(n))
	column := len(dst)
	for range n + 4*tailOffsets(n) {
		dst = append(dst, 0)
	}
	offsets, start := dst[column+n:], d.at
	for i := 0; ; i++ {
		at := d.at
		if !d.next() {
			break
		}
		dst[column+i] = fingerprint(d.text())
		if i > 0 && i%tailStep == 0 {
			binary.LittleEndian.PutUint32(offsets[4*(i/tailStep-1):], uint32(at-start))
		}
	}
	return append(dst, doc...), d.err
}

// tailOffsets is the number of offsets of n terms.
func tailOffsets(n int) int { return max(n-1, 0) / tailStep }

// finder finds terms in a tail row.
type finder struct {
	fingerprints []byte
	offsets      []byte
	doc          docReader // at its first term
	fields       [NumFields + 1]int
}

var errTailRow = fmt.Errorf("%w: tail row", ErrCorrupt)

// openTailRow takes a tail row apart.
func openTailRow(v []byte) (f finder, d docReader, err error) {
	if len(v) == 0 || v[0] != tailVersion {
		return f, d, errTailRow
	}
	n, i := readUvarint(v, 1)
	if i < 0 || int64(n)+4*int64(tailOffsets(int(n))) > int64(len(v)-i) {
		return f, d, errTailRow
	}
	end := i + int(n)
	f.fingerprints, f.offsets = v[i:end], v[end:end+4*tailOffsets(int(n))]
	if f.doc, err = openDoc(v[end+len(f.offsets):]); err != nil {
		return f, d, err
	}
	for k, count := range f.doc.counts {
		f.fields[k+1] = f.fields[k] + int(count)
	}
	if f.fields[NumFields] != int(n) {
		return f, d, errTailRow
	}
	return f, f.doc, nil
}

// find gives the frequency of a term, 0 if the document has none.
func (f *finder) find(field Field, term string, print byte) (tf uint32, err error) {
	at, to := f.fields[field], f.fields[field+1]
	for {
		i := bytes.IndexByte(f.fingerprints[at:to], print)
		if i < 0 {
			return 0, nil
		}
		at += i
		tf, ok, err := f.compare(at, term)
		if ok || err != nil {
			return tf, err
		}
		at++
	}
}

// compare reads the i-th term and says whether it is this one.
func (f *finder) compare(i int, term string) (tf uint32, ok bool, err error) {
	d := f.doc
	if step := i / tailStep; step > 0 {
		d.at += int(binary.LittleEndian.Uint32(f.offsets[4*(step-1):]))
	}
	if d.at > len(d.v) {
		return 0, false, fmt.Errorf("%w: offset in a tail row", ErrCorrupt)
	}
	for range i%tailStep + 1 {
		if !d.term() {
			return 0, false, d.err
		}
	}
	return d.tf, string(d.text()) == term, nil
}
