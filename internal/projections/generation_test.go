package projections_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/projections"
	"mneme/internal/storage"
)

// A power loss at any moment of a swap or a restore, and after it, leaves a state
// that is whole: the former or the next one. Both hold the same here, so that
// rows which were not on disk when CURRENT named them show.
func TestCrashDuringASwapKeepsAWholeState(t *testing.T) {
	eachSeed(t, 12, func(t *testing.T, h *history, rnd *rand.Rand) {
		for _, change := range []func(s *projections.State) error{
			func(s *projections.State) error {
				sibling, err := s.Sibling()
				must(t, err)
				fold(t, h.keys, sibling, h.log, 10)
				return s.Swap(sibling)
			},
			func(s *projections.State) error {
				must(t, s.Checkpoint("/shard/checkpoint"))
				return s.Restore("/shard/checkpoint")
			},
		} {
			dir, mem := "/shard/state", vfs.NewCrashableMem()
			syncedDirs(t, mem, dir)
			var mu sync.Mutex
			var left []*vfs.MemFS // what a crash before each step would leave
			watching := false
			crash := func() {
				left = append(left, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd}))
			}
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if watching && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					crash()
					for range 8 { // which of the names survive is chance
						if op.Kind == errorfs.OpFileSync && op.Path == dir {
							crash()
						}
					}
				}
				return nil
			}))
			s := openOn(t, fs, dir)
			fold(t, h.keys, s, h.log, 10)
			must(t, s.Flush())
			want, rows := dump(t, s), everyRow(t, s)
			mu.Lock()
			watching = true
			mu.Unlock()
			must(t, change(s))
			mu.Lock()
			watching = false
			crash()
			mu.Unlock()
			must(t, s.Close())
			if len(left) < 20 {
				t.Fatalf("%d moments only", len(left))
			}
			each := 2 // one run looks at every second moment; all with -seed
			if *oneSeed != 0 {
				each = 1
			}
			for i := rand.IntN(each); i < len(left); i += each {
				s := openOn(t, left[i], dir)
				// A search for each word is dear: every row is read at each moment, and each word
				// searched for at some.
				if got := everyRow(t, s); !slices.Equal(got, rows) {
					t.Fatalf("moment %d of %d: %s", i, len(left), firstDifference(strings.Join(got, "\n"), strings.Join(rows, "\n")))
				}
				if i%16 < each || i >= len(left)-each {
					if got := dump(t, s); got != want {
						t.Fatalf("moment %d of %d: %s", i, len(left), firstDifference(got, want))
					}
				}
				must(t, s.Close())
			}
		}
	})
}

// A CURRENT that was gone, or that named a folder that was gone, let the next start
// delete every state there was, or begin an empty one.
func TestMissingCurrentNeverDeletes(t *testing.T) {
	h := newHistory(t, 3, 40)
	dir := t.TempDir()
	s := openState(t, dir)
	fold(t, h.keys, s, h.log, 10)
	want := dump(t, s)
	must(t, s.Close())
	current := filepath.Join(dir, "CURRENT")
	name, err := os.ReadFile(current)
	must(t, err)
	damaged := func(what string) {
		t.Helper()
		if s, err := projections.Open(projections.Options{Dir: dir}); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
			if err == nil {
				must(t, s.Close())
			}
		}
	}
	must(t, os.Remove(current))
	damaged("no CURRENT")
	must(t, os.Mkdir(filepath.Join(dir, "gen-000009"), 0o700))
	damaged("no CURRENT, two states")
	must(t, os.WriteFile(current, []byte("gen-000007\n"), 0o600))
	damaged("CURRENT names nothing")
	must(t, os.WriteFile(current, name, 0o600))
	s = openState(t, dir)
	if got := dump(t, s); got != want {
		t.Error(firstDifference(got, want))
	}
	must(t, s.Close())
}

// A first start that is cut short before CURRENT is written is no damage.
func TestFirstStartThatWasCutShort(t *testing.T) {
	dir := t.TempDir()
	must(t, openState(t, dir).Close())
	must(t, os.Remove(filepath.Join(dir, "CURRENT")))
	must(t, openState(t, dir).Close())
	if generations(t, dir) != 1 {
		t.Error("more than one state")
	}
}

// What removed the former state after an erasure removed every folder but the
// present one, and with it the state that a rebuild was just making. Pebble then
// ended the process.
func TestErasingLeavesARebuildAlone(t *testing.T) {
	h := newHistory(t, 5, 40)
	dir := t.TempDir()
	s := openState(t, dir)
	fold(t, h.keys, s, h.log, 10)
	want := dump(t, s)
	reading := s.View()
	gone, err := s.Renew()
	must(t, err)
	sibling, err := s.Sibling()
	must(t, err)
	must(t, reading.Close())
	must(t, gone(t.Context()))
	fold(t, h.keys, sibling, h.log, 10)
	must(t, s.Swap(sibling))
	if got := dump(t, s); got != want {
		t.Error(firstDifference(got, want))
	}
	if n := generations(t, dir); n != 1 {
		t.Errorf("%d states are left", n)
	}
	must(t, s.Close())
}

// Rows that contradict each other ended a start with an error that nothing mends; a state that
// is damaged is built again.
func TestRowsThatContradictEachOtherAreDamage(t *testing.T) {
	dir := t.TempDir()
	s := openState(t, dir)
	must(t, errors.Join(projections.LoseHome(s), s.Close()))
	s, err := projections.Open(projections.Options{Dir: dir})
	if !storage.IsCorrupt(err) {
		t.Errorf("opened with %v", err)
	}
	if err == nil {
		must(t, s.Close())
	}
}
