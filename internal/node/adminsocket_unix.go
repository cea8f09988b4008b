//go:build !windows

package node

import "syscall"

// filePermissions says that the modes of files keep other users out.
const filePermissions = true

// restrictSocket runs before bind: Linux gives the file the mode of the socket.
// Other systems refuse that, and the file gets its mode right after.
func restrictSocket(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
