package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// killer copies a data directory before each thing that a node does to it: what a
// kill would leave there. While it copies nothing else is written through the seam.
type killer struct {
	vfs.FS
	t       *testing.T
	dir, to string

	mu    sync.Mutex
	armed bool
	left  []string // names of the copies
}

// at copies the directory, once for each name and number.
func (k *killer) at(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.armed {
		return
	}
	copied := fmt.Sprintf("%03d %s", len(k.left), name)
	k.left = append(k.left, copied)
	if err := copyStopped(k.dir, filepath.Join(k.to, copied)); err != nil {
		k.t.Errorf("%s: %v", copied, err)
	}
}

func (k *killer) arm(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed = on
}

func (k *killer) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	k.at("create " + filepath.Base(name))
	return k.FS.Create(name, c)
}

func (k *killer) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	k.at("reuse " + filepath.Base(to))
	return k.FS.ReuseForWrite(from, to, c)
}

func (k *killer) Link(from, to string) error {
	k.at("link " + filepath.Base(to))
	return k.FS.Link(from, to)
}

func (k *killer) Rename(from, to string) error {
	k.at("rename " + filepath.Base(to))
	return k.FS.Rename(from, to)
}

func (k *killer) Remove(name string) error {
	k.at("remove " + filepath.Base(name))
	return k.FS.Remove(name)
}

// TestRepairKilledAnywhere: a repair that is killed at any of its steps, or before
// any change of a file, is finished by the next start, or repeated, with nothing
// lost: not even what was acknowledged and stood only in the log.
func TestRepairKilledAnywhere(t *testing.T) {
	t.Parallel()
	dir, want := survivors(t)
	k := &killer{FS: vfs.Default, t: t, dir: dir, to: t.TempDir()}
	cfg := quiet(dir)
	cfg.FS = k
	n := open(t, cfg)
	n.beforeStep(k.at)
	if n.served[0].replica.Diverged() == nil {
		t.Fatal("the damage was not noticed")
	}
	k.arm(true)
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	onlyStream(t, n)
	k.at("end")
	k.arm(false)
	sound(t, n)
	shut(t, n)
	for _, step := range []string{"compare", "adopt", "reserve", "seal", "fill", "filling", "use", "begin", "proposed", "remove", "end"} {
		if !slices.ContainsFunc(k.left, func(name string) bool { return strings.HasSuffix(name, " "+step) }) {
			t.Errorf("nothing was killed at %q: %q", step, k.left)
		}
	}
	serverKilled(t, k)
	t.Logf("%d kills", len(k.left))
	for _, name := range k.left {
		t.Run(name, func(t *testing.T) { startsAfterAKilledRepair(t, filepath.Join(k.to, name), want) })
	}
}

// survivors makes a directory whose log has rotted and holds one message that the
// state does not.
func survivors(t *testing.T) (dir string, want memory.ShardStatus) {
	t.Helper()
	dir, _ = filled(t)
	shards := filepath.Join(dir, "shards")
	older := image(t, shards)
	n := open(t, quiet(dir))
	must(t, n, "acknowledged and only in the log")
	want = shardOf(t, n)
	m, err := n.served[0].stream.Get(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, n)
	putBack(t, older, shards)
	rot(t, dir, m.Data)
	return dir, want
}

// serverKilled adds what a kill leaves in the middle of what nats-server does when
// it makes a stream and when it removes one.
func serverKilled(t *testing.T, k *killer) {
	t.Helper()
	last := func(step string) string {
		for _, name := range slices.Backward(k.left) {
			if strings.HasSuffix(name, " "+step) {
				return filepath.Join(k.to, name)
			}
		}
		t.Fatalf("no copy at %q", step)
		return ""
	}
	seal, fill, filling, remove := last("seal"), last("fill"), last("filling"), last("remove")
	for name, c := range map[string]struct {
		from string
		do   func(streams string) error
	}{
		"server: folder made": {fill, func(streams string) error {
			return os.MkdirAll(filepath.Join(streams, "mneme-0-1", "msgs"), 0o700)
		}},
		"server: meta.inf written": {fill, func(streams string) error {
			return errors.Join(os.MkdirAll(filepath.Join(streams, "mneme-0-1", "msgs"), 0o700),
				os.WriteFile(filepath.Join(streams, "mneme-0-1", "meta.inf"), []byte("{"), 0o600))
		}},
		"server: block made": {fill, func(streams string) error {
			msgs := filepath.Join(streams, "mneme-0-1", "msgs")
			return errors.Join(os.MkdirAll(msgs, 0o700), os.WriteFile(filepath.Join(msgs, "1.blk"), nil, 0o600))
		}},
		"server: meta.inf of the sealed stream written": {seal, func(streams string) error {
			meta := filepath.Join(streams, "mneme-0", "meta.inf")
			b, err := os.ReadFile(meta)
			return errors.Join(err, os.WriteFile(meta, bytes.Replace(b, []byte(`"sealed":false`), []byte(`"sealed":true`), 1), 0o600))
		}},
		"server: meta.inf of the copy removed": {filling, func(streams string) error {
			return os.Remove(filepath.Join(streams, "mneme-0-1", "meta.inf"))
		}},
		"server: meta.inf removed": {remove, func(streams string) error {
			return os.Remove(filepath.Join(streams, "mneme-0", "meta.inf"))
		}},
		"server: folder renamed": {remove, func(streams string) error {
			old := filepath.Join(streams, "mneme-0")
			return errors.Join(os.Remove(filepath.Join(old, "meta.inf")), os.Rename(old, filepath.Join(streams, ".mneme-0")))
		}},
		"server: folder half removed": {remove, func(streams string) error {
			old := filepath.Join(streams, "mneme-0")
			return errors.Join(os.Remove(filepath.Join(old, "meta.inf")), os.Rename(old, filepath.Join(streams, ".mneme-0")),
				os.RemoveAll(filepath.Join(streams, ".mneme-0", "msgs")))
		}},
	} {
		to := filepath.Join(k.to, name)
		err := copyStopped(c.from, to)
		if err = errors.Join(err, c.do(filepath.Join(to, "nats", "jetstream", "NODE", "streams"))); err != nil {
			t.Fatal(err)
		}
		k.left = append(k.left, name)
	}
}

func startsAfterAKilledRepair(t *testing.T, dir string, want memory.ShardStatus) {
	t.Helper()
	n := openRepaired(t, dir)
	defer shut(t, n)
	got := shardOf(t, n)
	if got.StateHash != want.StateHash || got.Records != want.Records || got.Epoch != 1 || got.Log.Diverged != "" {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(t, n, "life goes on")
	sound(t, n)
	onlyStream(t, n)
}

// openRepaired opens a node, and repairs its log if it asks for that.
func openRepaired(t *testing.T, dir string) *Node {
	t.Helper()
	n := open(t, quiet(dir))
	finished(t, n)
	if n.served[0].replica.Diverged() != nil {
		if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// finished waits for the repair with which a start goes on.
func finished(t *testing.T, n *Node) {
	t.Helper()
	await(t, "the start to finish the repair", func() bool { return !(&repair{shard: n.shards[0]}).unfinished() })
	if err := n.upkeep.inTurn(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// halfRepaired is a copy of a node whose repair was killed while it copied the log.
func halfRepaired(t *testing.T) (dir string, want memory.ShardStatus) {
	t.Helper()
	rotted, want := rotten(t, 7)
	return killedRepair(t, open(t, quiet(rotted)), rotted), want
}

// killedRepair repairs the log of a node, and gives a copy of its directory from when
// twenty frames were copied.
func killedRepair(t *testing.T, n *Node, dir string) (killed string) {
	t.Helper()
	killed = filepath.Join(t.TempDir(), "killed")
	filled := 0
	n.beforeStep(func(name string) {
		if name != "filling" {
			return
		}
		if filled++; filled == 20 {
			if err := copyStopped(dir, killed); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	shut(t, n)
	return killed
}

// TestHalfFilledStreamIsTakenForTheLog: a repair was killed while it filled the new
// stream, and then the state was lost. The node served the first half of the log as
// all of it, and deleted the old stream; a backup ended with the half.
func TestHalfFilledStreamIsTakenForTheLog(t *testing.T) {
	t.Parallel()
	dir, want := halfRepaired(t)
	shards, aside := filepath.Join(dir, "shards"), filepath.Join(dir, "aside")
	if err := os.Rename(shards, aside); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the refusal removes nothing
		fails(t, quiet(dir), StartDamaged)
		if err := os.RemoveAll(shards); err != nil {
			t.Fatal(err)
		}
	}
	off := Offline{Config: quiet("")}
	if r, err := off.Backup(t.Context(), dir, filepath.Join(t.TempDir(), "log"), "", nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a backup of a part: %+v, %v", r, err)
	}
	if err := errors.Join(os.RemoveAll(shards), os.Rename(aside, shards)); err != nil { // the remedy
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	finished(t, n)
	if got := shardOf(t, n); got.Records != want.Records {
		t.Errorf("%d of %d records", got.Records, want.Records)
	}
	sound(t, n)
}

// TestLostStateBesideAHalfFilledStreamWasRefused: without the killed repair the same loss
// is healed from Raft's log, and with it the start, doctor, repair and backup ended with 7.
func TestLostStateBesideAHalfFilledStreamWasRefused(t *testing.T) {
	dir, want := halfRepaired(t)
	if err := os.RemoveAll(filepath.Join(dir, "shards", "0", "state")); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	finished(t, n)
	if got := shardOf(t, n); got.Records != want.Records || got.StateHash != want.StateHash {
		t.Errorf("%+v, want %+v", got, want)
	}
	sound(t, n)
	must(t, n, "life goes on")
}

// TestOlderCopyOfAStateLostTheNewStream: a state from before a repair knows nothing of
// the stream that took the log's place, and is repaired from it all the same.
func TestOlderCopyOfAStateLostTheNewStream(t *testing.T) {
	dir, _ := rotten(t, 7)
	shards := filepath.Join(dir, "shards")
	older := image(t, shards)
	n := open(t, quiet(dir))
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	must(t, n, "written after the repair")
	want := shardOf(t, n)
	shut(t, n)
	putBack(t, older, shards)
	hasAll(t, dir, want)
}

// TestOlderCopyOfAStateTookHalfAStream: the copy that a killed repair had begun held
// all that an older copy of the state did, but not all of the log. And the old stream,
// which did, was sealed: a state that knew nothing of the repair tried for ever to
// write to it, and the start never ended.
func TestOlderCopyOfAStateTookHalfAStream(t *testing.T) {
	t.Parallel()
	for _, have := range []string{"an older copy", "no state"} {
		t.Run(have, func(t *testing.T) {
			dir := t.TempDir()
			n := open(t, quiet(dir))
			must(t, n, "the older copy knows this")
			shut(t, n)
			older := image(t, filepath.Join(dir, "shards"))
			n = open(t, quiet(dir))
			for i := range rottenFrames {
				must(t, n, fmt.Sprint("memory of the harbour, number ", i))
			}
			want := shardOf(t, n)
			n.served[0].replica.SetDiverged(&eventlog.DivergedError{Kind: eventlog.KindLost})
			half := killedRepair(t, n, dir)
			if have == "no state" {
				older = t.TempDir()
			}
			putBack(t, older, filepath.Join(half, "shards"))
			hasAll(t, half, want)
		})
	}
}

// hasAll opens a node whose state is an older copy and looks whether it has
// everything, after a repair if it asks for one.
func hasAll(t *testing.T, dir string, want memory.ShardStatus) {
	t.Helper()
	n := openRepaired(t, dir)
	if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" {
		t.Errorf("%d of %d records, %+v", got.Records, want.Records, got.Log)
	}
	if r, err := n.operator.VerifyLog(t.Context(), nil); err != nil || !r.Shards[0].OK {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, n, "life goes on")
}

// guarded checks that nothing else replaces or reads log or state as a whole while a
// repair is under way, and that reads are served.
func guarded(t *testing.T, n *Node) {
	t.Helper()
	for what, do := range map[string]func() error{
		"repair":  func() error { _, err := n.operator.RepairLog(t.Context(), nil); return err },
		"rebuild": func() error { _, err := n.operator.Rebuild(t.Context(), nil); return err },
		"verify":  func() error { _, err := n.operator.VerifyLog(t.Context(), nil); return err },
	} {
		if e := memory.AsError(do()); e == nil || e.Code != memory.CodeConflict || e.Hint == "" {
			t.Errorf("%s beside a repair: %v", what, e)
		}
	}
	if n.served[0].scrub.busy.TryLock() {
		n.served[0].scrub.busy.Unlock()
		t.Error("the scrub reads on")
	}
	if len(find(t, n, "harbour")) == 0 {
		t.Error("reads are down")
	}
	if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a write: %v", err)
	}
}

// TestRepairWithoutItsCallerWasUnguarded: when the client went away the repair went
// on beside whatever else was asked for, also a second repair.
func TestRepairWithoutItsCallerWasUnguarded(t *testing.T) {
	dir, want := rotten(t, 7)
	n := open(t, quiet(dir))
	n.served[0].replica.SetDiverged(&eventlog.DivergedError{Kind: eventlog.KindLost})
	filling, goOn := make(chan struct{}), make(chan struct{})
	wait := sync.OnceFunc(func() { close(filling); <-goOn })
	n.beforeStep(func(name string) {
		if name == "filling" {
			wait()
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-filling; leave() }()
	if _, err := n.operator.RepairLog(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who went away: %v", err)
	}
	guarded(t, n)
	if p := shardOf(t, n).Log.Repair; p == nil || p.Total < rottenFrames || p.Done > p.Total {
		t.Errorf("the status says %+v", p)
	}
	close(goOn)
	finished(t, n)
	if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" || got.Log.Repair != nil {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(t, n, "life goes on")
	sound(t, n)
}

// TestReadsWereDownAfterAKilledRepair: the next start served nothing before it had
// copied the whole log, and anything might run beside it.
func TestReadsWereDownAfterAKilledRepair(t *testing.T) {
	dir, want := halfRepaired(t)
	disk := newSmallDisk()
	disk.hold = make(chan struct{})
	cfg := disk.config(dir)
	cfg.Namespaces = []string{"default", "later"}
	n := open(t, cfg)
	await(t, "the repair to begin", func() bool { return disk.held.Load() })
	guarded(t, n)
	close(disk.hold)
	finished(t, n)
	if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" || got.Epoch != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
	await(t, "the namespace that was asked for", func() bool {
		_, err := n.reads.Namespace(t.Context(), "later")
		return err == nil
	})
	must(t, n, "life goes on")
	sound(t, n)
}

// beforeStep has a repair call at before each of its steps; nil ends that.
func (c *core) beforeStep(at func(name string)) { c.shards[0].repairStep.Store(&at) }

// onlyStream waits until the stream that counts is the only one: those that it replaced are
// removed beside the open writer.
func onlyStream(t *testing.T, n *Node) {
	t.Helper()
	await(t, "the present stream alone", func() bool {
		left, err := n.served[0].stream.Present(t.Context())
		return err == nil && len(left) == 1 && left[0] == n.served[0].stream.Ref()
	})
}
