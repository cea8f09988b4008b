package events

import (
	"encoding/binary"
	"fmt"
)

// Began is the payload of leader.began: whose writing begins. A writer is a
// round of a Raft term; the rounds of a term follow each other.
type Began struct {
	Term  uint64
	Round uint32
}

// Encode returns u64 term ‖ u32 round, big-endian. The payload is not sealed.
func (b Began) Encode() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, b.Term), b.Round)
}

// DecodeBegan parses what Encode wrote.
func DecodeBegan(payload []byte) (Began, error) {
	if len(payload) != 12 {
		return Began{}, fmt.Errorf("leader.began: %w", ErrMalformed)
	}
	return Began{binary.BigEndian.Uint64(payload), binary.BigEndian.Uint32(payload[8:])}, nil
}

// BeganOf reads the leader.began that a frame consists of; false if it is
// another frame, or names another term than its own.
func BeganOf(f *Frame) (Began, bool) {
	if len(f.Events) != 1 {
		return Began{}, false
	}
	e, err := DecodeEnvelope(f.Events[0])
	if err != nil || e.Type != TypeLeaderBegan {
		return Began{}, false
	}
	b, err := DecodeBegan(e.Payload)
	return b, err == nil && b.Term == f.Term
}

// StreamRef is one of the streams that keep a shard's log, one after the other:
// the epoch that begins with it, and the identity that was chosen for it. The
// identity tells it from a stream that somebody made under the same name.
type StreamRef struct {
	Epoch    uint32
	Identity string
}

// IsZero reports whether it names no stream.
func (r StreamRef) IsZero() bool { return r == StreamRef{} }

// EpochOf reads the epoch.began that a frame begins with: the stream that begins
// with the frame's epoch. A frame of an epoch after `last` that begins otherwise is
// not valid. Numbers may be passed over: a reserved stream is given up before
// anything was written to it, and a restore takes its number from the clock.
func EpochOf(f *Frame, last uint32) (StreamRef, bool) {
	if f.Epoch <= last {
		return StreamRef{}, false
	}
	e, err := DecodeEnvelope(f.Events[0])
	if err != nil || e.Type != TypeEpochBegan {
		return StreamRef{}, false
	}
	return StreamRef{f.Epoch, string(e.Payload)}, true
}
