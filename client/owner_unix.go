//go:build unix

package client

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"mneme/memory"
)

// checkNamed is checkOwner for a socket that the user named. It need not be there yet, and its
// folder may be the root of a volume that was given to this process by its group, as
// Kubernetes does.
func checkNamed(socket string) error {
	info, err := os.Stat(filepath.Dir(socket))
	if err != nil {
		return nil // nobody answers there
	}
	of := info.Sys().(*syscall.Stat_t)
	if volume := of.Uid == 0 && os.Geteuid() != 0 && int(of.Gid) == os.Getegid() && info.Mode().Perm()&0o002 == 0; volume {
		return nil
	}
	if err := checkOwner(socket, os.Geteuid()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkOwner refuses a socket that is neither the user's nor root's, or that
// somebody else may put another in the place of. Whoever answers at an address may
// name any socket.
func checkOwner(socket string, user int) error {
	dir := filepath.Dir(socket)
	for _, path := range []string{socket, dir} {
		info, err := os.Stat(path)
		if err != nil {
			return memory.Errorf(memory.CodeForbidden, "the admin socket: %w", err).WithCause(err)
		}
		if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != user && owner != 0 {
			return memory.Errorf(memory.CodeForbidden, "%s, which the node names as its admin socket or as the folder of it, belongs to user %d and not to you", path, owner).
				WithHint("if that user runs the node, run memctl as that one: sudo -u '#%d' memctl", owner)
		}
		if path == dir && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return memory.Errorf(memory.CodeForbidden, "others may write to %s, where the node has its admin socket", dir).
				WithHint("chmod 700 %s", dir)
		}
	}
	return nil
}
