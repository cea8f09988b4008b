package projections

import (
	"fmt"
	"github.com/cockroachdb/pebble/v2"
	"mneme/internal/events"
)

// logReads are the reads of the log.
type logReads struct{ p *published }

// Envelope returns the sealed event at a reference.
func (v logReads) Envelope(at Ref) (events.Envelope, []byte, error) {
	raw, err := v.p.get(envelopeKey(at.Seq, at.Index))
	if err != nil {
		return events.Envelope{}, nil, err
	}
	if raw == nil {
		return events.Envelope{}, nil, fmt.Errorf("event %d.%d is not in state: %w", at.Seq, at.Index, events.ErrMalformed)
	}
	e, err := events.DecodeEnvelope(raw)
	return e, raw, err
}

// Frame gives back the message at a sequence byte for byte; nil if the state
// does not hold it.
func (v logReads) Frame(seq uint64) ([]byte, error) { return frameOf(v.p.snap, v.p.get, seq) }

// frameOf puts the message of a sequence together from its rows; nil if there
// is none.
func frameOf(rows pebble.Reader, get func(key []byte) ([]byte, error), seq uint64) ([]byte, error) {
	row, err := get(frameKey(seq))
	if err != nil || len(row) == 0 {
		return nil, err
	}
	if row[0] == frameVoid {
		return row[1:], nil
	}
	var evs [][]byte
	err = eachRow(rows, be64([]byte{prefixEnvelope}, seq), func(_, value []byte) error {
		evs = append(evs, append([]byte(nil), value...))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return events.JoinFrame(row[1:], evs)
}

// Epochs are the log's epochs. The caller must not change them.
func (v logReads) Epochs() Epochs { return v.p.epochs }

// PositionOf is the public position of an event, in the epoch in which it was
// written.
func (v logReads) PositionOf(at Ref) events.Position {
	return events.Position{Shard: v.p.cursor.Shard, Epoch: v.p.epochs.Of(at.Seq), Seq: at.Seq, Index: at.Index}
}

// Quarantined visits the events that could not be understood, oldest first.
func (v logReads) Quarantined(visit func(at Ref, code string) error) error {
	return eachRow(v.p.snap, []byte{prefixQuarantine}, func(key, value []byte) error {
		return visit(decodeRef(key[1:]), string(value))
	})
}
