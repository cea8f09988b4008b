package verbs

import "io"

// polled gives standard input as it is.
func polled(in io.Reader, _ ...any) (r io.Reader, done func()) { return in, func() {} }
