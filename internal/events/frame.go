package events

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Frame is what one message of a shard's stream holds: 1..n events that are
// applied together, and where the writer believed the log to stand.
type Frame struct {
	Shard    uint16
	Feature  uint16 // features that a reader must know; see FeatureLevel
	Epoch    uint32
	Term     uint64 // the writer's Raft term
	Seq      uint64 // the sequence the writer expected to get
	Previous Chain  // the chain before this frame
	Events   [][]byte
}

// Limits of a frame.
const (
	MaxFrameBytes  = 512 << 10 // what a writer gathers; one larger event may exceed it
	maxFrameEvents = 1 << 16
	frameHeader    = 64
	frameTrailer   = 4
	frameVersion   = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodedSize is the length of the frame's encoding.
func (f *Frame) EncodedSize() int {
	n := frameHeader + frameTrailer
	for _, e := range f.Events {
		n += 4 + len(e)
	}
	return n
}

// Encode returns the canonical bytes of the frame.
//
//	 0    2   3      4     6         8      12     20    28         60       64
//	+----+---+------+-----+---------+------+------+-----+----------+--------+
//	|"MF"|ver|flags0|shard| feature | epoch| term | seq | previous | count  |
//	+----+---+------+-----+---------+------+------+-----+----------+--------+
//	| count × ( u32 length, envelope ) | crc32c of all before, u32          |
//
// All integers are big-endian.
func (f *Frame) Encode() []byte {
	b := make([]byte, 0, f.EncodedSize())
	b = f.AppendHeader(b)
	for _, e := range f.Events {
		b = binary.BigEndian.AppendUint32(b, uint32(len(e)))
		b = append(b, e...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// AppendHeader appends the fixed 64 bytes in front of the events. With the
// events they give the frame back byte for byte (see JoinFrame).
func (f *Frame) AppendHeader(b []byte) []byte {
	b = append(b, 'M', 'F', frameVersion, 0)
	b = binary.BigEndian.AppendUint16(b, f.Shard)
	b = binary.BigEndian.AppendUint16(b, f.Feature)
	b = binary.BigEndian.AppendUint32(b, f.Epoch)
	b = binary.BigEndian.AppendUint64(b, f.Term)
	b = binary.BigEndian.AppendUint64(b, f.Seq)
	b = append(b, f.Previous[:]...)
	return binary.BigEndian.AppendUint32(b, uint32(len(f.Events)))
}

// PreviousOf reads the previous hash in a frame's fixed header.
func PreviousOf(header []byte) (Chain, error) {
	var c Chain
	if len(header) < frameHeader {
		return c, fmt.Errorf("frame header: %w", ErrMalformed)
	}
	copy(c[:], header[28:60])
	return c, nil
}

// DecodeFrame parses a frame. Events alias b. The envelopes inside are not
// looked at.
func DecodeFrame(b []byte) (Frame, error) {
	var f Frame
	if len(b) < frameHeader+frameTrailer || b[0] != 'M' || b[1] != 'F' {
		return f, fmt.Errorf("frame: %w", ErrMalformed)
	}
	body, sum := b[:len(b)-frameTrailer], binary.BigEndian.Uint32(b[len(b)-frameTrailer:])
	if crc32.Checksum(body, castagnoli) != sum {
		return f, fmt.Errorf("frame checksum: %w", ErrMalformed)
	}
	if b[2] > frameVersion {
		return f, fmt.Errorf("frame version %d: %w", b[2], ErrNewer)
	}
	if b[2] != frameVersion || b[3] != 0 {
		return f, fmt.Errorf("frame version: %w", ErrMalformed)
	}
	r := reader{b: body[4:]}
	f.Shard = r.u16("shard")
	f.Feature = r.u16("feature")
	f.Epoch = r.u32("epoch")
	f.Term = r.u64("term")
	f.Seq = r.u64("seq")
	r.fixed(f.Previous[:], "previous")
	count := r.u32("count")
	if f.Feature > FeatureLevel {
		return f, fmt.Errorf("frame feature level %d: %w", f.Feature, ErrNewer)
	}
	if count == 0 || count > maxFrameEvents || int(count) > len(r.b)/4 {
		return f, fmt.Errorf("frame count %d: %w", count, ErrMalformed)
	}
	f.Events = make([][]byte, 0, count)
	for range count {
		f.Events = append(f.Events, r.long("event"))
	}
	return f, r.end("frame")
}

// JoinFrame gives back the bytes of a frame from its 64-byte header and its
// events, as state keeps them.
func JoinFrame(header []byte, events [][]byte) ([]byte, error) {
	if len(header) != frameHeader || binary.BigEndian.Uint32(header[60:]) != uint32(len(events)) {
		return nil, fmt.Errorf("join frame: %w", ErrMalformed)
	}
	n := frameHeader + frameTrailer
	for _, e := range events {
		n += 4 + len(e)
	}
	b := append(make([]byte, 0, n), header...)
	for _, e := range events {
		b = binary.BigEndian.AppendUint32(b, uint32(len(e)))
		b = append(b, e...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// Continues reports whether the frame follows a log that stands at the given
// chain and term: a frame that does not is void. Terms never go back.
func (f *Frame) Continues(shard uint16, seq uint64, previous Chain, term uint64) bool {
	return f.Shard == shard && f.Seq == seq && f.Previous == previous && f.Term >= term
}
