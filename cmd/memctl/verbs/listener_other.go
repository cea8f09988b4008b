//go:build !linux

package verbs

import "errors"

// readListeners cannot tell who listens.
func readListeners() ([]listener, error) { return nil, errors.ErrUnsupported }
