//go:build unix

package program

import (
	"fmt"
	"os"
	"syscall"
)

// become runs a program in the place of this process: signals, streams and the exit code are
// its own.
func become(path string, args []string) error {
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
