//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// replaceProcess runs this program anew in the place of this process, with its arguments and
// environment: what it holds open, locks among it, is let go in one step. On Linux it is the
// program that runs, whatever lies at its path by now.
func replaceProcess() error {
	program := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		var err error
		if program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	return fmt.Errorf("run %s anew: %w", program, syscall.Exec(program, os.Args, os.Environ()))
}
