package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"testing"
)

func TestMemoryIsLimitedWhileTheNodeRuns(t *testing.T) {
	w := stopsWhenReady(t, newFake())
	var limited context.Context
	w.limitMemory = func(ctx context.Context, _ *slog.Logger) {
		if w.opens != 0 {
			t.Error("the node was opened before")
		}
		limited = ctx
	}
	if code := w.run(); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	if limited == nil || limited.Err() == nil {
		t.Error("the limit is still read when the node has ended, or never was")
	}
}

// Go's limit is nine tenths of the container's: at all of it the kernel ends the process before
// garbage is collected.
func TestMemoryLimitIsNineTenthsOfTheContainers(t *testing.T) {
	for _, name := range []string{"GOMEMLIMIT", "AUTOMEMLIMIT", "AUTOMEMLIMIT_EXPERIMENT"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	limitMemoryOf(ctx, slog.New(slog.DiscardHandler), func() (uint64, error) { return 2 << 30, nil })
	if got, want := debug.SetMemoryLimit(-1), int64(2<<30)/10*9; got < want-10 || got > want+10 {
		t.Errorf("Go may take %d bytes of %d, want %d", got, 2<<30, want)
	}
}
