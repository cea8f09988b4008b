package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"mneme/internal/events"
	"mneme/memory"
)

// TestExportOverManyBatches: the records of two partitions come by creation, also
// those revised later, and without the forgotten, whole batches of which there are.
func TestExportOverManyBatches(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	const n = 5*exportBatch + 3
	var given []memory.Capture
	for i := range n {
		scope := memory.ScopeTeam
		if i%7 == 0 || i > 3*exportBatch && i < 4*exportBatch {
			scope = memory.ScopeAgent
		}
		given = append(given, memory.Capture{Agent: "ann", Text: fmt.Sprint(i), Scope: scope})
	}
	ids := w.Capture("team", given...)
	var want []string
	for i, id := range ids {
		switch {
		case i%100 == 1:
			w.Revise("team", id, 1, given[i])
			want = append(want, id)
		case i < 2*exportBatch && i%7 != 0:
			w.Forget("team", id, "ann", events.ScopeTeam)
		default:
			want = append(want, id)
		}
	}
	var got []string
	w.OK(w.reader("team", "ann").Export(context.Background(), func(l memory.ExportLine) error {
		got = append(got, l.RecordID)
		return nil
	}))
	if !slices.Equal(got, want) {
		t.Errorf("%d records, want %d in the order of their creation", len(got), len(want))
	}
}

// TestExportHeldARowOfEachRecord: it collected all of them before its first line.
// 300 exports of 50,000 small memories held 4 GB.
func TestExportHeldARowOfEachRecord(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.fill("team", 20*exportBatch)
	r := w.reader("team", "")
	before, first := new(runtime.MemStats), new(runtime.MemStats)
	stop := errors.New("stop")
	got := uint64(math.MaxUint64) // the least of some exports: what runs beside them allocates too
	for range 10 {
		runtime.ReadMemStats(before)
		err := r.Export(context.Background(), func(memory.ExportLine) error {
			runtime.ReadMemStats(first)
			return stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		got = min(got, first.TotalAlloc-before.TotalAlloc)
	}
	if most := uint64(5 * exportBatch * 256); got > most {
		t.Errorf("%d bytes were allocated before the first line, at most %d are expected", got, most)
	} else {
		t.Logf("%d bytes before the first line", got)
	}
}
