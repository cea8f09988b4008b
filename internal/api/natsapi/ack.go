package natsapi

import (
	"context"
	"encoding/json"
	"errors"

	"mneme/internal/events"
	"mneme/memory"
)

// ackStream is the stream that acks name. JetStream clients take an answer
// without one for a malformed ack.
const ackStream = "mem"

// pubAck is the answer to a capture that was taken: a JetStream PubAck with
// more fields.
type pubAck struct {
	Stream    string            `json:"stream"`
	Seq       uint64            `json:"seq"` // of the frame; several captures may share it
	Duplicate bool              `json:"duplicate"`
	ID        string            `json:"id"`
	RecordID  string            `json:"record_id"`
	Position  string            `json:"position"`
	Status    memory.ItemStatus `json:"status"`
	Vectors   string            `json:"vectors,omitempty"`
}

func pubAckOf(r memory.CaptureResult) pubAck {
	a := pubAck{Stream: ackStream, Duplicate: r.Status == memory.StatusDuplicate, ID: r.ID,
		RecordID: r.RecordID, Position: r.Position, Status: r.Status, Vectors: r.Vectors}
	if p, err := events.ParsePosition(r.Position); err == nil {
		a.Seq = p.Seq
	}
	return a
}

// pubError is the answer to a refused capture, in the shape of a JetStream API
// error. Problem says the same in Mneme's words.
type pubError struct {
	Error   apiError       `json:"error"`
	Problem memory.Problem `json:"problem"`
}

type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func pubErrorOf(e *memory.Error) pubError {
	p := memory.ProblemOf(e)
	description := p.Detail
	if p.Hint != "" {
		description += " (" + p.Hint + ")"
	}
	return pubError{Problem: p, Error: apiError{Code: p.Status, ErrCode: errCode(e.Code), Description: description}}
}

// errCode numbers codes for JetStream clients, append-only. The range lies
// outside JetStream's own (10000 to 10999), so that no client mistakes one of
// them for, say, a wrong last sequence.
func errCode(c memory.Code) int {
	const base = 19000
	for i, known := range []memory.Code{
		memory.CodeInternal, memory.CodeInvalid, memory.CodeUnauthenticated, memory.CodeForbidden,
		memory.CodeNotFound, memory.CodeConflict, memory.CodeStalePosition, memory.CodeLostPosition,
		memory.CodeGone, memory.CodeTooLarge, memory.CodeQuota, memory.CodeOverloaded,
		memory.CodeUnavailable, memory.CodeLogDiverged, memory.CodeNoSpace, memory.CodeOutcomeUnknown,
		memory.CodeTimeout,
	} {
		if known == c {
			return base + i
		}
	}
	return base
}

// asError gives err one of the public codes.
func asError(err error) *memory.Error {
	var e *memory.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return memory.Errorf(memory.CodeTimeout, "it took too long").WithCause(err)
	case errors.Is(err, context.Canceled):
		return memory.Errorf(memory.CodeUnavailable, "the node is shutting down").WithCause(err)
	}
	return memory.AsError(err)
}

// encode marshals an answer, whose types always encode unless raw JSON inside
// is broken: that is a defect and is answered as one.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(pubErrorOf(memory.Errorf(memory.CodeInternal, "encode answer: %w", err)))
	}
	return b
}
