//go:build unix

package verbs

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach has a program outlive this one, and not hear what is signalled to it. Nor does it keep open what this one was
// given beside its streams: whoever waits for the end of a pipe, or for a lock, would wait for it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	open, _ := os.ReadDir("/dev/fd") // where there is none, they stay as they are
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
