package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mneme/internal/project"
	"mneme/memory"
)

// userSystem is the world of one user, whose projects are folders of dir.
func userSystem(dir, name, addr string, out, errs *bytes.Buffer) system {
	sys := plainSystem(errs)
	sys.in, sys.out = strings.NewReader(""), out
	sys.configDir = func() (string, error) { return filepath.Join(dir, "config"), nil }
	sys.home = func() (string, error) { return filepath.Join(dir, "home"), nil }
	sys.workDir = func() (string, error) { return filepath.Join(dir, name), nil }
	sys.getenv = func(k string) string { return map[string]string{"MNEME_ADDR": addr}[k] }
	return sys
}

// makeRepository makes what Git takes for one.
func makeRepository(dir, remote string) error {
	git := filepath.Join(dir, ".git")
	return errors.Join(os.MkdirAll(filepath.Join(git, "objects"), 0o755), os.MkdirAll(filepath.Join(git, "refs"), 0o755),
		os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
		os.WriteFile(filepath.Join(git, "config"), []byte("[remote \"origin\"]\n\turl = "+remote+"\n"), 0o644))
}

// TestWhatManyChooseAtOnceIsKept: no call takes away what another one kept.
func TestWhatManyChooseAtOnceIsKept(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(memory.Namespace{Name: "ns"})
	}))
	defer srv.Close()
	for _, verb := range []string{"integrate claude-code", "integrate git", "project use shop"} {
		dir := t.TempDir()
		var all sync.WaitGroup
		for i := range 12 {
			name := fmt.Sprintf("p%d", i)
			if err := makeRepository(filepath.Join(dir, name), "https://github.com/acme/"+name); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				var out, errs bytes.Buffer
				if code := run(t.Context(), userSystem(dir, name, srv.URL, &out, &errs), strings.Fields(verb)); code != 0 {
					t.Errorf("%s in %s ends with %d: %s", verb, name, code, errs.String())
				}
			})
		}
		all.Wait()
		m, err := project.ReadMapping(filepath.Join(dir, "config", "mneme", "projects.json"))
		if err != nil || len(m.Projects) != 12 {
			t.Errorf("%s: %d of 12 are kept, %v", verb, len(m.Projects), err)
		}
	}
}

// TestAListNamesTheSameFileEachTime: that of the project, where both cannot be read.
func TestAListNamesTheSameFileEachTime(t *testing.T) {
	dir := t.TempDir()
	if err := makeRepository(filepath.Join(dir, "p"), "https://github.com/acme/p"); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"p", "home"} {
		settings := filepath.Join(dir, in, ".claude", "settings.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(settings), 0o755), os.WriteFile(settings, []byte("{"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		var out, errs bytes.Buffer
		if code := run(t.Context(), userSystem(dir, "p", "", &out, &errs), []string{"integrate", "--list", "--json"}); code != 0 || !strings.Contains(out.String(), filepath.Join("p", ".claude")) || strings.Contains(out.String(), filepath.Join("home", ".claude")) {
			t.Fatalf("exit %d: %s %s", code, out.String(), errs.String())
		}
	}
}

// TestAnotherCloneIsTold: once, to who works there, and `memctl project` knows it.
func TestAnotherCloneIsTold(t *testing.T) {
	n := newFakeNode()
	srv := httptest.NewServer(n.handler())
	defer srv.Close()
	dir := t.TempDir()
	for _, name := range []string{"first", "second", "third", "fourth"} {
		if err := makeRepository(filepath.Join(dir, name), "https://github.com/acme/shop"); err != nil {
			t.Fatal(err)
		}
	}
	call := func(in, input string, args ...string) (said, noted string) {
		t.Helper()
		var out, errs bytes.Buffer
		sys := userSystem(dir, in, srv.URL, &out, &errs)
		sys.in = strings.NewReader(input)
		if code := run(t.Context(), sys, args); code != 0 {
			t.Fatalf("%v in %s ends with %d: %s", args, in, code, errs.String())
		}
		return out.String(), errs.String()
	}
	hook := func(in string, more ...string) (said, noted string) {
		t.Helper()
		return call(in, fmt.Sprintf(`{"session_id":"s","source":"startup","cwd":%q}`, filepath.Join(dir, in)), append([]string{"hook", "--agent", "claude-code", "--event", "SessionStart"}, more...)...)
	}
	call("first", "", "project", "use", "shop", "--create")
	call("first", "", "namespace", "create", "elsewhere")
	if said, noted := hook("first"); said+noted != "" {
		t.Errorf("where it was chosen: %s%s", said, noted)
	}
	for _, in := range []string{"second", "third"} {
		said, noted := hook(in)
		if !strings.Contains(said, `{"systemMessage":"Mneme: `) || !strings.Contains(said, "another place of the project github.com/acme/shop, so memories are those of its namespace shop, as in ") ||
			!strings.Contains(noted, "another place of the project") {
			t.Errorf("in %s: %s%s", in, said, noted)
		}
		if said, noted := hook(in); said+noted != "" {
			t.Errorf("in %s once more: %s%s", in, said, noted)
		}
	}
	// The entries that integrate writes into a project name its namespace.
	if said, noted := hook("fourth", "-n", "elsewhere"); said+noted != "" {
		t.Errorf("with a namespace that is not the project's: %s%s", said, noted)
	}
	if said, _ := hook("fourth", "-n", "shop"); !strings.Contains(said, "another place of the project github.com/acme/shop") {
		t.Errorf("with an entry that names it: %s", said)
	}
	if said, noted := hook("fourth", "-n", "shop"); said+noted != "" {
		t.Errorf("with an entry that names it, once more: %s%s", said, noted)
	}
	said, _ := call("second", "", "project")
	if strings.Count(said, "used in ") != 3 || !strings.Contains(said, filepath.Join(dir, "first")) || !strings.Contains(said, filepath.Join(dir, "third")) {
		t.Errorf("%s", said)
	}
	call("second", "", "project", "forget")
	call("second", "", "project", "use", "shop")
	if said, _ := call("second", "", "project"); strings.Contains(said, "used in ") {
		t.Errorf("forgotten: %s", said)
	}
}
