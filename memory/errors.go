package memory

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Code says what kind of thing went wrong. Codes are part of the public
// contract: they appear in problem documents, NATS answers and exit codes.
type Code string

// The codes, with their meaning for the caller.
const (
	CodeInvalid         Code = "invalid"         // the request itself is wrong; sending it again will not help
	CodeUnauthenticated Code = "unauthenticated" // no or a wrong credential
	CodeForbidden       Code = "forbidden"       // known, but not allowed
	CodeNotFound        Code = "not_found"       // there is no such thing, or it was forgotten
	CodeConflict        Code = "conflict"        // it contradicts what is there
	CodeStalePosition   Code = "stale_position"  // the node has not reached the position asked for
	CodeLostPosition    Code = "lost_position"   // the position belongs to a part of the log that was lost
	CodeGone            Code = "gone"            // it was erased
	CodeTooLarge        Code = "too_large"       // above a limit
	CodeQuota           Code = "quota"           // above what this caller may use
	CodeOverloaded      Code = "overloaded"      // too much at once; try again later
	CodeUnavailable     Code = "unavailable"     // not now; try again later
	CodeLogDiverged     Code = "log_diverged"    // log and state disagree; writes are stopped
	CodeNoSpace         Code = "no_space"        // the disk is full
	CodeOutcomeUnknown  Code = "outcome_unknown" // the write may or may not have happened; retry with the same id
	CodeTimeout         Code = "timeout"         // the deadline passed
	CodeInternal        Code = "internal"        // a defect in Mneme
)

type codeInfo struct {
	status int
	exit   int
	title  string
}

// codeTable is the one place where codes meet HTTP statuses and exit codes.
var codeTable = map[Code]codeInfo{
	CodeInvalid:         {http.StatusBadRequest, 2, "Invalid request"},
	CodeUnauthenticated: {http.StatusUnauthorized, 4, "Not authenticated"},
	CodeForbidden:       {http.StatusForbidden, 4, "Not allowed"},
	CodeNotFound:        {http.StatusNotFound, 3, "Not found"},
	CodeConflict:        {http.StatusConflict, 5, "Conflict"},
	CodeStalePosition:   {http.StatusConflict, 6, "Position not reached yet"},
	CodeLostPosition:    {http.StatusConflict, 5, "Position lost"},
	CodeGone:            {http.StatusGone, 3, "Gone"},
	CodeTooLarge:        {http.StatusRequestEntityTooLarge, 2, "Too large"},
	CodeQuota:           {http.StatusTooManyRequests, 4, "Quota exceeded"},
	CodeOverloaded:      {http.StatusTooManyRequests, 6, "Overloaded"},
	CodeUnavailable:     {http.StatusServiceUnavailable, 6, "Unavailable"},
	CodeLogDiverged:     {http.StatusServiceUnavailable, 7, "Log and state disagree"},
	CodeNoSpace:         {http.StatusInsufficientStorage, 6, "No space left"},
	CodeOutcomeUnknown:  {http.StatusGatewayTimeout, 6, "Outcome unknown"},
	CodeTimeout:         {http.StatusGatewayTimeout, 6, "Timed out"},
	CodeInternal:        {http.StatusInternalServerError, 1, "Internal error"},
}

// Codes lists every code once, in no particular order.
func Codes() []Code {
	out := make([]Code, 0, len(codeTable))
	for c := range codeTable {
		out = append(out, c)
	}
	return out
}

func (c Code) info() codeInfo {
	if i, ok := codeTable[c]; ok {
		return i
	}
	return codeTable[CodeInternal]
}

// HTTPStatus is the status a problem with this code is answered with.
func (c Code) HTTPStatus() int { return c.info().status }

// ExitCode is the exit code of a command that failed with this code.
func (c Code) ExitCode() int { return c.info().exit }

// Title is a short human name of the code.
func (c Code) Title() string { return c.info().title }

// Transient reports whether a refusal with this code says nothing about the request itself:
// the same one may be taken later.
func (c Code) Transient() bool {
	switch c {
	case CodeUnavailable, CodeOverloaded, CodeTimeout, CodeOutcomeUnknown, CodeNoSpace, CodeLogDiverged:
		return true
	}
	return false
}

// Error is an error for people: what happened, to what, and what to do next.
// Message never holds secrets or stack traces.
type Error struct {
	Code       Code
	Message    string        // what happened, to what
	Hint       string        // what to do; may be empty
	RetryAfter time.Duration // for overloaded and unavailable: when to try again; 0 = unsaid
	cause      error
}

// Errorf makes an Error. A %w operand becomes its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// NoNamespace is the error for a namespace that does not exist. Reads and
// writes both answer with it.
func NoNamespace(name string) *Error {
	return Errorf(CodeNotFound, "there is no namespace %q", clip(name, 120)).
		WithHint("create it: memctl namespace create %s", clip(name, 120))
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithCause records the error underneath for errors.Is and errors.As.
func (e *Error) WithCause(err error) *Error {
	e.cause = err
	return e
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an *Error with the same code and no message, so
// that errors.Is(err, &memory.Error{Code: memory.CodeNotFound}) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// CodeOf returns the code of the first *Error in err's chain, CodeInternal for
// other errors and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// AsError returns the first *Error in err's chain, or wraps err as internal.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: err.Error(), cause: err}
}

// Problem is an RFC 9457 problem document with Mneme's code and hint.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   Code   `json:"code"`
	Hint   string `json:"hint,omitempty"`
}

// ProblemOf turns an error into the document that is sent to a client. The
// details of internal errors stay on the server.
func ProblemOf(err error) Problem {
	e := AsError(err)
	p := Problem{
		Type:   "about:blank",
		Title:  e.Code.Title(),
		Status: e.Code.HTTPStatus(),
		Detail: e.Message,
		Code:   e.Code,
		Hint:   e.Hint,
	}
	if e.Code == CodeInternal {
		p.Detail = "an internal error; the node's log has the details"
	}
	return p
}

// Err turns a received problem back into an error.
func (p Problem) Err() *Error {
	msg := p.Detail
	if msg == "" {
		msg = p.Title
	}
	code := p.Code
	if _, ok := codeTable[code]; !ok {
		code = CodeInternal
	}
	return &Error{Code: code, Message: msg, Hint: p.Hint}
}
