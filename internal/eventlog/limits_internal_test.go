package eventlog

import (
	"testing"
	"time"
)

func TestCallersLeaveFilesToOthers(t *testing.T) {
	for files, want := range map[uint64]int{0: maxCallers, 1 << 20: maxCallers, 1024: 256, 8192: 2048, 10: fewestOfCallers, 1<<64 - 1: maxCallers} {
		if got := callersWithin(files); got != want {
			t.Errorf("%d files: %d callers, want %d", files, got, want)
		}
	}
	if files := openFiles(); files != 0 && files < 64 {
		t.Errorf("the process may open %d files", files)
	}
}

// Lines that were left out are told once, when the next minute has begun.
func TestLinesLeftOutAreCounted(t *testing.T) {
	l := lineLimit{most: 3}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	passed := 0
	for range 10 {
		if ok, leftOut := l.next(at); leftOut != 0 {
			t.Error("told in the same minute")
		} else if ok {
			passed++
		}
	}
	if passed != 3 {
		t.Errorf("%d lines are passed", passed)
	}
	at = at.Add(time.Minute)
	if ok, leftOut := l.next(at); !ok || leftOut != 7 {
		t.Errorf("the next minute: %v, %d were left out", ok, leftOut)
	}
	if _, leftOut := l.next(at); leftOut != 0 {
		t.Error("told twice")
	}
}
