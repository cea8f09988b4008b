//go:build unix

package client

import (
	"context"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mneme/memory"
)

// TestSocketOfAnotherUserWasTrusted: whoever answered at the address could name a
// socket of their own, and got the operator's verbs.
func TestSocketOfAnotherUserWasTrusted(t *testing.T) {
	l, socket := adminSocket(t)
	defer l.Close()
	dir := filepath.Dir(socket)
	user := os.Geteuid()
	if user == 0 { // root's sockets are everybody's
		user = 4242
		if err := os.Chown(socket, user, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkOwner(socket, user); err != nil {
		t.Errorf("the user's own: %v", err)
	}
	if err := checkOwner(socket, user+1); memory.CodeOf(err) != memory.CodeForbidden || memory.AsError(err).Hint == "" {
		t.Errorf("another user's: %v", err)
	}
	srv := httptest.NewServer(nodeAt(socket, "c1", "n1"))
	defer srv.Close()
	c, err := New(srv.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for mode, refused := range map[os.FileMode]bool{0o755: false, 0o777 | fs.ModeSticky: false, 0o777: true, 0o720: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := checkOwner(socket, user); (memory.CodeOf(err) == memory.CodeForbidden) != refused {
			t.Errorf("in a folder of mode %v: %v", mode, err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // nobody answers at the socket
	defer cancel()
	if _, err := c.Operator(ctx); memory.CodeOf(err) != memory.CodeForbidden {
		t.Errorf("Operator: %v", err)
	}
}
