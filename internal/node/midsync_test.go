package node

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/projections"
	"mneme/internal/storage/encfs"
)

// What a repair and a restore rely on has to be on disk before their next step.

// synced is where a node's state stands after a power cut now.
func synced(t *testing.T, n *Node, mem *vfs.MemFS) projections.Cursor {
	t.Helper()
	left := encfs.New(mem.CrashClone(vfs.CrashCloneCfg{}), n.keys.Storage())
	s, err := projections.Open(projections.Options{Dir: n.dir.state(shard0), FS: left, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Cursor()
}

// TestRepairReliedOnAStateThatWasNotSynced: from the comparison on the state may be
// the only copy of what the log has lost, and the stream that it reserves is made by
// a name that nothing else knows.
func TestRepairReliedOnAStateThatWasNotSynced(t *testing.T) {
	mem := vfs.NewCrashableMem()
	cfg := quiet(t.TempDir())
	cfg.FS = mem
	n := open(t, cfg)
	must(t, n, "the log may lose it")
	if got, now := synced(t, n, mem), n.served[0].state.Cursor(); got.Seq >= now.Seq {
		t.Fatalf("the state is synced up to %d of %d already, so the test shows nothing", got.Seq, now.Seq)
	}
	err := n.served[0].replica.WithoutWriter(t.Context(), func() error {
		r := &repair{shard: n.shards[0]}
		if err := r.adopt(t.Context()); err != nil {
			return err
		}
		if got, now := synced(t, n, mem), n.served[0].state.Cursor(); got.Seq != now.Seq || got.Chain != now.Chain {
			t.Errorf("adopted: after a power cut the state stands at %d, it stood at %d", got.Seq, now.Seq)
		}
		next, err := r.reserve(t.Context())
		if got := synced(t, n, mem).Next; err == nil && got != next {
			t.Errorf("reserved: after a power cut the state has reserved %v, it had %v", got, next)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMarkOfARestoreWasNotSynced: a power cut left what a restore had written without
// its mark, so that it looked like a data directory; and it brought the mark back, so
// that a directory in use was called half restored, and doing the restore again, as it
// says, would have removed it.
func TestMarkOfARestoreWasNotSynced(t *testing.T) {
	for _, there := range []bool{false, true} { // the directory, empty and not synced
		mem := vfs.NewCrashableMem()
		if there {
			if err := mem.MkdirAll("a/data", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join("a", "data")
		mark := func() bool {
			_, err := mem.CrashClone(vfs.CrashCloneCfg{}).Stat(filepath.Join(dir, restoringMark))
			return err == nil
		}
		if there { // its parent is as durable as whoever made it took care
			d, err := mem.OpenDir("")
			if err = errors.Join(err, d.Sync(), d.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if err := beginRestore(mem, dir); err != nil {
			t.Fatal(err)
		}
		if !mark() {
			t.Errorf("there before: %v: after a power cut the mark is missing", there)
		}
		if err := endRestore(mem, dir); err != nil {
			t.Fatal(err)
		}
		if mark() {
			t.Errorf("there before: %v: after a power cut the mark is back", there)
		}
	}
}
