package verbs

import (
	"errors"
	"io/fs"
	"os"
)

// readListeners tells who listens in this network.
func readListeners() ([]listener, error) {
	var all []listener
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) && len(all) > 0 {
			continue // there is no IPv6
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // as on Android
			return nil, errors.ErrUnsupported
		}
		if err != nil {
			return nil, err
		}
		some, err := parseListeners(f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
