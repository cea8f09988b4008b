package program

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mneme/memory"
)

// says is a program that prints one line, and takes only what memnode is asked for its version with.
func says(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memnode")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n[ \"$*\" = 'version --json' ] || exit 2\ncat <<'END'\n"+line+"\nEND\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two versions share no protocol: one that went on in the place of another could take a flag for
// something else.
func TestOnlyTheSameVersionGoesOn(t *testing.T) {
	said := func(v memory.VersionInfo) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	same, commit, version := Version(), Version(), Version()
	commit.Commit += "0"
	version.Version += ".1"
	if err := fits(says(t, said(same))); err != nil {
		t.Errorf("the same version: %v", err)
	}
	for line, why := range map[string]string{
		"":               "does not say of which version it is",
		"v0.1.0":         "does not say of which version it is",
		`{"os":"linux"}`: "does not say of which version it is",
		said(commit):     "and memctl of ",
		said(version):    "and memctl of ",
	} {
		program := says(t, line)
		err := fits(program)
		if e := memory.AsError(err); memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(e.Message, why) || !strings.Contains(e.Message, program) || !strings.Contains(e.Hint, "make install") {
			t.Errorf("%s, not %q: %v", line, why, err)
		}
	}
	if err := fits(filepath.Join(t.TempDir(), "memnode")); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a program that does not run: %v", err)
	}
}

// TestAProgramsChildWasWaitedFor, as that of a script in whose place memnode is: it holds the output for as long as it likes.
func TestAProgramsChildWasWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memnode")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 30 &\necho '{\"version\":\"devel\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fits(path); !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("it says %v", err)
	}
}

func TestNoOtherProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := GoOn([]string{"doctor"})
	if e := memory.AsError(err); memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(e.Message, "neither beside memctl nor in PATH") || !strings.Contains(e.Hint, "memctl holds no node") {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
}

func TestVersion(t *testing.T) {
	v := Version()
	if v.Go != runtime.Version() || v.OS != runtime.GOOS || v.Arch != runtime.GOARCH || v.Version == "" {
		t.Errorf("%+v", v)
	}
	if got := Name(memory.VersionInfo{Version: "v1.0.0", Commit: "0123456789abcdef"}); got != "v1.0.0 (0123456789ab)" {
		t.Error(got)
	}
}
