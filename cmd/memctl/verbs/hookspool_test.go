package verbs

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAHookWithoutASpoolKeptNothing: with a folder or a key that cannot be read what is said goes to the
// node directly, and where that is away, too, it is said not to be kept.
func TestAHookWithoutASpoolKeptNothing(t *testing.T) {
	for name, spoil := range map[string]func(hooks string) error{
		"no folder": func(hooks string) error { return os.WriteFile(hooks, nil, 0o600) },
		"no key":    func(hooks string) error { return os.MkdirAll(filepath.Join(hooks, "key"), 0o700) },
		"another key": func(hooks string) error {
			return errors.Join(os.MkdirAll(hooks, 0o700), os.WriteFile(filepath.Join(hooks, "key"), []byte("x"), 0o600))
		},
		"no spool": func(hooks string) error {
			return errors.Join(os.MkdirAll(hooks, 0o700), os.WriteFile(filepath.Join(hooks, "spool"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode()
			server := httptest.NewServer(n.handler())
			defer server.Close()
			dir := t.TempDir()
			call := func(addr, input string, args ...string) string {
				t.Helper()
				var out, errs bytes.Buffer
				sys := userSystem(dir, ".", addr, &out, &errs)
				sys.in = strings.NewReader(input)
				if code := run(t.Context(), sys, args); code != 0 {
					t.Fatalf("%v: exit %d: %s", args, code, errs.String())
				}
				return out.String() + errs.String()
			}
			hook := func(addr, said string) string {
				t.Helper()
				return call(addr, `{"session_id":"`+said+`","prompt":"`+said+`"}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "shop")
			}
			call(server.URL, "", "namespace", "create", "shop")
			hooks := filepath.Join(dir, "config", "mneme", "hooks")
			if err := errors.Join(os.MkdirAll(filepath.Dir(hooks), 0o700), spoil(hooks)); err != nil {
				t.Fatal(err)
			}
			said := hook(server.URL, "Remember that deploys happen on Tuesdays.")
			if kept := n.namespaces["shop"].records; len(kept) != 1 || !strings.Contains(said, "1 capture could not be spooled and went to the node at "+server.URL+" directly: ") {
				t.Errorf("%d are kept: %s", len(kept), said)
			}
			if said := hook(server.URL, "deploys happen on"); !strings.Contains(said, "relevant-memories") {
				t.Errorf("nothing is recalled: %s", said)
			}
			if said := hook("127.0.0.1:1", "Remember that releases happen on Fridays."); !strings.Contains(said, "not kept: 1 capture, neither spooled (") || !strings.Contains(said, "nor taken by the node: ") {
				t.Errorf("what is lost is not said: %s", said)
			}
		})
	}
}
