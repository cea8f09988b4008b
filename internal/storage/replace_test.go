package storage

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, want := range []string{"one", "another, longer one", ""} {
		if err := ReplaceFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
	if err := ReplaceFile(filepath.Join(name, "below a file"), nil, 0o600); err == nil {
		t.Fatal("a file below a file was written")
	}
	// A target that cannot be replaced leaves nothing behind.
	if err := os.MkdirAll(filepath.Join(dir, "full", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(filepath.Join(dir, "full"), []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced")
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Fatalf("left behind: %v", left)
	}
}
