package text

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/storage"
)

// Key shapes. All integers are big endian.
//
//	postings    40 | partition 4 | term key 12 | field 1 | block 4
//	statistics  41 | partition 4
//	forward     42 | partition 4 | DocID 4
//	removed     42 | partition 4 | DocID 4 | 01
//
// A block is DocID >> 16. The removed mark sorts right after the forward row.
const (
	PrefixPostings   byte = 0x40
	PrefixStatistics byte = 0x41
	PrefixForward    byte = 0x42
)

const (
	blockBits = 16
	blockSize = 1 << blockBits

	termPrefixLen = 1 + 4 + 12 + 1 // a postings key without its block
	postingKeyLen = termPrefixLen + 4
	forwardKeyLen = 1 + 4 + 4
	removedMark   = 0x01
)

// MergeTable lists how rows of this package merge, for storage.Options.Merge.
func MergeTable() storage.MergeTable {
	return storage.MergeTable{PrefixPostings: {Pack: packRow}}
}

// Spans returns the key ranges [start, end) that hold all of a partition.
func Spans(partition uint32) [][2][]byte {
	spans := make([][2][]byte, 0, 3)
	for _, p := range []byte{PrefixPostings, PrefixStatistics, PrefixForward} {
		start := appendPartition(nil, p, partition)
		spans = append(spans, [2][]byte{start, storage.PrefixEnd(start)})
	}
	return spans
}

func appendPartition(dst []byte, prefix byte, partition uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, prefix), partition)
}

// appendTermPrefix appends what the postings keys of all blocks begin with.
func appendTermPrefix(dst []byte, partition uint32, key TermKey, f Field) []byte {
	dst = appendPartition(dst, PrefixPostings, partition)
	return append(append(dst, key[:]...), byte(f))
}

func appendPostingKey(dst []byte, partition uint32, key TermKey, f Field, block uint32) []byte {
	return binary.BigEndian.AppendUint32(appendTermPrefix(dst, partition, key, f), block)
}

func appendForwardKey(dst []byte, partition, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendPartition(dst, PrefixForward, partition), id)
}

func appendRemovedKey(dst []byte, partition, id uint32) []byte {
	return append(appendForwardKey(dst, partition, id), removedMark)
}

// PostingKey is a postings key taken apart.
type PostingKey struct {
	Partition uint32
	Key       TermKey
	Field     Field
	Block     uint32
}

// ParsePostingKey takes a postings key apart. Error: ErrCorrupt.
func ParsePostingKey(k []byte) (PostingKey, error) {
	if len(k) != postingKeyLen || k[0] != PrefixPostings || k[17] >= NumFields {
		return PostingKey{}, fmt.Errorf("%w: postings key %x", ErrCorrupt, k)
	}
	p := PostingKey{
		Partition: binary.BigEndian.Uint32(k[1:]),
		Key:       TermKey(k[5:17]),
		Field:     Field(k[17]),
		Block:     binary.BigEndian.Uint32(k[18:]),
	}
	if p.Block >= 1<<(32-blockBits) {
		return PostingKey{}, fmt.Errorf("%w: postings key %x: block", ErrCorrupt, k)
	}
	return p, nil
}

// ParseForwardKey takes a forward or removed key apart. Error: ErrCorrupt.
func ParseForwardKey(k []byte) (partition, id uint32, removed bool, err error) {
	mark := len(k) == forwardKeyLen+1 && k[forwardKeyLen] == removedMark
	if (len(k) != forwardKeyLen && !mark) || k[0] != PrefixForward {
		return 0, 0, false, fmt.Errorf("%w: forward key %x", ErrCorrupt, k)
	}
	return binary.BigEndian.Uint32(k[1:]), binary.BigEndian.Uint32(k[5:]), mark, nil
}
