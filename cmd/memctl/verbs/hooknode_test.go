package verbs

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsSaidIsKeptWhereTheOptionsOfAnEntryCannotBeRead: it was gone, with exit code 0 and nothing
// in the spool.
func TestWhatIsSaidIsKeptWhereTheOptionsOfAnEntryCannotBeRead(t *testing.T) {
	for _, option := range []string{"--token-file", "--tls-ca", "--tls-cert"} {
		n := newFakeNode()
		srv := httptest.NewServer(n.handler())
		defer srv.Close()
		dir := t.TempDir()
		call := func(input string, args ...string) (int, string) {
			var out, errs bytes.Buffer
			sys := userSystem(dir, ".", srv.URL, &out, &errs)
			sys.in = strings.NewReader(input)
			return run(t.Context(), sys, args), out.String() + errs.String()
		}
		if code, said := call("", "namespace", "create", "team-a"); code != 0 {
			t.Fatalf("exit %d: %s", code, said)
		}
		missing := filepath.Join(dir, "nope")
		code, said := call(`{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "team-a", option, missing)
		if spooled, err := filepath.Glob(filepath.Join(dir, "config", "mneme", "hooks", "spool", "*")); code != 0 || len(spooled) != 1 || err != nil {
			t.Errorf("%s: exit %d, %q wait, %v: %s", option, code, spooled, err, said)
		}
		if !strings.Contains(said, "the node cannot be asked: ") || option != "--tls-cert" && !strings.Contains(said, missing) {
			t.Errorf("%s: %s", option, said)
		}
		if code, said := call("", "hook", "drain", option, missing); code != 2 || strings.Contains(said, "wait still") {
			t.Errorf("%s, a drain: exit %d: %s", option, code, said)
		}
		if code, said := call("", "hook", "drain"); code != 0 || !strings.Contains(said, "1 capture sent") || len(n.namespaces["team-a"].records) != 1 {
			t.Errorf("%s, a drain that may: exit %d: %s", option, code, said)
		}
	}
}
