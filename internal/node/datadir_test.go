package node

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/events"
)

// A node keeps its identity over a power loss right after its first start.
func TestNodeKeepsItsIdentityOverAPowerLoss(t *testing.T) {
	path, ids := t.TempDir(), events.NewIDSource(time.Now, nil)
	open := func(fs vfs.FS, mustExist bool) nodeFile {
		t.Helper()
		d, err := openDataDir(fs, path, ids, mustExist)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.close(); err != nil {
			t.Fatal(err)
		}
		return d.node
	}
	fs := vfs.NewCrashableMem()
	want := open(fs, false)
	if got := open(fs.CrashClone(vfs.CrashCloneCfg{}), true); got != want {
		t.Errorf("the node was %+v and is %+v", want, got)
	}
}
