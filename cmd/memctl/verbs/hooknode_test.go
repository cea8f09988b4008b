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

// TestADamagedFileLostWhatIsSaid, though the entry names all that stands in it. What waits goes when the file can be
// read.
func TestADamagedFileLostWhatIsSaid(t *testing.T) {
	for _, c := range []struct{ file, named string }{{"memctl.json", "team-a"}, {"memctl.json", ""}, {"hooks.json", "team-a"}} {
		t.Run(c.file+" "+c.named, func(t *testing.T) {
			n := newFakeNode()
			srv := httptest.NewServer(n.handler())
			defer srv.Close()
			dir := t.TempDir()
			call := func(input string, args ...string) (int, string) {
				var out, errs bytes.Buffer
				sys := userSystem(dir, ".", "", &out, &errs)
				sys.in = strings.NewReader(input)
				if c.named != "" {
					args = append(args, "-n", c.named)
				}
				return run(t.Context(), sys, append(args, "--addr", srv.URL)), out.String() + errs.String()
			}
			if code, said := call("", "namespace", "create", "team-a"); code != 0 {
				t.Fatalf("exit %d: %s", code, said)
			}
			path := filepath.Join(dir, "config", "mneme", c.file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
				t.Fatal(err)
			}
			code, said := call(`{"session_id":"s","prompt":"Remember that deploys happen on Tuesdays."}`, "hook", "--agent", "claude-code", "--event", "UserPromptSubmit")
			if spooled, err := filepath.Glob(filepath.Join(dir, "config", "mneme", "hooks", "spool", "*")); code != 0 || len(spooled) != 1 || err != nil || !strings.Contains(said, path) || !strings.Contains(said, "delete it") {
				t.Errorf("exit %d, %q wait, %v: %s", code, spooled, err, said)
			}
			if code, said := call("", "hook", "drain"); code != 2 || !strings.Contains(said, path) || strings.Contains(said, "wait still") {
				t.Errorf("a drain: exit %d: %s", code, said)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if code, said := call("", "hook", "drain"); code != 0 || !strings.Contains(said, "1 capture sent") || len(n.namespaces["team-a"].records) != 1 {
				t.Errorf("a drain that may: exit %d: %s", code, said)
			}
		})
	}
}

// TestADamagedMappingLostWhatIsSaid: where a project's memories go is found out when it can be read.
func TestADamagedMappingLostWhatIsSaid(t *testing.T) {
	for _, moved := range []bool{false, true} {
		u := newProjects(t, "shop", "else")
		u.call("shop", "", "project", "use", "shop", "--create")
		u.call("else", "", "project", "use", "else", "--create")
		at := "shop"
		if moved { // its identity is not that of its place
			at = "moved"
			u.move("shop", at)
			u.has(at, "shop")
		}
		mapping := u.read(u.mapping())
		u.write(u.mapping(), "{")
		u.prompt(at, "Remember that deploys happen on Tuesdays.")
		u.write(u.mapping(), mapping)
		u.call("else", "", "hook", "drain")
		if got := u.stored("shop"); len(got) != 1 || len(u.stored("else")) != 0 {
			t.Errorf("moved %t: stored %q", moved, got)
		}
	}
}
