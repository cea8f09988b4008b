//go:build unix

package project

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAPipeInTheMarksPlaceHeldUpEachCall for ever.
func TestAPipeInTheMarksPlaceHeldUpEachCall(t *testing.T) {
	git := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(git, placeFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := readMarks(git); all != nil {
		t.Errorf("it says %v", all)
	}
	if err := os.Remove(filepath.Join(git, placeFile)); err != nil {
		t.Fatal(err)
	}
}

// TestAPipeInARepositoryHeldUpEachCall for ever, also in the one that a clone is of, whoever that belongs to.
func TestAPipeInARepositoryHeldUpEachCall(t *testing.T) {
	for _, name := range []string{"HEAD", "commondir", "config"} {
		base, main := made(t, "shop")
		clone := filepath.Join(base, "clone")
		git(t, base, "clone", "-q", main, clone)
		path := filepath.Join(main, ".git", name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Find(t.Context(), main, Mapping{}); name != "commondir" && err == nil {
			t.Errorf("with a pipe as %s it is %q", name, p.IDs())
		}
		if got := idsOf(t, clone); len(got) != 1 || got[0] != localID(main) {
			t.Errorf("with a pipe as %s the clone is %q", name, got)
		}
	}
}
