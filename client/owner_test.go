//go:build unix

package client

import (
	"context"
	"io/fs"
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

// TestNamedSocketOfAnotherUserGotTheToken: a socket as an address was dialled whoever had made
// it, and was sent the token.
func TestNamedSocketOfAnotherUserGotTheToken(t *testing.T) {
	l, socket := adminSocket(t)
	var asked string
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		nodeAt(socket, "c1", "n1").ServeHTTP(w, r)
	}))
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	c, err := New("unix://"+socket, Options{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Status(t.Context()); err != nil || asked != "" {
		t.Errorf("%v, and it got %q", err, asked)
	}
	if err := os.Chmod(filepath.Dir(socket), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := New("unix://"+socket, Options{}); memory.CodeOf(err) != memory.CodeForbidden {
		t.Errorf("in a folder of everybody: %v", err)
	}
	if _, err := New("unix://"+socket+"-not-yet/admin.sock", Options{}); err != nil {
		t.Errorf("where nobody answers yet: %v", err)
	}
}
