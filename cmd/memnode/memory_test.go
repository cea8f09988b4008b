package main

import (
	"context"
	"log/slog"
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
