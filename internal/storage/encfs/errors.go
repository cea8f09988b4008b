package encfs

import (
	"fmt"

	"mneme/internal/storage"
)

// MissingKeyError says that something cannot be read for want of a storage key.
// It is a storage.ErrMissingKey.
type MissingKeyError struct {
	Name  string // the file; empty for a single value
	KeyID uint32
}

func (e *MissingKeyError) Error() string {
	what := e.Name
	if what == "" {
		what = "a sealed value"
	}
	return fmt.Sprintf("%s is encrypted under storage key %d, which this node does not have: put keys/node.secret and keys/storage.keys of the same day back, "+
		"or move shards/ out of the data directory, so that the state is built again from the log", what, e.KeyID)
}

// Is makes the error a storage.ErrMissingKey.
func (e *MissingKeyError) Is(target error) bool { return target == storage.ErrMissingKey }
