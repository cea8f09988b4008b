package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mneme/memory"
)

// run runs a command in a folder.
func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// builtFrom builds a program of a module that is called so, at a commit of its own.
func builtFrom(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module " + module + "\n", "main.go": "package main\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "git", "init", "-q")
	run(t, dir, "git", "add", ".")
	run(t, dir, "git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "a")
	program := filepath.Join(t.TempDir(), "memnode")
	run(t, dir, "go", "build", "-buildvcs=true", "-o", program, ".")
	return program
}

// Two versions share no protocol: one that went on in the place of another could take a flag for
// something else.
func TestOnlyTheSameVersionGoesOn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := fits(self); err != nil {
		t.Errorf("this very program: %v", err)
	}
	script := filepath.Join(t.TempDir(), "memnode")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for program, says := range map[string]string{
		script:                    "does not say of which version it is",
		builtFrom(t, "mneme"):     "and memctl of ",
		builtFrom(t, "elsewhere"): "is no memnode of Mneme",
	} {
		err := fits(program)
		if e := memory.AsError(err); memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(e.Message, says) || !strings.Contains(e.Message, program) || !strings.Contains(e.Hint, "make install") {
			t.Errorf("%s, not %q: %v", program, says, err)
		}
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
