//go:build unix

package verbs

import (
	"os/exec"
	"syscall"
)

// detach has a program outlive this one, and not hear what is signalled to it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
