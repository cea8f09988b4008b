package verbs

import (
	"bytes"
	"context"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/peer/devca"
)

// TestCertificatesInTheEnvironmentSwitchNothingOffAtTheDefaultAddress: the client was given its own
// way there, with which it took no certificates, so hooks kept nothing and mcp did not begin.
func TestCertificatesInTheEnvironmentSwitchNothingOffAtTheDefaultAddress(t *testing.T) {
	made := t.TempDir()
	if _, err := devca.Make(devca.Options{Dir: made, Nodes: []string{"agents"}, Use: devca.ForClients}); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"MNEME_TLS_CLIENT_CERT": filepath.Join(made, "agents.crt"), "MNEME_TLS_CLIENT_KEY": filepath.Join(made, "agents.key")}
	for name, env := range map[string]map[string]string{"authority": {"MNEME_TLS_CA": filepath.Join(made, "ca.crt")}, "certificate": own} {
		t.Run(name, func(t *testing.T) {
			n := newFakeNode()
			srv := httptest.NewServer(n.handler())
			defer srv.Close()
			r := newRepository(t)
			r.commit("a.go")
			call := func(input string, args ...string) (int, string) {
				var out, errs bytes.Buffer
				sys := userSystem(t.TempDir(), ".", "", &out, &errs)
				sys.in = strings.NewReader(input)
				sys.workDir = func() (string, error) { return r.dir, nil }
				sys.getenv = func(k string) string { return env[k] }
				sys.again = func([]string) error { return nil }
				sys.connect = func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
				}
				code := run(t.Context(), sys, args)
				return code, out.String() + errs.String()
			}
			kept := func() int {
				n.mu.Lock()
				defer n.mu.Unlock()
				return len(n.namespaces["team-a"].records)
			}
			if code, said := call("", "namespace", "create", "team-a"); code != 0 {
				t.Fatalf("exit %d: %s", code, said)
			}
			if code, said := call(`{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "-n", "team-a"); code != 0 || kept() != 1 {
				t.Errorf("hook: exit %d, %d are kept: %s", code, kept(), said)
			}
			if code, said := call("", "hook", "commits", "-n", "team-a"); code != 0 || kept() != 2 {
				t.Errorf("hook commits: exit %d, %d are kept: %s", code, kept(), said)
			}
			const asked = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
			if code, said := call(asked, "mcp", "-n", "team-a"); code != 0 || !strings.Contains(said, `"serverInfo"`) {
				t.Errorf("mcp: exit %d: %s", code, said)
			}
		})
	}
}
