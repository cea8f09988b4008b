package ingest

import (
	"context"
	"errors"
	"time"

	"mneme/memory"
)

// A writer refuses by its state what the log would refuse: that a record is at another
// version than If-Match says, or is not there. Its state is the present one only as long as
// it leads: one that was deposed and does not know yet, as after standing still, would refuse
// by a state of the past what holds now.

// confirmed returns what decide says. A refusal that rests on the state counts once the
// leadership was confirmed: then decide is asked again. decide has to do nothing where it
// refuses. Errors: decide's, and unavailable if the leadership cannot be confirmed.
func confirmed[T any](ctx context.Context, w *Writer, decide func() (T, error)) (T, error) {
	got, err := decide()
	if w.opt.Current == nil || !restsOnState(err) {
		return got, err
	}
	if err := w.opt.Current(ctx); err != nil {
		var none T
		if memory.CodeOf(err) == memory.CodeLogDiverged || ctx.Err() != nil {
			return none, err
		}
		e := memory.Errorf(memory.CodeUnavailable, "the leadership of shard %d could not be confirmed, so that nothing is known of the record: %v", w.opt.Shard, err).
			WithHint("nothing was written; send it again").WithCause(err)
		e.RetryAfter = time.Second
		return none, e
	}
	return decide()
}

func restsOnState(err error) bool {
	var refusal *memory.Error
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code {
	case memory.CodeConflict, memory.CodeNotFound, memory.CodeGone:
		return true
	}
	return false
}
