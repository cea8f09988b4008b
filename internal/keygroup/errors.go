package keygroup

import (
	"errors"

	"mneme/memory"
)

var errClosed = errors.New("the group of keys is closing")

// unavailable says that a command was not proposed.
func unavailable(cause error, format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeUnavailable, format, args...).WithHint("no key was changed; send it again").WithCause(cause)
}

// unknown says that a command may yet be applied.
func unknown(cause error, format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeOutcomeUnknown, format, args...).WithHint("send it again with the same id").WithCause(cause)
}
