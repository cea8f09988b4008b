package events

import (
	"encoding/binary"
	"fmt"

	"mneme/memory"
)

// LabelQuery is the label of a query's keyed hash in a memory.read, under the namespace's
// index key: equal queries have equal hashes, and nothing of a query is kept.
const LabelQuery = "query"

// ReadPurpose numbers memory.Purpose. Numbers are append-only.
type ReadPurpose uint8

// ReadInject is memory.PurposeInject.
const ReadInject ReadPurpose = 1

// Public is the public form of the purpose.
func (p ReadPurpose) Public() memory.Purpose {
	if p == ReadInject {
		return memory.PurposeInject
	}
	return memory.Purpose(fmt.Sprintf("purpose-%d", uint8(p)))
}

// Read is the sealed part of a memory.read: which memories of one scope a read gave, and where
// it stood. It names them, and holds no word of them or of the query.
type Read struct {
	Purpose ReadPurpose
	Linear  bool   // it was linearizable
	Seq     uint64 // the position that was read at
	Index   uint32
	Query   MAC
	Given   []Given // in the order of the answer
}

// Given is a version of a record that was given to a reader.
type Given struct {
	Record  ID
	Version uint32
}

// ReadNote is what a node that is about to answer a read has the writer note: the reader, and
// what it gets of the team's memories and of its own. Each scope has an event of its own, so
// that who may see the one sees nothing of the other; nil = there is none.
type ReadNote struct {
	Namespace ID
	Agent     string // "" = it was not said
	Team, Own *Read
}

// Encode returns the canonical bytes: u8 purpose ‖ u8 flags, of which 1 is linearizable ‖
// u64 seq ‖ u32 index ‖ query 16 ‖ uvarint count, then of each record 16 ‖ uvarint version.
func (r *Read) Encode() []byte {
	b := []byte{byte(r.Purpose), 0}
	if r.Linear {
		b[1] = 1
	}
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint32(b, r.Index)
	b = append(b, r.Query[:]...)
	b = binary.AppendUvarint(b, uint64(len(r.Given)))
	for _, g := range r.Given {
		b = binary.AppendUvarint(append(b, g.Record[:]...), uint64(g.Version))
	}
	return b
}

// DecodeRead parses what Encode wrote. A purpose that this program does not know is ErrNewer.
func DecodeRead(b []byte) (Read, error) {
	const what = "read"
	in := &reader{b: b}
	r := Read{Purpose: ReadPurpose(in.u8(what))}
	if r.Purpose > ReadInject {
		return Read{}, fmt.Errorf("purpose %d of a read: %w", r.Purpose, ErrNewer)
	}
	flags := in.u8(what)
	r.Linear = flags == 1
	r.Seq, r.Index = in.u64(what), in.u32(what)
	in.fixed(r.Query[:], what)
	for n := in.count(len(ID{})+1, what); n > 0 && in.err == nil; n-- {
		var g Given
		in.fixed(g.Record[:], what)
		version := in.uvarint(what)
		if g.Version = uint32(version); uint64(g.Version) != version {
			in.fail(what)
		}
		r.Given = append(r.Given, g)
	}
	if r.Purpose == 0 || flags > 1 {
		in.fail(what)
	}
	return r, in.end(what)
}
