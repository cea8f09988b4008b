package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Position names one event: shard, epoch of the log, sequence of its frame in
// the stream, index in the frame. Clients see it as an opaque string.
type Position struct {
	Shard uint16
	Epoch uint32
	Seq   uint64
	Index uint32
}

// String prints the form that Parse reads: p<shard>.<epoch>.<seq>.<index>.
func (p Position) String() string {
	return "p" + strconv.FormatUint(uint64(p.Shard), 10) + "." + strconv.FormatUint(uint64(p.Epoch), 10) +
		"." + strconv.FormatUint(p.Seq, 10) + "." + strconv.FormatUint(uint64(p.Index), 10)
}

// ParsePosition reads what String prints.
func ParsePosition(s string) (Position, error) {
	bad := func() (Position, error) { return Position{}, fmt.Errorf("position %.60q: %w", s, ErrMalformed) }
	rest, ok := strings.CutPrefix(s, "p")
	if !ok {
		return bad()
	}
	parts := strings.Split(rest, ".")
	if len(parts) != 4 {
		return bad()
	}
	var n [4]uint64
	for i, bits := range [4]int{16, 32, 64, 32} {
		v, err := strconv.ParseUint(parts[i], 10, bits)
		if err != nil {
			return bad()
		}
		n[i] = v
	}
	p := Position{uint16(n[0]), uint32(n[1]), n[2], uint32(n[3])}
	if p.String() != s {
		return bad()
	}
	return p, nil
}

// Compare orders positions of one shard by sequence and index. Epochs are not
// compared: sequences go on across epochs.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Seq, q.Seq); c != 0 {
		return c
	}
	return cmp.Compare(p.Index, q.Index)
}

// Before reports whether p lies before q.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// IsZero reports whether p names no event: streams begin at sequence 1.
func (p Position) IsZero() bool { return p.Seq == 0 }
