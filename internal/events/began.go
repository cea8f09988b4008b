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
