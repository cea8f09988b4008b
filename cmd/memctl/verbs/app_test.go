package verbs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/memory"
)

// Ten megabytes were said to be 262146 bytes: what had been read of them.
func TestTextFromStandardInputIsBounded(t *testing.T) {
	read := func(n int) (string, error) {
		a := &app{in: bufio.NewReader(strings.NewReader(strings.Repeat("a", n) + "\n"))}
		return a.textArg([]string{"-"})
	}
	if text, err := read(memory.MaxTextBytes); err != nil || len(text) != memory.MaxTextBytes {
		t.Errorf("the longest text: %d bytes, %v", len(text), err)
	}
	for _, n := range []int{memory.MaxTextBytes + 1, 10 << 20} {
		_, err := read(n)
		if memory.CodeOf(err) != memory.CodeTooLarge || !strings.Contains(err.Error(), "more than 262144 bytes") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// A refusal for want of a token names the file in which a node of this machine keeps it,
// and nothing sends what is in the file without being told to.
func TestRefusalNamesTheTokenOfThisMachine(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".mneme", "keys", "operator.token")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("a-token-of-24-characters\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var given atomic.Value
	given.Store("")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"type":"about:blank","status":401,"code":"unauthenticated","detail":"this node asks for a token","hint":"send it"}`)
			return
		}
		given.Store(r.Header.Get("Authorization"))
		_ = json.NewEncoder(w).Encode(memory.Status{})
	}))
	defer srv.Close()
	var errOut bytes.Buffer
	sys := system{in: strings.NewReader(""), out: io.Discard, err: &errOut, getenv: func(string) string { return "" }, isTerminal: func(any) bool { return false },
		width: func() int { return 80 }, now: time.Now, configDir: func() (string, error) { return home, nil }, home: func() (string, error) { return home, nil },
		userName: func() string { return "me" }, http: srv.Client()}
	if code := run(t.Context(), sys, []string{"status", "--addr", srv.URL}); code != 4 || !strings.Contains(errOut.String(), "--token-file "+file) || given.Load() != "" {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}
