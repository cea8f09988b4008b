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

// damaged has a hook keep what is said at a place while the mapping cannot be read.
func (u *projectsOfOne) damaged(at, said string) {
	u.t.Helper()
	mapping := u.read(u.mapping())
	u.write(u.mapping(), "{")
	u.prompt(at, said)
	u.write(u.mapping(), mapping)
}

// TestADamagedMappingGaveWhatIsSaidToAnotherProject, which lay once where the remote of a clone by path lies.
func TestADamagedMappingGaveWhatIsSaidToAnotherProject(t *testing.T) {
	u := newProjects(t, "place", "new", "clone")
	u.call("place", "", "project", "use", "former", "--create")
	u.call("new", "", "project", "use", "own", "--create")
	u.move("place", "away")
	u.has("away", "former")
	u.move("new", "place")
	u.has("place", "own")
	u.remote("clone", u.at("place"))
	u.damaged("clone", tuesdays)
	u.call("away", "", "hook", "drain")
	if got := u.stored("own"); len(got) != 1 || len(u.stored("former")) > 0 {
		t.Errorf("stored %q, and of the former project %q", got, u.stored("former"))
	}
}

// TestADamagedMappingGaveWhatIsSaidToWhatLayThere before, where a project with a remote was removed meanwhile.
func TestADamagedMappingGaveWhatIsSaidToWhatLayThere(t *testing.T) {
	u := newProjects(t, "place", "here")
	u.call("place", "", "project", "use", "former", "--create")
	u.move("place", "away")
	u.has("away", "former")
	u.call("here", "", "namespace", "create", "rest")
	u.call("here", "", "use", "rest")
	make := func(at string) {
		u.make(at)
		u.remote(at, "https://github.com/acme/shop")
	}
	make("place")
	u.damaged("place", tuesdays)
	u.must(os.RemoveAll(u.at("place")))
	const hint = "`memctl project use NAMESPACE` in a clone of github.com/acme/shop decides"
	u.waits("here", hint)
	u.make("place") // and another one lies there
	u.remote("place", "https://github.com/acme/moon")
	u.waits("here", hint)
	make("clone")
	u.call("clone", "", "project", "use", "shop", "--create")
	u.call("here", "", "hook", "drain")
	if got := u.stored("shop"); len(got) != 1 || len(u.stored("former"))+len(u.stored("rest")) > 0 {
		t.Errorf("stored %q, and elsewhere %q %q", got, u.stored("former"), u.stored("rest"))
	}
}

// waits has a drain say that what was kept waits, and what decides it.
func (u *projectsOfOne) waits(in, hint string) {
	u.t.Helper()
	var out, errs bytes.Buffer
	code := run(u.t.Context(), userSystem(u.dir, in, u.addr, &out, &errs), []string{"hook", "drain"})
	if said := errs.String(); code != 5 || !strings.Contains(said, " wait still: it is not decided where memories of ") || !strings.Contains(said, "hint: "+hint) {
		u.t.Errorf("exit %d: %s", code, said)
	}
}

// TestADamagedMappingGaveWhatIsSaidToNoProject, where the project was moved before the mapping could be read.
func TestADamagedMappingGaveWhatIsSaidToNoProject(t *testing.T) {
	u := newProjects(t, "shop", "here")
	u.call("here", "", "namespace", "create", "rest")
	u.call("here", "", "use", "rest")
	u.call("shop", "", "project", "use", "shop", "--create")
	u.damaged("shop", tuesdays)
	u.must(os.MkdirAll(u.at("shop/sub"), 0o755))
	u.damaged("shop/sub", "Remember that invoices are sent on Fridays.")
	u.move("shop", "moved")
	for range 2 {
		u.waits("here", "it is sent once the project lies in "+u.at("shop")+" again")
		u.must(os.MkdirAll(u.at("shop"), 0o755)) // a folder that is none
	}
	u.must(os.RemoveAll(u.at("shop")))
	u.move("moved", "shop")
	u.call("here", "", "hook", "drain")
	if got := u.stored("shop"); len(got) != 2 || len(u.stored("rest")) > 0 {
		t.Errorf("stored %q, and elsewhere %q", got, u.stored("rest"))
	}
}
