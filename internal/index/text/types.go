package text

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrCorrupt: a row that no version of this package wrote.
	ErrCorrupt = errors.New("text index: corrupt row")
	// ErrInvalid: an argument that breaks a documented rule; nothing was written.
	ErrInvalid = errors.New("text index: invalid argument")
	// ErrNotFound: no forward row of that document.
	ErrNotFound = errors.New("text index: no such document")
	// ErrFull: the partition has given out all term ids. Building the state anew
	// numbers only the terms that it finds.
	ErrFull = errors.New("text index: no term ids left in the partition")
)

// Field is a part of a record that is indexed and weighted for itself. Numbers
// are stored: append only.
type Field uint8

// The fields.
const (
	FieldText Field = 0
	FieldTags Field = 1
	FieldURI  Field = 2
	FieldWho  Field = 3 // who said it, and when
	NumFields       = 4
)

func (f Field) String() string {
	switch f {
	case FieldText:
		return "text"
	case FieldTags:
		return "tags"
	case FieldURI:
		return "uri"
	case FieldWho:
		return "who"
	}
	return fmt.Sprintf("field(%d)", uint8(f))
}

// Limits of a posting, far above what a record may hold. They let a decoded
// posting fit in 64 bits.
const (
	MaxTF     = 1<<20 - 1
	MaxLength = 1<<28 - 1
)

// MaxTerm is the greatest length of a term in bytes: as many as the analyzer gives.
const MaxTerm = 128

// ValidTerm reports whether the index can hold a term: it has 1 to MaxTerm bytes,
// and none of them is 0, which ends a term in keys.
func ValidTerm(term string) bool {
	return term != "" && len(term) <= MaxTerm && strings.IndexByte(term, 0) < 0
}

func validTerm(term []byte) bool {
	return len(term) > 0 && len(term) <= MaxTerm && bytes.IndexByte(term, 0) < 0
}

// Term is one distinct term of one field of a document.
type Term struct {
	Field Field
	Text  string // see ValidTerm
	TF    uint32 // 1 to MaxTF
}

// Doc is one record version. (Field, Text) pairs are distinct, in any order.
type Doc struct {
	ID      uint32
	Terms   []Term
	Lengths [NumFields]uint32 // tokens per field, up to MaxLength
	// Row may hold what EncodeDoc gave for this document; Terms are then in order,
	// and Add neither encodes nor checks them again. Reads leave it nil.
	Row []byte
}

// Set is a set of DocIDs of one partition. It must not change during a search
// and must be safe for concurrent reads.
type Set interface{ Contains(docID uint32) bool }

// WordSet is a Set that can also give its members in bulk, which a search prefers.
// Words overwrites words: bit i of words[j] says whether first+64*j+i is in the
// set. first is a multiple of 64.
type WordSet interface {
	Set
	Words(first uint32, words []uint64)
}

// Bits is a growing bitmap, the plain WordSet: bit i%64 of word i/64 is DocID i.
type Bits []uint64

// Contains reports membership.
func (b Bits) Contains(id uint32) bool {
	w := int(id >> 6)
	return w < len(b) && b[w]>>(id&63)&1 != 0
}

// Words implements WordSet.
func (b Bits) Words(first uint32, words []uint64) {
	n := 0
	if w := int(first >> 6); w < len(b) {
		n = copy(words, b[w:])
	}
	clear(words[n:])
}

// Add puts id in.
func (b *Bits) Add(id uint32) {
	for int(id>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[id>>6] |= 1 << (id & 63)
}

// Remove takes id out.
func (b Bits) Remove(id uint32) {
	if w := int(id >> 6); w < len(b) {
		b[w] &^= 1 << (id & 63)
	}
}
