package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
)

// Cursor is where a shard's state stands. It commits with the rows.
type Cursor struct {
	RaftIndex  uint64
	RaftTerm   uint64
	Shard      uint16
	Epoch      uint32
	Seq        uint64 // last frame applied
	Index      uint32 // last event of it
	Term       uint64 // the log's writer term
	Round      uint32 // the round of that term which began last
	Chain      events.Chain
	SealedAt   int64  // latest sealed_at
	Partitions uint32 // partitions made so far
	Pipeline   uint32
	Events     uint64 // events folded since the beginning
	Identity   string // of the stream that the state is fed from
	// Level is the feature level that a level.raised lets writers use; 0 = there was none.
	Level uint16
	// Next is the stream that is reserved to take the present one's place; zero =
	// none. Its epoch.began ends the reservation.
	Next events.StreamRef
}

// Stream is the stream that the state is fed from.
func (c *Cursor) Stream() events.StreamRef {
	return events.StreamRef{Epoch: c.Epoch, Identity: c.Identity}
}

// newest is the stream that was reserved last.
func (c *Cursor) newest() events.StreamRef {
	if c.Next.IsZero() {
		return c.Stream()
	}
	return c.Next
}

// feed makes a stream the one that the state is fed from. One whose epoch has
// not begun is taken over with its epoch.began.
func (c *Cursor) feed(s events.StreamRef) {
	if s.Epoch > c.Epoch {
		c.Next = s
		return
	}
	c.Identity = s.Identity
	if c.Next.Epoch <= c.Epoch {
		c.Next = events.StreamRef{}
	}
}

// FeatureLevel is the level up to which writers may use the log's features.
func (c *Cursor) FeatureLevel() uint16 { return max(c.Level, events.BaseLevel) }

// Position is the public form of the cursor.
func (c *Cursor) Position() events.Position {
	return events.Position{Shard: c.Shard, Epoch: c.Epoch, Seq: c.Seq, Index: c.Index}
}

// Mark is the cursor's place in the log.
func (c *Cursor) Mark() Mark { return Mark{c.Seq, c.Chain} }

// Follow decodes the log's next message and moves the cursor's place in the log
// over it: sequence, chain and, if the frame is valid, term, round and epoch.
// What the events do to the rest of the cursor is the fold's.
func (c *Cursor) Follow(message []byte) (f events.Frame, valid bool, err error) {
	if f, valid, err = c.Valid(message); err != nil {
		return f, valid, err
	}
	c.Seq++
	c.Chain = events.NextChain(c.Chain, c.Seq, message)
	if valid {
		c.begin(&f)
	}
	return f, valid, nil
}

// begin takes over what a valid frame says about its writer.
func (c *Cursor) begin(f *events.Frame) {
	if f.Term != c.Term {
		c.Term, c.Round = f.Term, 0
	}
	if s, ok := events.EpochOf(f, c.Epoch); ok {
		c.Epoch = s.Epoch
		c.feed(s)
	}
	if b, ok := events.BeganOf(f); ok {
		c.Round = b.Round
	}
}

// A cursor without a raised level is written as version 3, without the field, so that a
// program from before can open the state as long as none was raised.
const (
	cursorVersion  = 4
	cursorNoLevel  = 3
	cursorFixed    = 1 + 8 + 8 + 2 + 4 + 8 + 4 + 8 + 4 + 32 + 8 + 4 + 4 + 8 + 4
	cursorLevelLen = 2
)

func (c *Cursor) encode() []byte {
	b := make([]byte, 0, cursorFixed+cursorLevelLen+len(c.Next.Identity)+len(c.Identity)+1)
	if c.Level == 0 {
		b = append(b, cursorNoLevel)
	} else {
		b = append(b, cursorVersion)
	}
	b = be64(b, c.RaftIndex)
	b = be64(b, c.RaftTerm)
	b = binary.BigEndian.AppendUint16(b, c.Shard)
	b = be32(b, c.Epoch)
	b = be64(b, c.Seq)
	b = be32(b, c.Index)
	b = be64(b, c.Term)
	b = be32(b, c.Round)
	b = append(b, c.Chain[:]...)
	b = be64(b, uint64(c.SealedAt))
	b = be32(b, c.Partitions)
	b = be32(b, c.Pipeline)
	b = be64(b, c.Events)
	b = be32(b, c.Next.Epoch)
	if c.Level != 0 {
		b = binary.BigEndian.AppendUint16(b, c.Level)
	}
	b = appendBytes(b, []byte(c.Next.Identity))
	return append(b, c.Identity...)
}

func decodeCursor(b []byte) (Cursor, error) {
	var c Cursor
	if len(b) > 0 && b[0] > cursorVersion {
		return c, fmt.Errorf("cursor version %d: %w", b[0], events.ErrNewer)
	}
	if len(b) < cursorFixed || b[0] < cursorNoLevel {
		return c, fmt.Errorf("cursor: %w", events.ErrMalformed)
	}
	u32, u64 := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	c.RaftIndex, c.RaftTerm = u64(b[1:]), u64(b[9:])
	c.Shard, c.Epoch, c.Seq, c.Index = binary.BigEndian.Uint16(b[17:]), u32(b[19:]), u64(b[23:]), u32(b[31:])
	c.Term = u64(b[35:])
	c.Round = u32(b[43:])
	copy(c.Chain[:], b[47:79])
	c.SealedAt = int64(u64(b[79:]))
	c.Partitions, c.Pipeline, c.Events = u32(b[87:]), u32(b[91:]), u64(b[95:])
	c.Next.Epoch = u32(b[103:])
	rest := &decoder{b: b[cursorFixed:]}
	if b[0] == cursorVersion {
		if len(rest.b) < cursorLevelLen {
			return c, fmt.Errorf("cursor: %w", events.ErrMalformed)
		}
		c.Level = binary.BigEndian.Uint16(rest.b)
		rest.b = rest.b[cursorLevelLen:]
		if c.Level == 0 {
			return c, fmt.Errorf("cursor: %w", events.ErrMalformed)
		}
		if c.Level > events.FeatureLevel {
			return c, fmt.Errorf("state of feature level %d, known are those up to %d: %w", c.Level, events.FeatureLevel, events.ErrNewer)
		}
	}
	c.Next.Identity, c.Identity = string(rest.bytes()), string(rest.rest())
	if rest.bad {
		return c, fmt.Errorf("cursor: %w", events.ErrMalformed)
	}
	return c, nil
}
