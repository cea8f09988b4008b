package views

import (
	"context"
	"errors"
	"fmt"

	"mneme/memory"
)

// Stopping is the error of a read that the end of the node interrupts.
func Stopping() error {
	return memory.Errorf(memory.CodeUnavailable, "the node is shutting down")
}

// Failed gives an error of a read its public form: cancelled and late requests
// are timeouts, typed errors stay, the rest is internal.
func Failed(op string, err error) error {
	var typed *memory.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return memory.Errorf(memory.CodeTimeout, "%s was not finished in time", op).WithCause(err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// Clip shortens what a caller sent, for an error message.
func Clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}
