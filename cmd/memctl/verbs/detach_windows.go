package verbs

import (
	"os/exec"
	"syscall"
)

// detach has a program outlive this one, and not hear what is signalled to it.
func detach(cmd *exec.Cmd) {
	const detachedProcess = 0x8
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess, HideWindow: true}
}
