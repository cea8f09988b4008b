//go:build unix

package client

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
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
	dir, err := os.MkdirTemp("", "s") // the address of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "admin.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
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
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(memory.Status{Auth: "off", AdminSocket: socket})
	}))
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
