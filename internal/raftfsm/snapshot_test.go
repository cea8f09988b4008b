package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

func TestSnapshotTruncatesAndRestarts(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	for round := range 4 {
		s.putMany(t, round*20, round*20+20)
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	st := s.group.Stats()
	if st.FirstIndex != 0 || st.Snapshots != 2 || st.SnapshotIndex != st.MachineIndex {
		t.Fatalf("after snapshots: %+v", st)
	}
	s.putMany(t, 80, 90)
	want := s.machine.get()
	s.close(t)
	s = openShard(t, dir).lead(t)
	if got := s.machine.get(); !reflect.DeepEqual(got, want) {
		t.Fatalf("after restart: %+v", got)
	}
	if s.group.Stats().Repair != (Repair{}) {
		t.Fatalf("repaired: %+v", s.group.Stats().Repair)
	}
	s.putMany(t, 90, 100)
	checkRows(t, s.machine.get(), 100)
}

// The index behind a snapshot may be a no-op or a membership, which the machine
// never sees. A restart must not take the machine for outdated then.
func TestSnapshotBehindMarkersDoesNotRestore(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 5)
	for range 3 {
		if err := s.group.Barrier(testCtx(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if st := s.group.Stats(); st.SnapshotIndex <= st.MachineIndex {
		t.Fatalf("the test needs markers behind the last command: %+v", st)
	}
	s.close(t)
	s = openShard(t, dir, func(o *Options) {
		o.Machine.(*fileMachine).failNext["restore"] = errBoom
	}).lead(t)
	checkRows(t, s.machine.get(), 5)
	if st := s.group.Stats(); st.Repair != (Repair{}) {
		t.Fatalf("%+v", st.Repair)
	}
}

func TestGrowthTakesSnapshots(t *testing.T) {
	for name, opt := range map[string]func(*Options){
		"entries": func(o *Options) { o.SnapshotThreshold = 32 },
		"bytes":   func(o *Options) { o.SnapshotBytes = 300 },
	} {
		t.Run(name, func(t *testing.T) {
			s := openShard(t, t.TempDir(), opt).lead(t)
			for i := 0; s.group.Stats().SnapshotIndex == 0; i++ {
				s.putMany(t, i*10, i*10+10)
				if i > 500 {
					t.Fatal("no snapshot after 5,000 commands")
				}
			}
		})
	}
}

// Raft may cut its log only behind what the machine has on stable storage.
func TestFailedFlushKeepsTheLog(t *testing.T) {
	for _, op := range []string{"flush", "checkpoint"} {
		s := openShard(t, t.TempDir()).lead(t)
		s.putMany(t, 0, 10)
		s.machine.mu.Lock()
		s.machine.failNext[op] = errBoom
		s.machine.mu.Unlock()
		if err := s.group.Snapshot(); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Fatalf("%s: %v", op, err)
		}
		if st := s.group.Stats(); st.FirstIndex != 1 || st.Snapshots != 0 {
			t.Fatalf("%s: the log was cut: %+v", op, st)
		}
		left, err := os.ReadDir(s.group.opt.snapshotsDir())
		if err != nil || len(left) != 0 {
			t.Fatalf("%s: left behind %v %v", op, left, err)
		}
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStateLostIsRestoredFromSnapshot(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 20)
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.putMany(t, 20, 30)
	want := s.machine.get()
	s.close(t)
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	s = openShard(t, dir).lead(t)
	if got := s.machine.get(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
	if s.group.Stats().Repair.RestoredFrom == "" {
		t.Fatal("restore is not reported")
	}
}

// Every byte of a snapshot is covered: a flipped bit anywhere is refused, the
// old state stays, and an older snapshot serves where the log reaches back to it.
func TestRestoreRefusesFlippedBits(t *testing.T) {
	base := t.TempDir()
	s := openShard(t, base).lead(t)
	s.putMany(t, 0, 5)
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	if err := os.RemoveAll(filepath.Join(base, "state")); err != nil {
		t.Fatal(err)
	}
	snaps, _ := filepath.Glob(filepath.Join(base, "raft", "snapshots", "*"))
	if len(snaps) != 1 {
		t.Fatal(snaps)
	}
	n := 0
	for _, name := range []string{"MANIFEST", "data/state.json", "data/sub/index"} {
		size := fileSize(t, filepath.Join(snaps[0], name))
		for off := int64(0); off < size; off += 1 + size/13 {
			dir := t.TempDir()
			copyTree(t, base, dir)
			flipBit(t, filepath.Join(dir, "raft", "snapshots", filepath.Base(snaps[0]), name), off, uint(off)%8)
			_, err := tryOpenShard(t, dir)
			if err == nil {
				t.Fatalf("%s+%d: accepted", name, off)
			}
			if name != "MANIFEST" && (!errors.Is(err, ErrStateLost) || !errors.Is(err, ErrCorruptSnapshot)) {
				t.Fatalf("%s+%d: %v", name, off, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "state", "state.json")); err == nil {
				t.Fatalf("%s+%d: the state was touched", name, off)
			}
			n++
		}
	}
	t.Logf("%d flips refused", n)
}

func TestOlderSnapshotBridges(t *testing.T) {
	dir := t.TempDir()
	keep := func(o *Options) { o.TrailingLogs = 100 }
	s := openShard(t, dir, keep).lead(t)
	for i := range 2 {
		s.putMany(t, i*10, i*10+10)
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	newest := s.group.snaps.latest().id
	s.close(t)
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	flipBit(t, filepath.Join(dir, "raft", "snapshots", newest, "data", "state.json"), 3, 1)
	s = openShard(t, dir, keep).lead(t)
	checkRows(t, s.machine.get(), 20)
	if from := s.group.Stats().Repair.RestoredFrom; from == "" || from == newest {
		t.Fatalf("restored from %q", from)
	}
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func flipBit(t testing.TB, path string, off int64, bit uint) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
}

func newTestSnapStore(t testing.TB, dir string) *snapshotStore {
	t.Helper()
	s, err := openSnapshotStore(vfs.Default, dir, &memberFile{fs: vfs.Default, path: filepath.Join(t.TempDir(), "membership")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func adoptSnapshot(t testing.TB, s *snapshotStore, index uint64, files map[string]string) string {
	t.Helper()
	tmp, err := s.tempDir()
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range files {
		p := filepath.Join(tmp, "data", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sink, err := s.Create(1, index, 3, raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "b"}}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.(*snapshotSink).adopt(tmp, index, 3, 0); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return sink.ID()
}

func TestSnapshotStreamRoundTrip(t *testing.T) {
	from, to := newTestSnapStore(t, t.TempDir()), newTestSnapStore(t, t.TempDir())
	files := map[string]string{"a": "", "b/c": strings.Repeat("x", 100_000), "d": "tail"}
	id := adoptSnapshot(t, from, 7, files)
	meta, r, err := from.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := to.Create(1, 7, 3, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(sink, r)
	if err != nil || n != meta.Size {
		t.Fatalf("copied %d of %d: %v", n, meta.Size, err)
	}
	if err := errors.Join(r.Close(), sink.Close(), sink.Close(), sink.Cancel()); err != nil {
		t.Fatal(err)
	}
	got := to.latest()
	if !reflect.DeepEqual(got.man, from.latest().man) {
		t.Fatalf("manifest %+v, want %+v", got.man, from.latest().man)
	}
	for name, body := range files {
		b, err := os.ReadFile(filepath.Join(to.dataDir(got.id), name))
		if err != nil || string(b) != body {
			t.Fatalf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := sink.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("write after close: %v", err)
	}
	if _, _, err := to.Open("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := to.Create(0, 1, 1, raft.Configuration{}, 1, nil); err == nil {
		t.Fatal("version 0 accepted")
	}
}

func TestSnapshotStreamRefusesDamage(t *testing.T) {
	from := newTestSnapStore(t, t.TempDir())
	id := adoptSnapshot(t, from, 7, map[string]string{"a": "hello", "b": "world"})
	_, r, err := from.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	to := newTestSnapStore(t, dir)
	send := func(b []byte) error {
		sink, err := to.Create(1, 7, 3, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, werr := io.Copy(sink, bytes.NewReader(b))
		return errors.Join(werr, sink.Close())
	}
	for off := range whole {
		bad := bytes.Clone(whole)
		bad[off] ^= 0x10
		if err := send(bad); err == nil {
			t.Fatalf("byte %d: accepted", off)
		}
		if err := send(whole[:off]); err == nil {
			t.Fatalf("cut at %d: accepted", off)
		}
	}
	if err := send(append(bytes.Clone(whole), 0)); err == nil {
		t.Fatal("a tail was accepted")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 || to.count() != 0 {
		t.Fatalf("left behind: %v", left)
	}
	if err := send(whole); err != nil {
		t.Fatal(err)
	}
	sink, _ := to.Create(1, 9, 3, raft.Configuration{}, 1, nil)
	if _, err := sink.Write(whole[:20]); err != nil {
		t.Fatal(err)
	}
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Fatalf("cancel left %v", left)
	}
}

func TestSnapshotStoreKeepsTwoAndOpenOnes(t *testing.T) {
	dir := t.TempDir()
	s := newTestSnapStore(t, dir)
	first := adoptSnapshot(t, s, 1, map[string]string{"f": "1"})
	_, r, err := s.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(2); i <= 5; i++ {
		adoptSnapshot(t, s, i, map[string]string{"f": fmt.Sprint(i)})
	}
	if b, err := io.ReadAll(r); err != nil || !strings.HasSuffix(string(b), "1") {
		t.Fatalf("the open snapshot was pulled away: %v", err)
	}
	if s.count() != 3 {
		t.Fatalf("%d snapshots", s.count())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp-half", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, snapshotID(99, 9, 9)), 0o700); err != nil { // no manifest
		t.Fatal(err)
	}
	s = newTestSnapStore(t, dir)
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Index != 5 || list[1].Index != 4 {
		t.Fatalf("%v %v", list, err)
	}
	if err := s.setAside(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(names) != 3 || !strings.Contains(strings.Join(names, " "), "damaged-"+snapshotID(99, 9, 9)) {
		t.Fatalf("on disk: %v", names)
	}
	// The same index twice is two snapshots, the later one first.
	again := adoptSnapshot(t, s, 5, map[string]string{"f": "5b"})
	if s.latest().id != again {
		t.Fatalf("latest is %s, want %s", s.latest().id, again)
	}
}

// A checkpoint links files that the last snapshot already holds; their sums are
// taken over, and only if it is the very same file.
func TestSumsAreReusedOnlyForTheSameFile(t *testing.T) {
	s := newTestSnapStore(t, t.TempDir())
	id := adoptSnapshot(t, s, 1, map[string]string{"sst": "old bytes", "log": "old bytes"})
	tmp := t.TempDir()
	if err := os.Link(filepath.Join(s.dataDir(id), "sst"), filepath.Join(tmp, "sst")); err != nil {
		t.Skip("no hard links here:", err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "log"), []byte("new bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	known := s.previousFiles()
	for name, k := range known { // a sum that gives away whether it was reused
		k.sha256 = strings.Repeat("ab", 32)
		known[name] = k
	}
	files, err := describeFiles(vfs.Default, tmp, known)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	if files[0].Name != "log" || files[0].SHA256 == strings.Repeat("ab", 32) {
		t.Fatalf("another file's sum was reused: %+v", files[0])
	}
	if files[1].SHA256 != strings.Repeat("ab", 32) {
		t.Fatalf("the same file was read again: %+v", files[1])
	}
}

// A replica that was away while a few thousand small entries were written was sent the whole
// state, though they were far smaller.
func TestReplicaThatWasAwayWasSentTheWholeState(t *testing.T) {
	c := openCluster(t, 3, func(o *Options) { o.SnapshotThreshold = 500 })
	c.join(t, 1)
	c.join(t, 2)
	lead := c.leader(t)
	away := 1
	if c.shards[away] == lead {
		away = 2
	}
	c.shards[away].close(t)
	c.shards[away] = nil
	lead.putMany(t, 0, 2*defaultTrailingLogs)
	if err := lead.group.snapshot(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		t.Fatal(err)
	}
	c.open(t, away)
	c.same(t, lead.put(t, "last=1"))
	if n := c.shards[away].group.snaps.count(); n != 0 {
		t.Errorf("it was sent %d snapshots", n)
	}
	if first := lead.group.Stats().FirstIndex; first != 2 {
		t.Errorf("the log begins at %d: a replica that has nothing is to be sent a snapshot", first)
	}
}

// The first entry of a long log is cut off for a snapshot that has it, and not before there is one.
func TestFirstEntryIsInASnapshotBeforeItIsCutOff(t *testing.T) {
	lead := openCluster(t, 1).shards[0]
	lead.putMany(t, 0, defaultTrailingLogs+10)
	for _, want := range []uint64{1, 2} {
		if err := cutFirst(lead.group); err != nil {
			t.Fatal(err)
		}
		if first := lead.group.store.firstIndex(); first != want {
			t.Fatalf("the log begins at %d, want %d", first, want)
		}
		if err := lead.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
}
