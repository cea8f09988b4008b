package events

import (
	"encoding/binary"
	"fmt"
)

// Quarantined is the payload of event.quarantined: an event at which every replica
// stopped, and which is folded as a quarantined one from then on. It acts at the position
// that it names, which lies before it, so whoever folds the log reads these first.
type Quarantined struct {
	Seq   uint64
	Index uint32 // in the frame
	By    string // the agent that did it, at most 255 bytes
	// Note says when and why, sealed under the cluster's key.
	Note []byte
}

// Encode returns u64 sequence ‖ u32 index ‖ u8 length ‖ by ‖ note, big-endian.
func (q Quarantined) Encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, quarantinedFixed+len(q.By)+len(q.Note)), q.Seq)
	b = append(binary.BigEndian.AppendUint32(b, q.Index), byte(len(q.By)))
	return append(append(b, q.By...), q.Note...)
}

const quarantinedFixed = 8 + 4 + 1

// DecodeQuarantined parses what Encode wrote. The note aliases the payload.
func DecodeQuarantined(payload []byte) (Quarantined, error) {
	if len(payload) < quarantinedFixed || len(payload)-quarantinedFixed < int(payload[12]) {
		return Quarantined{}, fmt.Errorf("event.quarantined: %w", ErrMalformed)
	}
	rest := payload[quarantinedFixed:]
	by := int(payload[12])
	return Quarantined{binary.BigEndian.Uint64(payload), binary.BigEndian.Uint32(payload[8:]), string(rest[:by]), rest[by:]}, nil
}

// QuarantinedOf reads the event.quarantined that a frame consists of; false if it is
// another frame.
func QuarantinedOf(f *Frame) (Quarantined, bool) {
	if len(f.Events) != 1 {
		return Quarantined{}, false
	}
	e, err := DecodeEnvelope(f.Events[0])
	if err != nil || e.Type != TypeQuarantined {
		return Quarantined{}, false
	}
	q, err := DecodeQuarantined(e.Payload)
	return q, err == nil && q.Seq < f.Seq
}
