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
