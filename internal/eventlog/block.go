package eventlog

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// nats-server keeps the messages of a stream in msgs/1.blk, msgs/2.blk and so on, and
// what it found in them in msgs/index.db. A block is a row of records:
//
//	 0      4     12     20        22
//	+------+-----+------+---------+---------+----------------------+---------+
//	|length| seq | time | subject | subject | [u32 length, headers]| message |
//	| u32  | u64 | i64  | len u16 |         |                      | hash 8  |
//	+------+-----+------+---------+---------+----------------------+---------+
//
// All integers are little-endian; the length is the whole record's.
const (
	headLength    = 22
	recordHash    = 8
	recordMinimum = headLength + recordHash
	recordMaximum = 32 << 20
	hasHeaders    = 1 << 31 // of the length: the record has headers
	seqErased     = 1 << 63
	seqTombstone  = 1 << 62
	plausibleHole = 1 << 20 // sequences the server may mark as deleted in a row

	plausibleFirst = 1 << 40 // no block begins with such a sequence: a log has fewer messages
)

// recordHead is what a record begins with.
type recordHead struct {
	length  int    // of the record
	seq     uint64 // with seqErased and seqTombstone
	subject int    // length of it
	headers bool   // whether there are any
}

// readHead reads the first headLength bytes of a record.
func readHead(b []byte) recordHead {
	length := binary.LittleEndian.Uint32(b)
	return recordHead{length: int(length &^ hasHeaders), headers: length&hasHeaders != 0,
		seq: binary.LittleEndian.Uint64(b[4:]), subject: int(binary.LittleEndian.Uint16(b[20:]))}
}

// least is the length of such a record with empty headers and an empty message.
func (h recordHead) least() int {
	if h.headers {
		return recordMinimum + h.subject + 4
	}
	return recordMinimum + h.subject
}

// possible reports whether a record can have this length.
func (h recordHead) possible() bool { return h.length >= h.least() && h.length <= recordMaximum }

// blockFiles are the paths of a stream's blocks in order.
func blockFiles(fs vfs.FS, stream string) ([]string, error) {
	msgs := fs.PathJoin(stream, "msgs")
	names, err := list(fs, msgs)
	var blocks []string
	for _, name := range names {
		if strings.HasSuffix(name, ".blk") {
			blocks = append(blocks, fs.PathJoin(msgs, name))
		}
	}
	slices.SortFunc(blocks, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return blocks, err
}

func indexFile(fs vfs.FS, stream string) string { return fs.PathJoin(stream, "msgs", "index.db") }
