package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"mneme/internal/auth"
)

// The admin socket is how the operator talks to a node without a token: whoever
// may open the file (mode 0600, in a directory of mode 0700) is the user who
// runs the node.
//
// maxSocketPath is what the address of a Unix socket may hold on every system
// that we run on: macOS has 104 bytes with the closing zero.
const maxSocketPath = 103

// socketDialTimeout bounds how long a start waits for somebody at the socket.
const socketDialTimeout = time.Second

// openAdminSocket makes the admin socket. A path that is too long is
// an error if the operator chose it, and otherwise only means that there is no
// socket: the node says so in doctor, and in the log.
func (n *Node) openAdminSocket() error {
	path, chosen := n.cfg.AdminSocket, true
	if path == "" {
		path, chosen = filepath.Join(n.dir.path, "admin.sock"), false
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return usage(fmt.Sprintf("admin socket %q: %v", n.cfg.AdminSocket, err), "")
	}
	if len(path) > maxSocketPath {
		n.front.trouble = fmt.Sprintf("the path %s has %d bytes, a socket may have %d", path, len(path), maxSocketPath)
		if chosen {
			return usage("admin socket: "+n.front.trouble, "choose a shorter --admin-socket")
		}
		n.cfg.Logger.Warn("there is no admin socket", "why", n.front.trouble, "hint", socketHint)
		return nil
	}
	if err := clearSocket(path); err != nil {
		return err
	}
	l, err := listenSocket(path)
	if errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Sprintf("admin socket: there is no folder %s", filepath.Dir(path)), "make it, or set another --admin-socket")
	}
	if err != nil {
		return startError("admin socket", err)
	}
	n.front.admin, n.front.socket = l, path
	n.onClose("admin socket", func(context.Context) error { // which removes the file
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

// serveAdminSocket serves handler on the admin socket, if there is one.
func (n *Node) serveAdminSocket(handler http.Handler) {
	l := n.front.admin
	if l == nil {
		return
	}
	server := n.newServer(handler)
	server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return auth.Local(ctx) }
	n.wg.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			n.end(err)
		}
	})
	n.onClose("answers at the admin socket", server.stop)
}

const socketHint = "choose a shorter --data-dir or set --admin-socket, or start with --auth token and use the operator token"

// clearSocket removes what a killed node left at path. It refuses to remove
// anything else, and a socket at which somebody answers.
func clearSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return startError("admin socket", err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return usage(fmt.Sprintf("%s is not a socket", path), "move it away, or set another --admin-socket")
	}
	if c, err := net.DialTimeout("unix", path, socketDialTimeout); err == nil {
		_ = c.Close()
		return &StartError{Kind: StartInUse, Message: fmt.Sprintf("another program answers at the admin socket %s", path), Hint: "stop it, or set another --admin-socket"}
	}
	if err := os.Remove(path); err != nil {
		return startError("admin socket", err)
	}
	return nil
}

// listenSocket makes the socket with mode 0600 from its first moment on where
// the system allows that, and in any case before it is told to anybody.
func listenSocket(path string) (net.Listener, error) {
	lc := net.ListenConfig{Control: restrictSocket}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
