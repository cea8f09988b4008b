//go:build unix

package client

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"mneme/memory"
)

// checkOwner refuses a socket that is neither the user's nor root's, or that
// somebody else may put another in the place of. Whoever answers at an address may
// name any socket.
func checkOwner(socket string, user int) error {
	dir := filepath.Dir(socket)
	for _, path := range []string{socket, dir} {
		info, err := os.Stat(path)
		if err != nil {
			return memory.Errorf(memory.CodeForbidden, "the admin socket: %w", err)
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
