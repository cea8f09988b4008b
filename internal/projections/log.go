package projections

import (
	"encoding/binary"
	"errors"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// eventLog is the projection that keeps the log itself: every message verbatim, so
// that a lost part of the log is written again from state, and where the state
// stands.
type eventLog struct {
	defaults
	t      *tx
	epochs Epochs
}

var logRows = declaration{
	name: "log",
	rows: []rows{
		{prefix: prefixMeta, key: "'c' | 'e'", holds: "c: the cursor; e: sequence of the last event that erased something, 8"},
		{prefix: prefixFrame, key: "seq8", holds: "01 and the frame's header, or 00 and a void message"},
		{prefix: prefixEnvelope, key: "seq8 index4", holds: "the sealed event, verbatim"},
		{prefix: prefixEpoch, key: "epoch4", holds: "first sequence of the epoch, 8; none for epoch 0, nor for one that was passed over"},
		{prefix: prefixQuarantine, key: "seq8 index4", holds: "code of a quarantined event"},
		{prefix: prefixNote, key: "seq8 index4", holds: "of an event that an operator put there: 00, or 01 = the log tells of it, and the payload of event.quarantined"},
	},
	sections: []section{{tag: sectionCode,
		append: func(c *Contribution, b []byte) []byte { return append(b, c.Code...) },
		decode: func(c *Contribution, d *decoder) { c.Code = string(d.rest()) }}},
	load: func(db *storage.DB, m *memory) error {
		return eachRow(db, []byte{prefixEpoch}, func(key, value []byte) error {
			if len(key) != 5 || len(value) != 8 || binary.BigEndian.Uint32(key[1:]) == 0 {
				return fmt.Errorf("epoch row: %w", events.ErrMalformed)
			}
			m.epochs = m.epochs.with(binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint64(value))
			return nil
		})
	},
}

func (l *eventLog) declared() *declaration { return &logRows }

const (
	frameVoid  = 0
	frameValid = 1
)

// frame keeps what a frame has besides its events. If it opens an epoch, positions
// of the former one stay valid up to here.
func (l *eventLog) frame(seq uint64, f *events.Frame) error {
	if f.Epoch > l.t.cursor.Epoch {
		l.epochs = l.epochs.with(f.Epoch, seq)
		if err := l.t.b.Set(epochKey(f.Epoch), be64(nil, seq), nil); err != nil {
			return err
		}
	}
	return l.t.b.Set(frameKey(seq), f.AppendHeader([]byte{frameValid}), nil)
}

// void keeps a message that is no frame of this log.
func (l *eventLog) void(seq uint64, message []byte) error {
	l.t.out.Voids = append(l.t.out.Voids, seq)
	return l.t.b.Set(frameKey(seq), append([]byte{frameVoid}, message...), nil)
}

func (l *eventLog) fold(ev *event) error {
	if err := l.t.b.Set(envelopeKey(ev.at.Seq, ev.at.Index), ev.raw, nil); err != nil {
		return err
	}
	switch {
	case ev.result.Outcome == OutcomeQuarantined:
		l.t.out.Quarantined++
		return errors.Join(l.t.b.Set(quarantineKey(ev.at), []byte(ev.code), nil), l.note(ev))
	case ev.took(events.TypeQuarantined):
		return l.told(ev)
	case ev.took(events.TypeNamespaceDeleted, events.TypeKeyDestroyed):
		return l.t.b.Set(metaErasedKey, be64(nil, ev.at.Seq), nil)
	}
	return nil
}

func (l *eventLog) finish() error { return l.t.b.Set(metaCursorKey, l.t.cursor.encode(), nil) }

func (l *eventLog) publish(m *memory) { m.epochs = l.epochs }
