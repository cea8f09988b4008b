package verbs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mneme/memory"
)

// TestAFileThatLinksDoNotLeadToIsNoFailureOfTheNode: integrate ended with 1 and sent whoever called it to the log of the
// node where links lead in a circle, or a file is where a folder was expected.
func TestAFileThatLinksDoNotLeadToIsNoFailureOfTheNode(t *testing.T) {
	for name, c := range map[string]struct {
		agent string
		make  func(at func(string) string) error
		says  string
	}{
		"the folder is a link to itself": {"cursor", func(at func(string) string) error { return os.Symlink(".cursor", at(".cursor")) }, "lead in a circle"},
		"the file is a link to itself": {"cursor", func(at func(string) string) error {
			if err := os.Mkdir(at(".cursor"), 0o755); err != nil {
				return err
			}
			return os.Symlink("mcp.json", at(".cursor/mcp.json"))
		}, "lead in a circle"},
		"the folder is a file":     {"cursor", func(at func(string) string) error { return os.WriteFile(at(".cursor"), nil, 0o644) }, ".cursor is a file and no folder"},
		"the hooks of Git are one": {"git", func(at func(string) string) error { return os.WriteFile(at(".git/hooks"), nil, 0o644) }, "hooks is a file and no folder"},
	} {
		dir := t.TempDir()
		if err := makeRepository(filepath.Join(dir, "shop"), "https://github.com/acme/shop"); err != nil {
			t.Fatal(err)
		}
		if err := c.make(func(file string) string { return filepath.Join(dir, "shop", file) }); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), userSystem(dir, "shop", "127.0.0.1:1", &out, &errs), []string{"integrate", c.agent})
		if said := errs.String(); code != 2 || !strings.Contains(said, "is left as it is: ") || !strings.Contains(said, c.says) || !strings.Contains(said, "nothing was changed in any file") {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
	}
	for _, why := range []error{syscall.ELOOP, syscall.EEXIST} { // a folder of the user's configuration that is a link
		if e := asError(&fs.PathError{Op: "mkdir", Path: "mneme", Err: why}); e.Code != memory.CodeInvalid || !strings.HasPrefix(e.Hint, "look at mneme: ") {
			t.Errorf("%v: %s, hint %q", why, e.Code, e.Hint)
		}
	}
}

// TestATokenFileThatIsNotThereHadNoRemedy: no call said what the file should be, and integrate ended its sentence with "; then run this again".
func TestATokenFileThatIsNotThereHadNoRemedy(t *testing.T) {
	dir := t.TempDir()
	if err := makeRepository(filepath.Join(dir, "shop"), "https://github.com/acme/shop"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"nope", "empty"} {
		file = filepath.Join(dir, file)
		if strings.HasSuffix(file, "empty") {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			args []string
			code int
			says string
		}{
			{[]string{"integrate", "cursor", "-n", "shop"}, 0, "\n" + tokenFileHint + "; then run this again"},
			{[]string{"list", "-n", "shop"}, 2, "hint: " + tokenFileHint},
		} {
			var out, errs bytes.Buffer
			code := run(t.Context(), userSystem(dir, "shop", "127.0.0.1:1", &out, &errs), append(c.args, "--token-file", file))
			if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("%s %v: exit %d: %s", file, c.args, code, said)
			}
		}
	}
}
