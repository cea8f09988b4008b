package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
)

// Reserve is the payload of a Raft command: the log's next stream is to be this
// one, with this epoch. It stands in every state, durably, before the stream is
// made, so that whoever repairs the log after a crash or a change of leaders goes
// on with the same stream, and no epoch is given out twice. The proposer chose the
// identity.
type Reserve struct {
	Applied  Mark             // what the proposer had applied
	Replaces events.StreamRef // what the proposer took for the newest stream
	Next     events.StreamRef
}

// ReserveResult says which stream is to be the next one: what was asked for, or
// what somebody else reserved before.
type ReserveResult struct{ Next events.StreamRef }

// NewReserve reserves the stream after the newest one that the cursor knows, with
// an epoch above all that are in use.
func NewReserve(c *Cursor, inUse uint32, identity string) *Reserve {
	newest := c.newest()
	return &Reserve{Applied: c.Mark(), Replaces: newest,
		Next: events.StreamRef{Epoch: max(newest.Epoch, inUse) + 1, Identity: identity}}
}

// reserve compares and advances.
func (t *tx) reserve(r *Reserve) ReserveResult {
	if r.Replaces == t.cursor.newest() && r.Next.Epoch > r.Replaces.Epoch {
		t.cursor.Next = r.Next
	}
	return ReserveResult{t.cursor.Next}
}

const (
	reserveVersion = 1
	maxIdentity    = 64
)

// Encode returns the bytes of the command:
//
//	u8 2 ‖ u8 version ‖ u64 applied ‖ chain 32 ‖ two streams, each: u32 epoch ‖ uvarint length ‖ identity
func (r *Reserve) Encode() []byte {
	b := []byte{commandReserve, reserveVersion}
	b = append(be64(b, r.Applied.Seq), r.Applied.Chain[:]...)
	for _, s := range []events.StreamRef{r.Replaces, r.Next} {
		b = appendBytes(be32(b, s.Epoch), []byte(s.Identity))
	}
	return b
}

// DecodeReserve parses what Encode wrote.
func DecodeReserve(b []byte) (*Reserve, error) {
	d := &decoder{b: b}
	if err := d.command("reserve stream", commandReserve, reserveVersion); err != nil {
		return nil, err
	}
	r := &Reserve{}
	if v := d.take(8 + 32); v != nil {
		r.Applied.Seq = binary.BigEndian.Uint64(v)
		copy(r.Applied.Chain[:], v[8:])
	}
	for _, s := range []*events.StreamRef{&r.Replaces, &r.Next} {
		if v := d.take(4); v != nil {
			s.Epoch = binary.BigEndian.Uint32(v)
		}
		id := d.bytes()
		s.Identity, d.bad = string(id), d.bad || len(id) > maxIdentity
	}
	if d.bad || len(d.b) != 0 {
		return nil, fmt.Errorf("reserve stream: %w", events.ErrMalformed)
	}
	return r, nil
}
