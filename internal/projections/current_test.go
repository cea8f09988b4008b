package projections

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/storage"
)

// Whatever a loss of power leaves of unsynced names, CURRENT names a folder that is
// there. Pebble syncs the names beside a database when it opens it, so a swap as a
// whole does not notice when setCurrentGeneration leaves that to it.
func TestCurrentNeverNamesAFolderThatIsNotThere(t *testing.T) {
	const dir = "/shard/state"
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := vfs.NewCrashableMem()
		for _, d := range []string{dir, dir + "/gen-000001"} {
			if err := storage.MkdirAll(mem, d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := setCurrentGeneration(mem, dir, "gen-000001"); err != nil {
			t.Fatal(err)
		}
		var left []*vfs.MemFS
		crash := func() {
			left = append(left, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}))
		}
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				crash()
			}
			return nil
		}))
		if err := mem.MkdirAll(dir+"/gen-000002", 0o700); err != nil { // unsynced, as a rename into place leaves it
			t.Fatal(err)
		}
		if err := setCurrentGeneration(fs, dir, "gen-000002"); err != nil {
			t.Fatal(err)
		}
		for i, disk := range left {
			if _, err := currentGeneration(disk, dir); err != nil {
				t.Fatalf("seed %d, moment %d of %d: %v", seed, i, len(left), err)
			}
		}
		mem = mem.CrashClone(vfs.CrashCloneCfg{})
		if name, err := currentGeneration(mem, dir); err != nil || name != "gen-000002" {
			t.Fatalf("seed %d: in the end CURRENT names %q, %v", seed, name, err)
		}
	}
}
