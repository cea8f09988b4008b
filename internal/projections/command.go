package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
)

// PipelineVersion is the version of derive and fold together. State built by
// another version is rebuilt, never mixed.
const PipelineVersion = 8

// The first byte of a command says what it is.
const (
	commandRange      = 1
	commandReserve    = 2
	commandQuarantine = 3
)

// CommandEnd is the sequence at which a state stands, at least, that has applied a
// command.
func CommandEnd(data []byte) (uint64, error) {
	if len(data) > 0 && data[0] == commandReserve {
		r, err := DecodeReserve(data)
		if err != nil {
			return 0, err
		}
		return r.Applied.Seq, nil
	}
	if IsQuarantine(data) {
		q, err := DecodeQuarantine(data)
		if err != nil {
			return 0, err
		}
		return q.At.Seq, nil
	}
	r, err := DecodeRange(data)
	if err != nil {
		return 0, err
	}
	return max(r.End(), r.Applied.Seq), nil
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// decoder reads the command; a failure sticks.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uvarint() uint64 {
	if d.bad {
		return 0
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) rest() []byte { return d.take(uint64(len(d.b))) }

// count reads a number of items of which each takes at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.bad = true
		return 0
	}
	return int(n)
}

// command reads the two bytes with which a command begins.
func (d *decoder) command(name string, kind, version byte) error {
	if k := d.take(1); !d.bad && k[0] != kind {
		return fmt.Errorf("%s: command %d: %w", name, k[0], events.ErrNewer)
	}
	switch v := d.take(1); {
	case d.bad || v[0] < version:
		return fmt.Errorf("%s: %w", name, events.ErrMalformed)
	case v[0] > version:
		return fmt.Errorf("%s version %d: %w", name, v[0], events.ErrNewer)
	}
	return nil
}
