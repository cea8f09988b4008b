package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// smallDisk says how much is free as a test wants it.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
	hold chan struct{} // if not nil, who asks for the log's disk waits until it is closed
	held atomic.Bool   // somebody waits
}

const (
	enoughRoom = 1 << 40
	keptFree   = 1 << 20 // the reserve
)

func newSmallDisk() *smallDisk {
	d := &smallDisk{FS: vfs.Default}
	d.free.Store(enoughRoom)
	return d
}

func (d *smallDisk) GetDiskUsage(dir string) (vfs.DiskUsage, error) {
	if d.hold != nil && filepath.Base(dir) == "nats" {
		d.held.Store(true)
		<-d.hold
	}
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: enoughRoom}, nil
}

func (d *smallDisk) config(dir string) Config {
	cfg := quiet(dir)
	cfg.FS, cfg.ReserveBytes = d, keptFree
	return cfg
}

// noRoom checks that a repair ended for want of room, with the remedy, and that the
// node goes on with the old stream alone.
func noRoom(t *testing.T, n *Node, err error, hint string) {
	t.Helper()
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeNoSpace || !strings.Contains(e.Hint, hint) || !strings.Contains(e.Hint, "memctl log repair") {
		t.Fatalf("%v (%+v)", err, e)
	}
	if left, err := n.served[0].stream.Present(t.Context()); err != nil || len(left) != 1 || left[0].Epoch != 0 {
		t.Errorf("the streams %v are there, %v", left, err)
	}
	if len(find(t, n, "harbour")) == 0 {
		t.Error("reads are down")
	}
	_, err = capture(n, "must not be taken")
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Hint, "memctl log repair") {
		t.Errorf("a write: %v", err)
	}
}

// repairs has the log repaired, and checks that nothing is missing.
func repairs(t *testing.T, n *Node, want memory.ShardStatus) {
	t.Helper()
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(t, n, "life goes on")
	sound(t, n)
	onlyStream(t, n)
}

// TestRepairDidNotLookForRoom: it reserved a stream, sealed the old one and wrote
// until the disk was full.
func TestRepairDidNotLookForRoom(t *testing.T) {
	dir, want := rotten(t, 7)
	disk := newSmallDisk()
	n := open(t, disk.config(dir))
	info, err := n.served[0].stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	disk.free.Store(keptFree + info.Bytes/2)
	_, err = n.operator.RepairLog(t.Context(), nil)
	noRoom(t, n, err, "bytes more")
	if next := n.served[0].state.Cursor().Next; !next.IsZero() {
		t.Errorf("%v was reserved", next)
	}
	if streamConfig(t, n, "mneme-0").Sealed {
		t.Error("the old stream is sealed")
	}
	var missing uint64
	if _, err := fmt.Sscanf(memory.AsError(err).Hint, "free %d bytes more", &missing); err != nil || missing == 0 {
		t.Fatalf("how much is missing? %v", err)
	}
	disk.free.Add(missing)
	repairs(t, n, want)
}

// TestRepairFilledTheDisk: others filled the disk while a repair wrote. The copy
// stayed there, and the node had no way out: the next start went on with it.
func TestRepairFilledTheDisk(t *testing.T) {
	dir, want := rotten(t, 7)
	disk := newSmallDisk()
	n := open(t, disk.config(dir))
	n.beforeStep(func(name string) {
		if name == "fill" {
			disk.free.Store(keptFree - 1)
		}
	})
	_, err := n.operator.RepairLog(t.Context(), nil)
	n.beforeStep(nil)
	disk.free.Store(keptFree)
	noRoom(t, n, err, "free space")
	if n.served[0].state.Cursor().Next.IsZero() {
		t.Error("the copy was not begun")
	}
	shut(t, n)
	n = open(t, disk.config(dir)) // and it starts with as little
	noRoom(t, n, gaveUp(t, n), "bytes more")
	_, err = n.operator.RepairLog(t.Context(), nil)
	noRoom(t, n, err, "bytes more")
	disk.free.Store(enoughRoom)
	repairs(t, n, want)
}

// gaveUp waits until a start gives up a repair, and returns why as an error.
func gaveUp(t *testing.T, n *Node) error {
	t.Helper()
	await(t, "the repair to be given up", func() bool { return strings.Contains(n.served[0].replica.Diverged().Error(), "bytes") })
	if err := n.upkeep.inTurn(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	d := n.served[0].replica.Diverged()
	return memory.Errorf(memory.CodeNoSpace, "%s", d.Detail).WithHint("%s", d.Hint)
}

// TestKilledRepairWithoutRoomGivesItBack: the part that was copied before the kill
// kept the room that the node needed.
func TestKilledRepairWithoutRoomGivesItBack(t *testing.T) {
	dir, want := halfRepaired(t)
	disk := newSmallDisk()
	disk.free.Store(keptFree)
	for range 2 { // the second start finds a reservation and no stream
		n := open(t, disk.config(dir))
		noRoom(t, n, gaveUp(t, n), "bytes more")
		shut(t, n)
	}
	n := open(t, disk.config(dir))
	_ = gaveUp(t, n)
	disk.free.Store(enoughRoom)
	repairs(t, n, want)
}

// TestFullServerLeftHalfACopy: the log's server refused for want of room, as an
// external one does at its limit.
func TestFullServerLeftHalfACopy(t *testing.T) {
	dir, want := rotten(t, 7)
	n := open(t, quiet(dir))
	limit := sync.OnceFunc(func() {
		cfg := streamConfig(t, n, "mneme-0-1")
		cfg.MaxBytes = 1000
		if _, err := jetStreamOf(t, n).UpdateStream(t.Context(), cfg); err != nil {
			t.Error(err)
		}
	})
	n.beforeStep(func(name string) {
		if name == "filling" {
			limit()
		}
	})
	_, err := n.operator.RepairLog(t.Context(), nil)
	n.beforeStep(nil)
	noRoom(t, n, err, "free space where")
	repairs(t, n, want)
}

func jetStreamOf(t *testing.T, n *Node) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(n.nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func streamConfig(t *testing.T, n *Node, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := jetStreamOf(t, n).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

// TestCopyThatGoesFurtherStays: what only the reserved stream holds was
// acknowledged, so its removal would lose it.
func TestCopyThatGoesFurtherStays(t *testing.T) {
	dir, _ := rotten(t, 7)
	n := open(t, quiet(dir))
	r := &repair{shard: n.shards[0]}
	next, err := r.reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copied, err := n.served[0].stream.Create(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	left := func() int {
		t.Helper()
		r.removeCopy(t.Context())
		present, err := n.served[0].stream.Present(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(present)
	}
	src, done := r.kept(nil)
	if err := errors.Join(eventlog.Fill(t.Context(), copied, src), done()); err != nil {
		t.Fatal(err)
	}
	if err := copied.Append(context.Background(), []byte("acknowledged"), src.Last); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 2 {
		t.Errorf("%d streams are left", n)
	}
}

// TestRebuildOnAFullDiskWasAnInternalError: it said "internal", with exit code 1.
func TestRebuildOnAFullDiskWasAnInternalError(t *testing.T) {
	disk := newSmallDisk()
	n := open(t, disk.config(t.TempDir()))
	must(t, n, "a memory of the harbour")
	want := shardOf(t, n)
	disk.free.Store(0)
	_, err := n.operator.Rebuild(t.Context(), nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeNoSpace || !strings.Contains(e.Hint, "memctl rebuild") {
		t.Errorf("%v (%+v)", err, e)
	}
	if len(find(t, n, "harbour")) == 0 {
		t.Error("reads are down")
	}
	disk.free.Store(enoughRoom)
	report, err := n.operator.Rebuild(t.Context(), nil)
	if err != nil || report.Shards[0].StateHash != want.StateHash {
		t.Errorf("with room again: %+v, %v", report, err)
	}
}

// TestRestoreOnAFullDiskWasAnInternalError: the same, and what it had written is gone.
func TestRestoreOnAFullDiskWasAnInternalError(t *testing.T) {
	log, keys, _ := backedUp(t)
	disk := newSmallDisk()
	dir := filepath.Join(t.TempDir(), "new")
	off := Offline{Config: disk.config("")}
	disk.free.Store(0)
	_, err := off.Restore(t.Context(), dir, log, keys, nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeNoSpace || !strings.Contains(e.Hint, "memctl restore") {
		t.Errorf("%v (%+v)", err, e)
	}
	disk.free.Store(enoughRoom)
	if _, err := off.Restore(t.Context(), dir, log, keys, nil); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestWorkOnAStoppedNodeWithAFullDiskWasAnInternalError: so were all other verbs that
// apply what Raft's log holds first.
func TestWorkOnAStoppedNodeWithAFullDiskWasAnInternalError(t *testing.T) {
	dir, _ := killed(t)
	disk := newSmallDisk()
	disk.free.Store(0)
	off := Offline{Config: disk.config("")}
	_, err := off.RepairLog(t.Context(), dir, nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeNoSpace || e.Hint == "" {
		t.Errorf("%v (%+v)", err, e)
	}
	disk.free.Store(enoughRoom)
	if _, err := off.RepairLog(t.Context(), dir, nil); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("with room again: %v", err)
	}
}

// TestWorkThatReadsNeedsNoRoom: after a kill on a full disk doctor, verify and backup
// waited for ever for room to apply what Raft's log holds, or refused.
func TestWorkThatReadsNeedsNoRoom(t *testing.T) {
	dir, want := killed(t)
	disk := newSmallDisk()
	disk.free.Store(0)
	off := Offline{Config: disk.config("")}
	for _, lost := range []int{0, 5} {
		copied := image(t, dir)
		if lost > 0 {
			cutLog(t, copied, lost)
		}
		d, err := off.Doctor(t.Context(), copied)
		warned := slices.ContainsFunc(d.Checks, func(c memory.Check) bool {
			return c.Name == "state" && c.State == "warn" && strings.Contains(c.Hint, "space") && strings.Contains(c.Detail, "frames")
		})
		if err != nil || d.OK != (lost == 0) || !warned {
			t.Errorf("%d lost: doctor %+v, %v", lost, d, err)
		}
		code := ""
		if lost > 0 {
			code = string(memory.CodeLogDiverged)
		}
		if r, err := off.VerifyLog(t.Context(), copied, nil); string(memory.CodeOf(err)) != code && (len(r.Shards) == 0 || r.Shards[0].OK) {
			t.Errorf("%d lost: verify %+v, %v", lost, r, err)
		}
		r, err := off.Backup(t.Context(), copied, filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "keys"), nil)
		if string(memory.CodeOf(err)) != code || lost == 0 && r.Position != want.Position {
			t.Errorf("%d lost: backup %+v, %v", lost, r, err)
		}
	}
}

// TestRestoreWithoutRoomForTheLog: the log says so in words of its own.
func TestRestoreWithoutRoomForTheLog(t *testing.T) {
	err := restoreError("dir", fmt.Errorf("publish: %w: %w", eventlog.ErrUnknown, eventlog.ErrNoSpace))
	if e := memory.AsError(err); e.Code != memory.CodeNoSpace || !strings.Contains(e.Hint, "memctl restore") {
		t.Errorf("%v (%+v)", err, e)
	}
	if err := restoreError("dir", eventlog.ErrUnknown); memory.CodeOf(err) == memory.CodeNoSpace {
		t.Errorf("%v", err)
	}
}

// fullFor fails to write one file for want of room.
type fullFor struct {
	*smallDisk
	name string
}

func (d fullFor) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if filepath.Base(name) == d.name {
		return nil, syscall.ENOSPC
	}
	return d.smallDisk.Create(name, c)
}

// TestRestoreWithoutRoomForItsMark: it was called invalid.
func TestRestoreWithoutRoomForItsMark(t *testing.T) {
	log, keys, _ := backedUp(t)
	disk := newSmallDisk()
	cfg := disk.config("")
	cfg.FS = fullFor{disk, restoringMark}
	_, err := Offline{Config: cfg}.Restore(t.Context(), filepath.Join(t.TempDir(), "new"), log, keys, nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeNoSpace || !strings.Contains(e.Hint, "memctl restore") {
		t.Errorf("%v (%+v)", err, e)
	}
}

// TestStartThatBuildsTheStateWithoutRoom: it ended without a hint.
func TestStartThatBuildsTheStateWithoutRoom(t *testing.T) {
	dir, _ := filled(t)
	if err := os.RemoveAll(filepath.Join(dir, "shards")); err != nil {
		t.Fatal(err)
	}
	disk := newSmallDisk()
	disk.free.Store(100 << 20)
	cfg := disk.config(dir)
	cfg.ReserveBytes = DefaultReserveBytes
	var e *StartError
	if _, err := Open(t.Context(), cfg); !errors.As(err, &e) || !strings.Contains(e.Hint, "free some space") || !strings.Contains(e.Message, "bytes free") {
		t.Errorf("%+v", err)
	}
}

// TestStartWaitedForRoom: a node that was killed served what its state held on disk, so
// that what was forgotten was found again. And a node that found too little room for its first term took
// connections and answered none, though the disk was not too full to start.
func TestStartWaitedForRoom(t *testing.T) {
	for name, stopped := range map[string]func(*testing.T) (string, memory.ShardStatus){"stopped": filled, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			dir, want := stopped(t)
			disk := newSmallDisk()
			disk.free.Store(DefaultReserveBytes/2 - 1)
			cfg := disk.config(dir)
			cfg.ReserveBytes = DefaultReserveBytes
			cfg.Namespaces = []string{"default", "later"}
			for _, again := range []bool{false, true} { // the first one is closed while it waits
				n := openSoon(t, cfg)
				// The first one has begun a term in the log, which the second one's state lacks.
				lacks := name == "killed" || again
				if !lacks && len(find(t, n, "harbour")) == 0 {
					t.Error("reads are down")
				}
				if lacks {
					readsAreRefused(t, n)
				}
				if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeNoSpace {
					t.Errorf("a write: %v", err)
				}
				ready, checks := n.doctor.Ready()
				if writes := checks[len(checks)-1]; ready == lacks || writes.Name != "writes" || writes.State != "warn" {
					t.Errorf("ready %v, %+v", ready, checks)
				}
				if !again {
					shut(t, n)
					continue
				}
				disk.free.Store(enoughRoom)
				await(t, "the late start", func() bool {
					_, err := n.reads.Namespace(t.Context(), "later")
					return err == nil
				})
				if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" || got.Lacks > 0 {
					t.Errorf("%+v, want %+v", got, want)
				}
				if ready, checks := n.doctor.Ready(); !ready {
					t.Errorf("with room: %+v", checks)
				}
				must(t, n, "life goes on")
			}
		})
	}
}

// readsAreRefused expects of a node whose state lacks what it held before the kill that
// nothing is read from it, and that status and doctor say why.
func readsAreRefused(t *testing.T, n *Node) {
	t.Helper()
	for what, read := range map[string]func() error{
		"search": func() error {
			_, err := n.reads.Search(t.Context(), memory.Access{Namespace: "default"}, memory.SearchRequest{Query: "harbour"})
			return err
		},
		"export":     func() error { _, err := exportOf(t, n); return err },
		"namespaces": func() error { _, err := n.reads.Namespaces(t.Context(), memory.NamespacesRequest{}); return err },
		"namespace":  func() error { _, err := n.reads.Namespace(t.Context(), "default"); return err },
	} {
		if e := memory.AsError(read()); e == nil || e.Code != memory.CodeNoSpace || !strings.Contains(e.Hint, "free some space") {
			t.Errorf("%s of an older past: %v", what, e)
		}
	}
	if got := shardOf(t, n).Lacks; got == 0 {
		t.Errorf("the status says that %d frames are lacking", got)
	}
	if _, checks := n.doctor.Ready(); checks[0].State != "fail" || !strings.Contains(checks[0].Detail, "frames of the log") {
		t.Errorf("%+v", checks[0])
	}
}

// openSoon is open, but does not wait for ever.
func openSoon(t *testing.T, cfg Config) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n, err := Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, n) })
	return n
}
