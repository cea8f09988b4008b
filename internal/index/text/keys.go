package text

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/storage"
)

// Key shapes. All integers are big endian. A term has no zero byte, so that 00
// ends it and keys sort by partition, field and term.
//
//	postings    40 | partition 4 | field 1 | term | 00 | block 2
//	statistics  41 | partition 4
//	document    42 | partition 4 | DocID 4
//	removed     42 | partition 4 | DocID 4 | 01
//	dictionary  43 | partition 4 | field 1 | term
//	names       44 | partition 4 | first id 4
//
// A block is DocID >> 16. The removed mark sorts right after the document's row.
const (
	PrefixPostings   byte = 0x40
	PrefixStatistics byte = 0x41
	PrefixForward    byte = 0x42
	PrefixDictionary byte = 0x43
	PrefixNames      byte = 0x44
)

const (
	blockBits = 16
	blockSize = 1 << blockBits

	partitionLen  = 1 + 4
	forwardKeyLen = partitionLen + 4
	namesKeyLen   = partitionLen + 4
	removedMark   = 0x01
)

// MergeTable lists how rows of this package merge, for storage.Options.Merge.
func MergeTable() storage.MergeTable {
	return storage.MergeTable{PrefixPostings: {Pack: packRow}}
}

// Spans returns the key ranges [start, end) that hold all of a partition.
func Spans(partition uint32) [][2][]byte {
	spans := make([][2][]byte, 0, 5)
	for p := PrefixPostings; p <= PrefixNames; p++ {
		start := appendPartition(nil, p, partition)
		spans = append(spans, [2][]byte{start, storage.PrefixEnd(start)})
	}
	return spans
}

func appendPartition(dst []byte, prefix byte, partition uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, prefix), partition)
}

// appendTermPrefix appends what the postings keys of all blocks of a term begin
// with.
func appendTermPrefix(dst []byte, partition uint32, f Field, term string) []byte {
	dst = append(appendPartition(dst, PrefixPostings, partition), byte(f))
	return append(append(dst, term...), 0)
}

func appendPostingKey(dst []byte, partition uint32, f Field, term string, block uint32) []byte {
	return binary.BigEndian.AppendUint16(appendTermPrefix(dst, partition, f, term), uint16(block))
}

// appendDictionaryKey appends the key of a term, or what the keys of all terms that
// begin with it have in common.
func appendDictionaryKey(dst []byte, partition uint32, f Field, term string) []byte {
	dst = append(appendPartition(dst, PrefixDictionary, partition), byte(f))
	return append(dst, term...)
}

func appendNamesKey(dst []byte, partition, first uint32) []byte {
	return binary.BigEndian.AppendUint32(appendPartition(dst, PrefixNames, partition), first)
}

func appendForwardKey(dst []byte, partition, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendPartition(dst, PrefixForward, partition), id)
}

func appendRemovedKey(dst []byte, partition, id uint32) []byte {
	return append(appendForwardKey(dst, partition, id), removedMark)
}

// blockOf is the block of a postings key that begins with a term's prefix.
func blockOf(k []byte, prefix int) (uint32, error) {
	if len(k) != prefix+2 {
		return 0, fmt.Errorf("%w: postings key %x: block", ErrCorrupt, k)
	}
	return uint32(binary.BigEndian.Uint16(k[prefix:])), nil
}

// parseDictionaryKey takes a dictionary key apart. Error: ErrCorrupt.
func parseDictionaryKey(k []byte) (partition uint32, f Field, term []byte, err error) {
	if len(k) <= partitionLen+1 || k[0] != PrefixDictionary || k[partitionLen] >= NumFields || !validTerm(k[partitionLen+1:]) {
		return 0, 0, nil, fmt.Errorf("%w: dictionary key %x", ErrCorrupt, k)
	}
	return binary.BigEndian.Uint32(k[1:]), Field(k[partitionLen]), k[partitionLen+1:], nil
}

// ParseForwardKey takes the key of a document or of its removed mark apart. Error: ErrCorrupt.
func ParseForwardKey(k []byte) (partition, id uint32, removed bool, err error) {
	mark := len(k) == forwardKeyLen+1 && k[forwardKeyLen] == removedMark
	if (len(k) != forwardKeyLen && !mark) || k[0] != PrefixForward {
		return 0, 0, false, fmt.Errorf("%w: forward key %x", ErrCorrupt, k)
	}
	return binary.BigEndian.Uint32(k[1:]), binary.BigEndian.Uint32(k[5:]), mark, nil
}
