package events

import "errors"

var (
	// ErrMalformed is wrapped by every decoder when bytes do not follow the format.
	ErrMalformed = errors.New("malformed")
	// ErrNewer is wrapped when bytes carry a version this program does not know.
	// A node that meets it refuses to start rather than guess.
	ErrNewer = errors.New("written by a newer version of Mneme")
)
