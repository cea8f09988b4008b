package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// A writer answers by its state what the log would answer: that a record is at another
// version than If-Match says, that a name is taken, that an id was used. Its state is the
// present one only as long as it leads: one that was deposed and does not know yet, as after
// standing still, would tell of the past. So such an answer is told once the leadership was
// confirmed after the state was read. Admission asks in Confirmed, and what the sequencer
// decided is told by answers; nothing else looks at a draft's result.

// ErrUnconfirmed is underneath where an answer that rests on the state is not told, since the
// leadership could not be confirmed. Nothing was written.
var ErrUnconfirmed = errors.New("the leadership could not be confirmed")

// Confirmed returns what decide says, which reads the state and does nothing where it
// refuses. A refusal that may rest on the state counts once the leadership was confirmed: then
// decide is asked again, and is told that it can be sure. Errors: decide's, ErrUnconfirmed.
func Confirmed[T any](ctx context.Context, w *Writer, decide func(sure bool) (T, error)) (T, error) {
	got, err := decide(w.opt.Current == nil)
	if w.opt.Current == nil || !restsOnState(err) {
		return got, err
	}
	if err := confirm(ctx, w); err != nil {
		var none T
		return none, err
	}
	return decide(true)
}

// restsOnState reports whether an error may tell something of the state: all do but those
// that only say that there is no answer now.
func restsOnState(err error) bool {
	if err == nil {
		return false
	}
	switch memory.CodeOf(err) {
	case memory.CodeUnavailable, memory.CodeOverloaded, memory.CodeNoSpace, memory.CodeLogDiverged,
		memory.CodeTimeout, memory.CodeOutcomeUnknown, memory.CodeInternal:
		return false
	}
	return true
}

// confirm returns nil if this writer leads, and its state holds all that was accepted, at
// some moment after the call. Errors: ErrUnconfirmed; they say that nothing was written.
func confirm(ctx context.Context, w *Writer) error {
	if w.opt.Current == nil {
		return nil
	}
	err := w.opt.Current(ctx)
	if err == nil {
		return nil
	}
	cause := fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	if memory.CodeOf(err) == memory.CodeLogDiverged {
		return memory.Errorf(memory.CodeLogDiverged, "%v", err).WithHint("%s", memory.AsError(err).Hint).WithCause(cause)
	}
	code := memory.CodeUnavailable
	if ctx.Err() != nil {
		code = memory.CodeTimeout
	}
	e := memory.Errorf(code, "the leadership of shard %d could not be confirmed, so that nothing can be told for certain: %v", w.opt.Shard, err).
		WithHint("nothing was written; send it again").WithCause(cause)
	e.RetryAfter = time.Second
	return e
}

// answer is what became of a draft.
type answer struct {
	result projections.EventResult
	err    error
}

// answers waits until each draft has come as far as asked; a nil one has no answer. For what
// the state alone decided it asks once for all.
func answers(ctx context.Context, w *Writer, level memory.Wait, drafts ...*draft) []answer {
	out := make([]answer, len(drafts))
	var byState []int
	for i, d := range drafts {
		if d == nil {
			continue
		}
		out[i].err = d.wait(ctx, level)
		if !isDone(d.done) {
			continue
		}
		out[i].result = d.result
		if d.byState {
			byState = append(byState, i)
		}
	}
	if len(byState) == 0 {
		return out
	}
	if err := confirm(ctx, w); err != nil {
		for _, i := range byState {
			out[i] = answer{err: err}
		}
	}
	return out
}

// unconfirmed returns why nothing of a request can be told: its drafts were decided by the
// state alone, and the leadership was not confirmed. Nothing of it was written.
func unconfirmed(drafts []*draft, told []answer) error {
	var why error
	for i, d := range drafts {
		if d == nil {
			continue
		}
		if why = told[i].err; !errors.Is(why, ErrUnconfirmed) {
			return nil
		}
	}
	return why
}

// fillResult turns a draft's outcome into the item's public result.
func fillResult(r *memory.CaptureResult, d *draft, wait memory.Wait, told answer) events.Position {
	if told.err != nil {
		fail(r, memory.AsError(told.err))
		return events.Position{}
	}
	if wait == memory.WaitAccepted && d.inLog {
		r.Status, r.RecordID, r.Position = memory.StatusCreated, d.header.Record.String(), d.at.String()
		return d.at
	}
	res := told.result
	if res.Record != (events.ID{}) {
		r.RecordID = res.Record.String()
	}
	at := res.Position
	if !at.IsZero() {
		r.Position = at.String()
	}
	switch res.Outcome {
	case projections.OutcomeCreated:
		r.Status = memory.StatusCreated
	case projections.OutcomeDuplicate:
		r.Status = memory.StatusDuplicate
	case projections.OutcomeConflict:
		fail(r, conflictError(d, res))
		r.Status = memory.StatusConflict
	case projections.OutcomeErased:
		fail(r, memory.Errorf(memory.CodeGone, "whom the memory is about was erased meanwhile"))
	case projections.OutcomeQuarantined:
		fail(r, memory.Errorf(memory.CodeInvalid, "the memory is kept in the log, but cannot be indexed").
			WithHint("report the text as a bug; audit shows the event as quarantined"))
	default:
		fail(r, memory.Errorf(memory.CodeNotFound, "the namespace was deleted meanwhile"))
	}
	return at
}

// conflictError says what a capture contradicts: its id or its uri.
func conflictError(d *draft, res projections.EventResult) *memory.Error {
	if !res.Position.IsZero() && !d.header.ClientID.IsZero() && res.Record == (events.ID{}) {
		return memory.Errorf(memory.CodeConflict, "id %q was used for a change of the graph", d.content.ClientID).WithHint("use a new id")
	}
	if !res.Position.IsZero() && !d.header.ClientID.IsZero() {
		return memory.Errorf(memory.CodeConflict, "id %q was used for another memory: %s", d.content.ClientID, res.Record).
			WithHint("use a new id, or revise %s", res.Record)
	}
	return memory.Errorf(memory.CodeConflict, "uri %q names a living memory already: %s", d.content.URI, res.Record).
		WithHint("memctl revise %s", res.Record)
}

func fail(r *memory.CaptureResult, err *memory.Error) {
	r.Status = memory.StatusRejected
	r.Error = &memory.ItemError{Code: err.Code, Detail: err.Message, Hint: err.Hint}
	if err.Code == memory.CodeInternal {
		r.Error.Detail = memory.ProblemOf(err).Detail
	}
}
