package raftfsm

import (
	"fmt"
	"runtime/debug"
)

// panicError is a panic that was turned into an error.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// Stack is where it panicked.
func (e *panicError) Stack() []byte { return e.stack }

// guard runs f and turns a panic, or a fault while reading mapped memory, into
// an error. It covers f's own goroutine only.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}
