package local

import (
	"fmt"
	"path/filepath"
)

// Error says what is wrong with a model's files, for a person who can put it right.
type Error struct {
	File   string // below the directory; empty for the directory itself
	Detail string
	Hint   string // may be empty
	Err    error  // cause, may be nil
}

// Error returns e.g. `model.safetensors: ends after 812 of 90868376 bytes`.
func (e *Error) Error() string {
	s := e.Detail
	if e.File != "" {
		s = filepath.ToSlash(e.File) + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func wrong(file, format string, args ...any) *Error {
	return &Error{File: file, Detail: fmt.Sprintf(format, args...)}
}
