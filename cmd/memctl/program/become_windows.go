package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// become runs a program and waits for it. The console gives both of them the signals.
func become(path string, args []string) error {
	cmd := exec.Command(path, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return Ended{cmd.ProcessState.ExitCode()}
}
