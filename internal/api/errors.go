package api

import (
	"context"
	"errors"

	"mneme/memory"
)

// CutShort is the error of a write that ended with its context and so may have
// happened: err itself where it says more, or is another.
func CutShort(err error) error {
	var e *memory.Error
	if errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return memory.Errorf(memory.CodeOutcomeUnknown, "the write was cut short, it may or may not have happened").
		WithCause(err).WithHint("a capture may be sent again with the same id; look at the record before changing it again")
}
