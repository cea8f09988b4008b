package raftfsm

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"mneme/internal/storage"
)

// afterPowerLoss is what a disk holds that kept nothing but what was synced.
func afterPowerLoss(disk *vfs.MemFS) *vfs.MemFS { return disk.CrashClone(vfs.CrashCloneCfg{}) }

func TestMembershipSurvivesPowerLoss(t *testing.T) {
	disk := vfs.NewCrashableMem()
	if err := storage.MkdirAll(disk, "/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := openMemberFile(disk, "/a/b/membership")
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 3; i++ {
		conf := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(fmt.Sprint("n", i)), Address: "x"}}}
		if err := m.save(i, conf); err != nil {
			t.Fatal(err)
		}
		after, err := openMemberFile(afterPowerLoss(disk), "/a/b/membership")
		if err != nil {
			t.Fatalf("save %d: %v", i, err)
		}
		if index, got, known := after.get(); !known || index != i || !reflect.DeepEqual(got, conf) {
			t.Fatalf("save %d: %d %+v %v", i, index, got, known)
		}
	}
}

// A snapshot for which raft may cut its log is there, with every file, after a
// loss of power; one that was set aside is aside.
func TestSnapshotSurvivesPowerLoss(t *testing.T) {
	disk := vfs.NewCrashableMem()
	open := func(disk *vfs.MemFS) *snapshotStore {
		members, err := openMemberFile(disk, "/raft/membership")
		if err != nil {
			t.Fatal(err)
		}
		s, err := openSnapshotStore(disk, "/raft/snapshots", members, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(disk)
	machine := newMachineOn(t, disk, "/state")
	if _, err := machine.Apply([]Entry{{Index: 5, Term: 2, Data: []byte("a=1")}}); err != nil {
		t.Fatal(err)
	}
	f := &fsm{machine: machine, snaps: s, dir: "/raft/restore", progress: newProgress(0), log: slog.New(slog.DiscardHandler)}
	cp, err := f.checkpoint(5, 2)
	if err != nil {
		t.Fatal(err)
	}
	conf := raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "x"}}}
	sink, err := s.Create(1, 5, 2, conf, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Persist(sink); err != nil {
		t.Fatal(err)
	}

	crashed := afterPowerLoss(disk)
	after := open(crashed)
	if after.latest() == nil || after.latest().id != sink.ID() || len(after.damaged) != 0 {
		t.Fatalf("the snapshot is gone: %+v", after)
	}
	got := newMachineOn(t, crashed, "/state2")
	f = &fsm{machine: got, snaps: after, dir: "/raft/restore", progress: newProgress(0), log: slog.New(slog.DiscardHandler)}
	_, r, err := after.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Restore(r), r.Close()); err != nil {
		t.Fatal(err)
	}
	if got.get().Rows["a"] != "1" {
		t.Fatalf("%+v", got.get())
	}

	streamed := vfs.NewCrashableMem()
	_, r, err = after.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	received, err := open(streamed).Create(1, 5, 2, conf, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(received, r); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(received.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	streamed = afterPowerLoss(streamed)
	got = newMachineOn(t, streamed, "/state")
	l := &fsm{machine: got, snaps: open(streamed), dir: "/raft/restore", progress: newProgress(0), log: slog.New(slog.DiscardHandler)}
	if err := restoreSnapshot(l, l.snaps, received.ID()); err != nil || got.get().Rows["a"] != "1" {
		t.Fatalf("a snapshot from a peer: %v, %+v", err, got.get())
	}

	after.discard(sink.ID())
	if err := after.setAside(); err != nil {
		t.Fatal(err)
	}
	if s := open(afterPowerLoss(crashed)); s.latest() != nil {
		t.Fatal("a snapshot that was set aside came back")
	}

	// What was removed for good does not come back: it may hold what was erased.
	last := open(crashed)
	if err := last.removeUpTo(last.newest()); err != nil {
		t.Fatal(err)
	}
	names, err := afterPowerLoss(crashed).List("/raft/snapshots")
	if err != nil || len(names) != 0 {
		t.Fatalf("after removing all: %v, %v", names, err)
	}
}

// The copy that takes raft.db's place is on stable storage before it does.
func TestCopyOfRaftDBSurvivesPowerLoss(t *testing.T) {
	from, to := &MemDisk{}, &MemDisk{NoSync: true}
	if err := errors.Join(from.Set([]byte(keyCurrentTerm), framer{}.sealValue([]byte(keyCurrentTerm), []byte("12345678"))),
		from.StoreLogs([]*raft.Log{{Index: 7, Term: 2, Data: framer{}.sealEntry(&raft.Log{Index: 7, Term: 2, Data: []byte("a")})}})); err != nil {
		t.Fatal(err)
	}
	if err := copyDB(from, to, framer{}); err != nil {
		t.Fatal(err)
	}
	to.Crash()
	if last, _ := to.LastIndex(); last != 7 {
		t.Fatalf("the copy ends at %d", last)
	}
	if _, err := to.Get([]byte(keyCurrentTerm)); err != nil {
		t.Fatal(err)
	}
}

// syncedKV is a store that keeps over a loss of power what was synced.
type syncedKV struct {
	boltKV
	values, synced map[string]string
}

func (k *syncedKV) Set(key, value []byte) error {
	k.values[string(key)] = string(value)
	return nil
}

func (k *syncedKV) Sync() error {
	for key, v := range k.values {
		k.synced[key] = v
	}
	return nil
}

// Entries need not be synced where there is one voter; term and vote always are.
func TestVoteSurvivesPowerLossWithoutSync(t *testing.T) {
	kv := &syncedKV{values: map[string]string{}, synced: map[string]string{}}
	s := &stableStore{kv: kv, noSync: true, failed: func(err error) { t.Error(err) }}
	if err := s.SetUint64([]byte(keyCurrentTerm), 7); err != nil {
		t.Fatal(err)
	}
	if kv.synced[keyCurrentTerm] == "" {
		t.Fatal("the term is not on stable storage")
	}
	if err := s.SetUint64([]byte(keyLastVoteTerm), 7); err != nil {
		t.Fatal(err)
	}
	if err := s.Set([]byte(keyLastVoteCand), []byte("n1")); err != nil {
		t.Fatal(err)
	}
	if kv.synced[keyVote] == "" {
		t.Fatal("the vote is not on stable storage")
	}
}

// After an error of the disk nothing is known about what it holds, so neither a
// vote nor an entry may follow, also if the disk then takes writes again.
func TestNoVoteAfterAnErrorOfTheDisk(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	if err := s.log.StoreLog(&raft.Log{Index: 1, Term: 1}); err != nil {
		t.Fatal(err)
	}
	s.kv.set("store", errBoom)
	if err := s.log.StoreLog(&raft.Log{Index: 2, Term: 1}); !errors.Is(err, ErrStorage) {
		t.Fatal(err)
	}
	s.kv.set("store", nil)
	if err := s.persistVote(2, "n2"); !errors.Is(err, errBoom) {
		t.Fatalf("a vote after a failed write: %v", err)
	}
	if err := s.log.StoreLog(&raft.Log{Index: 2, Term: 1}); !errors.Is(err, errBoom) {
		t.Fatalf("an entry after a failed write: %v", err)
	}
	if term, cand := s.vote(t); term != 0 || cand != "" {
		t.Fatalf("voted %d %q", term, cand)
	}
}

// cuttingKV lets a test act between a cut of the log and the note of it.
type cuttingKV struct {
	boltKV
	after func()
}

func (k *cuttingKV) DeleteRange(from, to uint64) error {
	err := k.boltKV.DeleteRange(from, to)
	if k.after != nil {
		k.after()
	}
	return err
}

// raft cuts the log after a snapshot while its leader appends. The entry that
// came in between once fell out of the log's bounds: it stayed behind as the
// beginning of a gap, which the next open took for damage.
func TestEntryAppendedDuringACutStaysInTheLog(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	cut := &cuttingKV{boltKV: s.kv}
	live := &liveDB{kv: cut}
	s.stable.kv = live
	log, err := newLogStore(live, framer{}, s.stable, s.log.members, s.events, s.log.clock)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 3; i++ {
		if err := log.StoreLog(&raft.Log{Index: i, Term: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var appended sync.WaitGroup
	cut.after = func() {
		began := make(chan struct{})
		done := make(chan struct{})
		appended.Go(func() {
			close(began)
			if err := log.StoreLog(&raft.Log{Index: 4, Term: 1}); err != nil {
				t.Error(err)
			}
			close(done)
		})
		<-began
		if log.writing.TryLock() { // nobody keeps the append waiting
			log.writing.Unlock()
			<-done
		}
	}
	if err := log.DeleteRange(1, 3); err != nil {
		t.Fatal(err)
	}
	appended.Wait()
	first, _ := log.FirstIndex()
	last, _ := log.LastIndex()
	if first != 4 || last != 4 {
		t.Fatalf("the log is %d..%d, want 4..4", first, last)
	}
}

// renameFS counts the renames since the last sync of a folder: those that a loss
// of power may take back.
type renameFS struct {
	vfs.FS
	mu       sync.Mutex
	unsynced int
}

func (f *renameFS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unsynced++
	return f.FS.Rename(from, to)
}

func (f *renameFS) OpenDir(dir string) (vfs.File, error) {
	d, err := f.FS.OpenDir(dir)
	return renameDir{d, f}, err
}

func (f *renameFS) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsynced
}

type renameDir struct {
	vfs.File
	fs *renameFS
}

func (d renameDir) Sync() error {
	d.fs.mu.Lock()
	defer d.fs.mu.Unlock()
	d.fs.unsynced = 0
	return d.File.Sync()
}

// namesFS knows which files of a folder a loss of power would leave under their
// names: those that were there when the folder was last synced.
type namesFS struct {
	vfs.FS
	dir    string
	synced map[string]os.FileInfo
}

// filesIn lists a folder's files as they are now.
func filesIn(dir string) (map[string]os.FileInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]os.FileInfo{}
	for _, e := range entries {
		if out[e.Name()], err = os.Stat(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f *namesFS) OpenDir(dir string) (vfs.File, error) {
	d, err := f.FS.OpenDir(dir)
	return namesDir{d, f, dir}, err
}

type namesDir struct {
	vfs.File
	fs  *namesFS
	dir string
}

func (d namesDir) Sync() (err error) {
	if d.dir == d.fs.dir {
		if d.fs.synced, err = filesIn(d.dir); err != nil {
			return err
		}
	}
	return d.File.Sync()
}

// bolt syncs what is in raft.db and not its name. A vote in a file that a loss of
// power takes away has never been given, and one that was moved aside and comes
// back brings its terms with it.
func TestNameOfRaftDBSurvivesPowerLoss(t *testing.T) {
	for what, before := range map[string]func(t *testing.T, dir string){
		"a new group":  func(*testing.T, string) {},
		"raft.db lost": func(t *testing.T, dir string) { openShard(t, dir).lead(t).close(t); mustRemove(t, dbFile(dir)) },
		"raft.db damaged": func(t *testing.T, dir string) {
			s := openShard(t, dir).lead(t)
			s.putMany(t, 0, 5)
			s.close(t)
			if err := os.Truncate(dbFile(dir), 8192); err != nil {
				t.Fatal(err)
			}
		},
		"a start that was killed": func(t *testing.T, dir string) {
			kv, err := openBolt(dbFile(dir), true)
			if err := errors.Join(err, kv.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "raft"), 0o700); err != nil {
				t.Fatal(err)
			}
			before(t, dir)
			names := &namesFS{FS: vfs.Default, dir: filepath.Join(dir, "raft")}
			s := openShard(t, dir, func(o *Options) { o.dbFS = names }).lead(t)
			files, err := filesIn(names.dir)
			if err != nil {
				t.Fatal(err)
			}
			for name, is := range files {
				if strings.HasPrefix(name, "raft.db") && !os.SameFile(is, names.synced[name]) {
					t.Errorf("%s is not there after a loss of power, or another file is", name)
				}
			}
			if err := s.group.Renew(testCtx(t)); err != nil {
				t.Fatal(err)
			}
			for name := range names.synced {
				if _, err := os.Stat(filepath.Join(names.dir, name)); err != nil {
					t.Errorf("%s was removed and is there after a loss of power", name)
				}
			}
		})
	}
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
