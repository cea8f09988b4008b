//go:build unix

package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mneme/memory"
)

// TestKeysFromAPipeWereReadTwice: so a restore whose keys are decrypted on the way to it
// said that they are damaged, or waited for ever for a second writer, also when it was
// told to end.
func TestKeysFromAPipeWereReadTwice(t *testing.T) {
	log, keys, want := backedUp(t)
	plain, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	off, to := Offline{Config: quiet("")}, filepath.Join(t.TempDir(), "new")

	_, err = off.Restore(t.Context(), to, pipe, keys, nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeInvalid || !strings.Contains(e.Message, "read twice") {
		t.Errorf("the log from a pipe: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := off.Restore(ctx, to, log, pipe, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("told to end: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left something: %v", err)
	}
	ended, err := os.OpenFile(pipe, os.O_WRONLY, 0) // the open that was left is met
	if err == nil {
		err = ended.Close()
	}
	if err != nil {
		t.Fatal(err)
	}

	pipe += "2" // nobody else waits there
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(pipe, plain, 0o600) }()
	if _, err := off.Restore(t.Context(), to, log, pipe, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if got := shardOf(t, open(t, quiet(to))); got.StateHash != want.StateHash {
		t.Errorf("%+v, want %+v", got, want)
	}
}
