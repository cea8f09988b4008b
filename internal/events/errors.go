package events

import "errors"

var (
	// ErrMalformed is wrapped by every decoder when bytes do not follow the format.
	ErrMalformed = errors.New("malformed")
	// ErrNewer is wrapped when bytes carry a version this program does not know.
	// A node that meets it refuses to start rather than guess.
	ErrNewer = errors.New("written by a newer version of Mneme")
	// ErrOlder is wrapped when bytes are of a format from before the first
	// release. It is refused like a newer one, never taken for damage.
	ErrOlder = errors.New("written by an early version of Mneme, whose formats are not read any more")
)

// IsForeign reports whether err says that bytes are of a format that this
// program must not interpret: it stops there, where it would quarantine damage.
func IsForeign(err error) bool { return errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) }
