package keygroup

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/storage"
)

// camera takes a picture of a node's disk before each step that changes it: what a loss
// of power would leave.
type camera struct {
	mem    *vfs.MemFS
	raftDB string
	rng    *rand.Rand

	mu       sync.Mutex
	on       bool
	pictures []picture
}

type picture struct {
	mem    *vfs.MemFS
	raftDB []byte
	op     string
}

// MaybeError implements errorfs.Injector.
func (c *camera) MaybeError(op errorfs.Op) error {
	if op.Kind != errorfs.OpOpenDir && op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.on {
		return nil
	}
	db, _ := os.ReadFile(c.raftDB) // may not be there yet
	c.pictures = append(c.pictures, picture{mem: c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.rng.IntN(2) * 100, RNG: c.rng}), raftDB: db, op: op.Path})
	return nil
}

func (c *camera) String() string { return "camera" }

func (c *camera) stop() []picture {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = false
	return c.pictures
}

// Whenever the power fails while a node joins, its keyring is blank or the cluster's, and
// the next start goes on from there.
func TestJoinerMayFailAtEachStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	founder, n := s.nodes[0], s.nodes[1]
	founder.mustStart(true)
	must(t, founder.keys.CreateNamespace(team))
	id := founder.ensure("ada")
	must(t, founder.keys.Destroy(founder.ensure("bob"))) // the joiner owes a renewal, too
	sealed := founder.seal(id)

	cam := &camera{mem: vfs.NewCrashableMem(), raftDB: filepath.Join(n.groupDir(), "raft.db"), rng: rand.New(rand.NewPCG(1, 1)), on: true}
	n.keyFS = errorfs.Wrap(cam.mem, cam)
	must(t, storage.MkdirAll(cam.mem, n.dir, 0o700))
	n.mustStart(false)
	addNonvoter(s, n)
	must(t, n.group.CatchUp(testCtx(t)))
	must(t, n.group.Renewed(testCtx(t)))
	pictures := cam.stop()
	n.stop()
	blank, filled := 0, 0
	const every = 8 // one run looks at an eighth of them
	for i := rand.IntN(every); i < len(pictures); i += every {
		p := pictures[i]
		must(t, os.RemoveAll(n.groupDir()))
		must(t, os.MkdirAll(n.groupDir(), 0o700))
		if p.raftDB != nil {
			must(t, os.WriteFile(cam.raftDB, p.raftDB, 0o600))
		}
		n.keyFS = p.mem
		if err := n.start(false); err != nil {
			t.Fatalf("picture %d, before %s: %v", i, p.op, err)
		}
		if n.keys.Machine().Blank() {
			blank++
		} else {
			filled++
		}
		must(t, n.group.CatchUp(testCtx(t)))
		must(t, n.group.Renewed(testCtx(t)))
		n.mustOpen(id, sealed)
		s.same()
		n.stop()
	}
	t.Logf("%d pictures with a blank keyring, %d with a filled one", blank, filled)
	if blank < 5 || filled < 5 {
		t.Errorf("%d pictures with a blank keyring, %d with a filled one: that shows little", blank, filled)
	}
}
