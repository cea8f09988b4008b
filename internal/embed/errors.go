package embed

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Kinds of failure. Test with errors.Is; errors.As to *Error gives the rest.
var (
	// ErrUnavailable: the provider could not be reached, is overloaded or failed.
	// The same call may succeed later, not before Error.RetryAfter.
	ErrUnavailable = errors.New("embedding provider unavailable")
	// ErrBadInput: the provider will never embed this text (blank, too long).
	// Error.Index tells which one, if known.
	ErrBadInput = errors.New("text cannot be embedded")
	// ErrAuth: the key is missing, wrong or may not use the model.
	ErrAuth = errors.New("embedding provider refused the credentials")
	// ErrQuota: the account is used up; retrying does not help, a person must act.
	ErrQuota = errors.New("embedding quota exhausted")
	// ErrWrongDimensions: the answer belongs to another space.
	ErrWrongDimensions = errors.New("embedding has wrong dimensions")
	// ErrNoModel: the server does not have the model, or it cannot embed.
	ErrNoModel = errors.New("embedding model not available")
	// ErrBadAnswer: the server answered with something that is no embedding:
	// broken JSON, a wrong count, NaN, a zero vector, too many bytes. Error.Index
	// tells for which text, if known.
	ErrBadAnswer = errors.New("embedding provider gave an invalid answer")
	// ErrConfig: the configuration is wrong.
	ErrConfig = errors.New("invalid embedder configuration")
	// ErrNone: the configuration says that there is no embedder.
	ErrNone = errors.New("no embedder configured")
	// ErrClosed: the embedder was closed.
	ErrClosed = errors.New("embedder is closed")
)

// Error is a failure of a provider or of what was asked of it. It holds no key
// and no text, and reads as one line for people.
type Error struct {
	Kind     error  // one of the kinds above
	Provider string // e.g. "ollama"
	Endpoint string // base address, without credentials; empty for builtin
	Model    string

	Status     int           // HTTP status, 0 if there was no answer
	Detail     string        // what happened
	Hint       string        // what a person can do, may be empty
	RetryAfter time.Duration // with ErrUnavailable: wait at least so long; 0 unknown
	Index      int           // which text of the call, -1 unknown
	Err        error         // cause, may be nil

	retry bool // another attempt may help
	split bool // fewer texts may help, or tell which one is to blame
}

// Error returns e.g. `ollama at http://127.0.0.1:11434: model "x" not found; run: ollama pull x`.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Endpoint != "" {
		b.WriteString(" at " + e.Endpoint)
	}
	if b.Len() == 0 {
		b.WriteString("embed")
	}
	if e.Index >= 0 {
		b.WriteString(": text " + strconv.Itoa(e.Index))
	}
	detail := e.Detail
	if detail == "" && e.Kind != nil {
		detail = e.Kind.Error()
	}
	b.WriteString(": " + detail)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	if e.RetryAfter > 0 {
		b.WriteString(" (retry after " + e.RetryAfter.Round(time.Millisecond).String() + ")")
	}
	return b.String()
}

// Is reports whether the error is of that kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// configError returns an ErrConfig that names the provider.
func configError(provider, detail string) *Error {
	return &Error{Kind: ErrConfig, Provider: provider, Index: -1, Detail: detail}
}
