package verbs

import (
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

// tokenNode answers whoever sends the token, and keeps what was sent last.
func tokenNode(t *testing.T, token string) (addr string, sent *atomic.Value) {
	sent = new(atomic.Value)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		sent.Store(got)
		if got != token {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"type":"about:blank","status":401,"code":"unauthenticated","detail":"this node asks for a token"}`)
			return
		}
		answer := any(memory.Status{})
		if strings.Contains(r.URL.Path, "/namespaces/") {
			answer = memory.Namespace{}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, sent
}

// A token that was remembered with one address went to every other one that memctl was
// pointed at.
func TestRememberedTokenGoesToItsAddressOnly(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "token")
	if err := os.WriteFile(file, []byte("a-token-of-24-characters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, sentOwn := tokenNode(t, "a-token-of-24-characters")
	other, sentOther := tokenNode(t, "another-one")
	env := map[string]string{}
	call := func(args ...string) (code int, said string) {
		var out, errs bytes.Buffer
		sys := plainSystem(&errs)
		sys.out, sys.getenv, sys.now = &out, func(k string) string { return env[k] }, time.Now
		sys.configDir = func() (string, error) { return home, nil }
		sentOwn.Store("nothing")
		sentOther.Store("nothing")
		code = run(t.Context(), sys, args)
		return code, out.String() + errs.String()
	}
	want := func(name string, gotCode, code int, said, says, toOwn, toOther string) {
		t.Helper()
		if gotCode != code || !strings.Contains(said, says) || sentOwn.Load() != toOwn || sentOther.Load() != toOther {
			t.Errorf("%s: exit %d, want %d; sent %q and %q, want %q and %q; said %s", name, gotCode, code, sentOwn.Load(), sentOther.Load(), toOwn, toOther, said)
		}
	}
	const token, remedy = "a-token-of-24-characters", "--token-file FILE or set MNEME_TOKEN"
	code, said := call("use", "--addr", own+"/", "--token-file", file)
	want("remembered", code, 0, said, "", "nothing", "nothing")
	code, said = call("status")
	want("its address", code, 0, said, "", token, "nothing")
	code, said = call("status", "--addr", other)
	want("another address", code, 4, said, remedy, "nothing", "")
	env["MNEME_ADDR"] = other
	code, said = call("status")
	want("another address by the environment", code, 4, said, "was remembered for "+own, "nothing", "")
	env["MNEME_ADDR"] = other + "," + own
	code, said = call("status")
	want("one of two addresses", code, 4, said, remedy, "nothing", "")
	env["MNEME_TOKEN"] = "another-one"
	code, said = call("status")
	want("a token that is given", code, 0, said, "", "nothing", "another-one")
	// It once failed as no header's value, where a Secret was made of a token's file.
	env["MNEME_TOKEN"] = "another-one\n"
	code, said = call("status")
	want("a token that ends in a new line", code, 0, said, "", "nothing", "another-one")
	delete(env, "MNEME_TOKEN")
	code, said = call("status", "--addr", other, "--token-file", file)
	want("a file that is given", code, 4, said, "", "nothing", token)
	for _, bad := range []string{"soon", "-1s", "30"} {
		env["MNEME_CONNECT_TIMEOUT"] = bad
		if code, said := call("status"); code != 2 || !strings.Contains(said, "MNEME_CONNECT_TIMEOUT") || !strings.Contains(said, "30s") {
			t.Errorf("a time of %s: %d, %s", bad, code, said)
		}
	}
	delete(env, "MNEME_CONNECT_TIMEOUT")
	delete(env, "MNEME_ADDR")
	code, said = call("use", "--addr", other)
	want("another address is remembered", code, 0, said, remedy, "nothing", "nothing")
	code, said = call("status")
	want("the address that is remembered now", code, 4, said, remedy, "nothing", "")
	code, said = call("use")
	want("shown", code, 0, said, file+", for "+own+"\n", "nothing", "nothing")
	code, said = call("status", "--addr", own)
	want("back at its address", code, 0, said, "", token, "nothing")

	// What an earlier memctl remembered says no address: it is for the one beside it.
	path := filepath.Join(home, "mneme", "memctl.json")
	b, err := os.ReadFile(path)
	b = bytes.ReplaceAll(b, []byte("token_for"), []byte("unknown"))
	if err = errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	code, said = call("status")
	want("an earlier file", code, 4, said, "", "nothing", token)
	code, said = call("status", "--addr", own)
	want("an earlier file, another address", code, 4, said, remedy, "", "nothing")
}
