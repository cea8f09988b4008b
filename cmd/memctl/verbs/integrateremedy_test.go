package verbs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/files"
	"mneme/memory"
)

// TestIntegrateSaysWhatHelpsWhereANodeRuns: it said to start one to whoever had no token for it, or
// named an authority that cannot be read.
func TestIntegrateSaysWhatHelpsWhereANodeRuns(t *testing.T) {
	const token = "a-token-of-24-characters"
	addr, _ := tokenNode(t, token)
	dir := t.TempDir()
	if err := makeRepository(filepath.Join(dir, "shop"), "https://github.com/acme/shop"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(addr string, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), userSystem(dir, "shop", addr, &out, &errs), append([]string{"integrate", "claude-code"}, args...)); code != 0 {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		return out.String()
	}
	const start = "start a node with `memnode`"
	if said := call(addr); !strings.Contains(said, "this node asks for a token") || !strings.Contains(said, "--token-file FILE") || !strings.Contains(said, "run this again") || strings.Contains(said, start) {
		t.Errorf("without a token: %s", said)
	}
	if said := call(addr, "--tls-ca", filepath.Join(dir, "nope")); !strings.Contains(said, "the authority of the node's certificate") || !strings.Contains(said, "run this again") || strings.Contains(said, start) {
		t.Errorf("with an authority that cannot be read: %s", said)
	}
	if said := call("127.0.0.1:1"); !strings.Contains(said, start+", then run `memctl namespace create acme-shop`") {
		t.Errorf("where none listens: %s", said)
	}
	if said := call(addr, "--token-file", file); strings.Contains(said, "is not known") {
		t.Errorf("as it was told: %s", said)
	}
}

// TestAFolderThatTakesNoFilesIsNamed: a read-only one was not, but a file that had a name of its own for
// the time of writing and does not exist. One that is missing refuses whoever runs the test, root too.
func TestAFolderThatTakesNoFilesIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	err := files.Replace(filepath.Join(dir, "settings.json"), 0o600, func(*os.File) error { return nil })
	e := asError(err)
	if !errors.Is(err, fs.ErrNotExist) || e.Code != memory.CodeInvalid || !strings.HasPrefix(e.Hint, "look at "+dir+": ") || strings.Contains(err.Error(), "tmp-mneme") {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
}

// TestAnAddressWrittenOtherwiseWasAnotherNode: the node of one that ended in no scheme was not the one that hosts reach, and
// --addr with the remembered address was not either, so that the project was given no namespace.
func TestAnAddressWrittenOtherwiseWasAnotherNode(t *testing.T) {
	for _, c := range []struct {
		flag, variable, remembered string
		want                       bool
	}{
		{"", "", "", true},
		{"", "", "http://10.0.0.7:8787", true},
		{"", "127.0.0.1:8787", "", true},
		{"", "http://127.0.0.1:8787/", "", true},
		{"http://127.0.0.1:8787", "", "", true},
		{"10.0.0.7", "", "http://10.0.0.7:8787", true},
		{"10.0.0.7", "10.0.0.8", "http://10.0.0.7:8787", true}, // a flag wins
		{"", "10.0.0.7,10.0.0.8", "http://10.0.0.7:8787,http://10.0.0.8:8787", true},
		{"", "10.0.0.7", "", false},
		{"10.0.0.7", "", "", false},
		{"10.0.0.8", "10.0.0.7", "10.0.0.7", false},
		{"", "10.0.0.8", "10.0.0.7", false},
		{"", "https://10.0.0.7:8787", "10.0.0.7", false},
		{"", "http://", "", false},
	} {
		a := &app{sys: system{getenv: func(k string) string { return map[string]string{"MNEME_ADDR": c.variable}[k] }}}
		a.flags.addr = c.flag
		if got := reachedLater(a, remembered{Addr: c.remembered}); got != c.want {
			t.Errorf("--addr %q, MNEME_ADDR %q, remembered %q: %v", c.flag, c.variable, c.remembered, got)
		}
	}
}
