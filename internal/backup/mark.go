package backup

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"mneme/internal/events"
)

// Mark is where the log of a shard stands: behind a sequence, with the chain over
// everything up to it, and the term and epoch that hold there. The zero mark of a shard
// is the beginning of its log.
type Mark struct {
	Shard uint16
	Seq   uint64
	Epoch uint32
	Term  uint64
	Chain events.Chain
}

// String prints the form that ParseMark reads: shard.sequence.epoch.term.chain.
func (m Mark) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%s", m.Shard, m.Seq, m.Epoch, m.Term, m.Chain)
}

// ParseMark reads what String prints.
func ParseMark(s string) (m Mark, err error) {
	bad := func() (Mark, error) { return Mark{}, fmt.Errorf("mark %.100q: %w", s, events.ErrMalformed) }
	parts := strings.Split(s, ".")
	if len(parts) != 5 {
		return bad()
	}
	var n [4]uint64
	for i, bits := range [4]int{16, 64, 32, 64} {
		if n[i], err = strconv.ParseUint(parts[i], 10, bits); err != nil {
			return bad()
		}
	}
	m = Mark{Shard: uint16(n[0]), Seq: n[1], Epoch: uint32(n[2]), Term: n[3]}
	if k, err := hex.Decode(m.Chain[:], []byte(parts[4])); err != nil || k != len(m.Chain) || m.String() != s {
		return bad()
	}
	return m, nil
}

// MarshalText gives String's form.
func (m Mark) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what MarshalText gave.
func (m *Mark) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMark(string(text))
	return err
}

// meets reports whether a range that begins at m goes on where one ended at end. Files
// of version 2 do not tell the term and the epoch at their end.
func (m Mark) meets(end Mark) bool {
	return m.Shard == end.Shard && m.Seq == end.Seq && m.Chain == end.Chain
}

// ParseMarks reads marks that are separated by commas; of "" there are none.
func ParseMarks(s string) (marks []Mark, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		m, err := ParseMark(one)
		if err != nil {
			return nil, err
		}
		marks = append(marks, m)
	}
	return marks, nil
}

// JoinMarks prints what ParseMarks reads.
func JoinMarks(marks []Mark) string {
	all := make([]string, len(marks))
	for i, m := range marks {
		all[i] = m.String()
	}
	return strings.Join(all, ",")
}
