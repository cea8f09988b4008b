package ingest

import (
	"context"
	"errors"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
)

// readQuarantined tells a state which of the events that follow in the log are in
// quarantine: event.quarantined lies behind the event that it names. The reading ends at a
// gap, where the replay does.
func readQuarantined(ctx context.Context, stream eventlog.Stream, state *projections.State, last uint64) error {
	_, err := LastQuarantined(ctx, stream, state, last)
	return err
}

// LastQuarantined tells a state which of the events that follow in the log, up to last, are in
// quarantine, and returns the sequence of the last frame that says so; 0 = none does.
func LastQuarantined(ctx context.Context, stream eventlog.Stream, state *projections.State, last uint64) (seq uint64, err error) {
	at := state.Cursor()
	err = stream.Read(ctx, at.Seq+1, last, func(m eventlog.Message) error {
		if m.Seq != at.Seq+1 {
			return &eventlog.GapError{Want: at.Seq + 1, Got: m.Seq}
		}
		f, valid, err := at.Follow(m.Data)
		if err != nil || !valid {
			return err
		}
		if q, ok := events.QuarantinedOf(&f); ok {
			state.Quarantine(projections.QuarantineOf(q))
			seq = m.Seq
		}
		return nil
	})
	if gap := (*eventlog.GapError)(nil); errors.As(err, &gap) {
		return seq, nil
	}
	return seq, err
}

// readUntold finds the events in quarantine of which the log does not tell yet. (See round.begin.)
func (r *round) readUntold() error {
	v := r.state.View()
	noted, err := v.Noted()
	r.untold = r.untold[:0]
	for _, n := range noted {
		if !n.Told {
			r.untold = append(r.untold, n.Quarantine)
		}
	}
	return errors.Join(err, v.Close())
}
