package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

// faultKV fails the operations that a test names, and counts how often it did.
type faultKV struct {
	boltKV
	mu   sync.Mutex
	fail map[string]error // by operation; "set <key>" for one key
	hits int
}

func (f *faultKV) hit(ops ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, op := range ops {
		if err := f.fail[op]; err != nil {
			f.hits++
			return err
		}
	}
	return nil
}

func (f *faultKV) set(op string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		f.fail = map[string]error{}
	}
	f.fail[op] = err
}

func (f *faultKV) Set(key, value []byte) error {
	if err := f.hit("set", "set "+string(key)); err != nil {
		return err
	}
	return f.boltKV.Set(key, value)
}

func (f *faultKV) StoreLogs(logs []*raft.Log) error {
	if err := f.hit("store"); err != nil {
		return err
	}
	return f.boltKV.StoreLogs(logs)
}

func (f *faultKV) DeleteRange(from, to uint64) error {
	if err := f.hit("delete"); err != nil {
		return err
	}
	return f.boltKV.DeleteRange(from, to)
}

func (f *faultKV) GetLog(index uint64, l *raft.Log) error {
	if err := f.hit("get", fmt.Sprintf("get %d", index)); err != nil {
		return err
	}
	return f.boltKV.GetLog(index, l)
}

type countingEvents struct {
	mu      sync.Mutex
	failed  []error
	standIn bool
}

func (e *countingEvents) storeFailed(_ uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = append(e.failed, err)
}
func (e *countingEvents) entryUnreadable(uint64, error) bool { return e.standIn }
func (e *countingEvents) logGrew(uint64, int64)              {}

type testStores struct {
	path   string
	kv     *faultKV
	log    *logStore
	stable *stableStore
	events *countingEvents
}

func openTestStores(t *testing.T, path string) *testStores {
	t.Helper()
	kv, err := openBolt(path, true)
	if err != nil {
		t.Fatal(err)
	}
	s := &testStores{path: path, kv: &faultKV{boltKV: kv}, events: &countingEvents{}}
	live := &liveDB{kv: s.kv}
	s.stable = &stableStore{kv: live, noSync: true, failed: func(err error) { s.events.storeFailed(0, err) }}
	s.log, err = newLogStore(live, framer{}, s.stable, &memberFile{fs: vfs.Default, path: path + ".members"}, s.events, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kv.Close() })
	return s
}

func (s *testStores) reopen(t *testing.T) *testStores {
	t.Helper()
	if err := s.kv.Close(); err != nil {
		t.Fatal(err)
	}
	return openTestStores(t, s.path)
}

func (s *testStores) vote(t *testing.T) (uint64, string) {
	t.Helper()
	term, err := s.stable.GetUint64([]byte(keyLastVoteTerm))
	if err != nil && err.Error() != "not found" {
		t.Fatal(err)
	}
	cand, err := s.stable.Get([]byte(keyLastVoteCand))
	if err != nil && err.Error() != "not found" {
		t.Fatal(err)
	}
	return term, string(cand)
}

func (s *testStores) persistVote(term uint64, cand string) error { // as raft v1.7.3 does it
	if err := s.stable.SetUint64([]byte(keyLastVoteTerm), term); err != nil {
		return err
	}
	return s.stable.Set([]byte(keyLastVoteCand), []byte(cand))
}

// A vote is there as a whole or not at all, wherever the crash or the fault comes.
func TestVoteIsAtomic(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	if term, cand := s.vote(t); term != 0 || cand != "" {
		t.Fatalf("fresh store voted %d %q", term, cand)
	}
	if err := s.persistVote(3, "old"); err != nil {
		t.Fatal(err)
	}
	// Crash between the two calls.
	if err := s.stable.SetUint64([]byte(keyLastVoteTerm), 4); err != nil {
		t.Fatal(err)
	}
	if term, cand := s.vote(t); term != 3 || cand != "old" {
		t.Fatalf("half a vote is visible: %d %q", term, cand)
	}
	s = s.reopen(t)
	if term, cand := s.vote(t); term != 3 || cand != "old" {
		t.Fatalf("half a vote survived: %d %q", term, cand)
	}
	// The write itself fails.
	s.kv.set("set "+keyVote, syscall.ENOSPC)
	if err := s.persistVote(4, "new"); !errors.Is(err, ErrStorage) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("failed vote: %v", err)
	}
	if s.kv.hits != 1 {
		t.Fatal("the fault did not bite")
	}
	s.kv.set("set "+keyVote, nil)
	// A candidate without its term is refused, not paired with an old one.
	if err := s.stable.Set([]byte(keyLastVoteCand), []byte("x")); !errors.Is(err, ErrStorage) {
		t.Fatalf("lone candidate: %v", err)
	}
	s = s.reopen(t)
	if term, cand := s.vote(t); term != 3 || cand != "old" {
		t.Fatalf("%d %q", term, cand)
	}
	if err := s.persistVote(4, "new"); err != nil {
		t.Fatal(err)
	}
	s = s.reopen(t)
	if term, cand := s.vote(t); term != 4 || cand != "new" {
		t.Fatalf("%d %q", term, cand)
	}
}

// raft panics if the term cannot be written; the store carries it in memory, and
// neither votes nor stores until it is on disk.
func TestUnsavedTermBlocksVotesAndEntries(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	s.kv.set("set", syscall.ENOSPC)
	if err := s.stable.SetUint64([]byte(keyCurrentTerm), 9); err != nil {
		t.Fatal(err)
	}
	if term, err := s.stable.GetUint64([]byte(keyCurrentTerm)); err != nil || term != 9 {
		t.Fatal(term, err)
	}
	if err := s.persistVote(9, "a"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := s.log.StoreLog(&raft.Log{Index: 1, Term: 9}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if len(s.events.failed) != 0 {
		t.Fatalf("a full disk is not the end: %v", s.events.failed)
	}
	s.kv.set("set", nil)
	if err := s.log.StoreLog(&raft.Log{Index: 1, Term: 9}); err != nil {
		t.Fatal(err)
	}
	s = s.reopen(t)
	if term, err := s.stable.GetUint64([]byte(keyCurrentTerm)); err != nil || term != 9 {
		t.Fatal(term, err)
	}
	// Any other failure is final.
	s.kv.set("set", syscall.EIO)
	if err := s.stable.SetUint64([]byte(keyCurrentTerm), 10); err != nil {
		t.Fatal(err)
	}
	s.kv.set("set", nil)
	if err := s.persistVote(10, "a"); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := s.stable.SetUint64([]byte("Other"), 1); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if len(s.events.failed) != 1 {
		t.Fatalf("%v", s.events.failed)
	}
}

// The log store against a map: appends, cuts at either end, reopening.
func TestLogStoreAgainstMap(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	twin := map[uint64]string{}
	check := func(what string) {
		t.Helper()
		first, _ := s.log.FirstIndex()
		last, _ := s.log.LastIndex()
		if n := uint64(len(twin)); (n == 0 && last != 0) || (n > 0 && last-first+1 != n) {
			t.Fatalf("%s: log is %d..%d, twin has %d", what, first, last, n)
		}
		for i, want := range twin {
			var l raft.Log
			if err := s.log.GetLog(i, &l); err != nil || string(l.Data) != want || l.Index != i {
				t.Fatalf("%s: entry %d is %q %v, want %q", what, i, l.Data, err, want)
			}
		}
		rep, err := checkLog(vfs.Default, s.path, framer{})
		if err != nil || rep.damage != nil || rep.first != first || rep.last != last {
			t.Fatalf("%s: %v %+v", what, err, rep)
		}
	}
	store := func(from, to uint64, tag string) {
		t.Helper()
		var logs []*raft.Log
		for i := from; i <= to; i++ {
			twin[i] = fmt.Sprintf("%s%d", tag, i)
			logs = append(logs, &raft.Log{Index: i, Term: 1, Data: []byte(twin[i]), AppendedAt: time.Unix(1, 2)})
		}
		before := bytes.Clone(logs[0].Data)
		if err := s.log.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(logs[0].Data, before) {
			t.Fatal("StoreLogs changed the caller's entry")
		}
	}
	del := func(from, to uint64) {
		t.Helper()
		for i := range twin {
			if i >= from && i <= to {
				delete(twin, i)
			}
		}
		if err := s.log.DeleteRange(from, to); err != nil {
			t.Fatal(err)
		}
	}
	check("empty")
	store(5, 700, "a")
	check("stored")
	del(1, 300)
	check("head cut")
	del(650, 700)
	check("tail cut")
	store(600, 640, "b") // replaces 600..649
	for i := uint64(641); i < 650; i++ {
		delete(twin, i)
	}
	check("replaced")
	s = s.reopen(t)
	check("reopened")
	for _, bad := range [][]*raft.Log{{{Index: 642}}, {{Index: 100}}, {{Index: 641}, {Index: 643}}} {
		if err := s.log.StoreLogs(bad); !errors.Is(err, ErrStorage) {
			t.Fatalf("a gap was stored: %v", err)
		}
	}
	if err := s.log.DeleteRange(400, 500); !errors.Is(err, ErrStorage) {
		t.Fatalf("a hole was cut: %v", err)
	}
	del(301, 640)
	check("emptied")
	store(9000, 9001, "c") // after a snapshot the log begins anywhere
	check("begun anew")
	if err := s.log.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Fatal(err)
	}
	if !s.log.IsMonotonic() {
		t.Fatal("not monotonic")
	}
}

// A leader that had nothing to send read and opened its last entry several times a second. What
// the store keeps of it in memory is gone before the entry is.
func TestLastEntryIsReadFromMemoryWhileItIsThere(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	store := func(term uint64, index ...uint64) error {
		var logs []*raft.Log
		for _, i := range index {
			logs = append(logs, &raft.Log{Index: i, Term: term, Data: fmt.Appendf(nil, "%d in %d", i, term)})
		}
		return s.log.StoreLogs(logs)
	}
	expect := func(index, term uint64, want error) {
		t.Helper()
		var l raft.Log
		err := s.log.GetLog(index, &l)
		if !errors.Is(err, want) || err == nil && (l.Index != index || l.Term != term || string(l.Data) != fmt.Sprintf("%d in %d", index, term)) {
			t.Fatalf("entry %d: %v, %+v; want term %d, %v", index, err, l, term, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(store(1, 1, 2, 3))
	s.kv.set("get", errBoom)
	expect(3, 1, nil)
	expect(2, 0, errBoom)
	must(s.log.replaceFile(func(boltKV) (boltKV, error) { return nil, nil }))
	expect(3, 0, errBoom)
	s.kv.set("get", nil)

	must(store(1, 4))
	must(s.log.DeleteRange(4, 4)) // another leader has other entries there
	var cut raft.Log
	if err := s.log.GetLog(4, &cut); err != nil || !isStandIn(&cut) {
		t.Fatal(err, cut)
	}
	must(store(2, 4, 5))
	must(store(3, 4)) // cuts off what it replaces
	expect(4, 3, nil)
	expect(5, 0, raft.ErrLogNotFound)
	s.kv.set("store", syscall.ENOSPC)
	if err := store(3, 5); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	expect(4, 3, nil)
	expect(5, 0, raft.ErrLogNotFound)
	s.kv.set("store", nil)
	s.log.boundary = func() (uint64, uint64) { return 5, 3 }
	must(s.log.DeleteRange(1, 4)) // they are in a snapshot
	expect(4, 0, raft.ErrLogNotFound)
	must(store(4, 9))
	expect(4, 0, raft.ErrLogNotFound)
	expect(9, 4, nil)
}

// What a snapshot leaves in the log is bounded by its size, whatever was cut off before.
func TestLogKnowsHowManyOfItsLastEntriesFit(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	store := func(from, to uint64, bytes int) {
		t.Helper()
		var logs []*raft.Log
		for i := from; i <= to; i++ {
			logs = append(logs, &raft.Log{Index: i, Term: 1, Data: make([]byte, bytes-frameHeader)})
		}
		if err := s.log.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(bytes int64, want uint64) {
		t.Helper()
		if n := s.log.within(bytes); n != want {
			t.Fatalf("%d of the last entries have %d bytes, want %d", n, bytes, want)
		}
	}
	expect(1000, mostTrailingLogs)
	store(1, 10, 1000)
	store(11, 20, 100)
	expect(1000, 10)
	expect(1999, 10)
	expect(2000, 11)
	expect(1<<20, mostTrailingLogs)
	if err := s.log.DeleteRange(16, 20); err != nil {
		t.Fatal(err)
	}
	expect(1500, 6)
	store(14, 14, 100) // cuts off 14 and 15
	expect(1400, 5)
	store(15, 15+mostTrailingLogs, 10)
	expect(1<<30, mostTrailingLogs)
	if err := s.log.DeleteRange(1, 15+mostTrailingLogs); err != nil {
		t.Fatal(err)
	}
	store(20000, 20001, 100)
	expect(150, 1)
	s = s.reopen(t) // it knows no sizes by now
	expect(150, mostTrailingLogs)
	store(20002, 20002, 100)
	expect(50, 0)
	if err := s.log.DeleteRange(20001, 20002); err != nil {
		t.Fatal(err)
	}
	expect(50, mostTrailingLogs)
}

func TestUnreadableEntry(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	if err := s.log.StoreLog(&raft.Log{Index: 1, Term: 1, Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	s = s.reopen(t) // which keeps no entry in memory
	s.kv.set("get 1", errBoom)
	var l raft.Log
	if err := s.log.GetLog(1, &l); !errors.Is(err, ErrCorruptLog) || !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	s.events.standIn = true
	if err := s.log.GetLog(1, &l); err != nil || l.Type != raft.LogNoop || l.Index != 1 {
		t.Fatal(err, l)
	}
	s.kv.set("get 1", nil)
	// An entry that was stored around the frame has no checksum.
	if err := s.kv.boltKV.StoreLogs([]*raft.Log{{Index: 2, Term: 1, Data: []byte("bare")}}); err != nil {
		t.Fatal(err)
	}
	s.events.standIn = false
	if err := s.log.GetLog(2, &l); !errors.Is(err, ErrCorruptLog) {
		t.Fatal(err)
	}
}

// openFaulty opens a shard whose store can be told to fail.
func openFaulty(t *testing.T, dir string) (*shard, *faultKV) {
	t.Helper()
	var f *faultKV
	s := openShard(t, dir, func(o *Options) {
		o.wrapKV = func(kv boltKV) boltKV { f = &faultKV{boltKV: kv}; return f }
	})
	return s, f
}

func TestFullDiskRefusesAndRecovers(t *testing.T) {
	s, kv := openFaulty(t, t.TempDir())
	s.lead(t)
	ctx := testCtx(t)
	s.put(t, "a=1")
	kv.set("store", syscall.ENOSPC)
	kv.set("set", syscall.ENOSPC)
	err := waitErr(ctx, s.group.Propose(ctx, []byte("b=1")))
	if !errors.Is(err, ErrStorage) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if s.group.Halted() != nil {
		t.Fatal("a full disk halted the group")
	}
	if s.machine.get().Rows["a"] != "1" {
		t.Fatal("reads are gone")
	}
	kv.set("store", nil)
	kv.set("set", nil)
	for { // raft steps down a moment after it has answered
		s.lead(t)
		err := waitErr(ctx, s.group.Propose(ctx, []byte("c=1")))
		if err == nil {
			break
		}
		if !errors.Is(err, ErrNotLeader) {
			t.Fatal(err)
		}
	}
	if _, there := s.machine.get().Rows["b"]; there {
		t.Fatal("a refused command was applied")
	}
}

func TestBrokenDiskHalts(t *testing.T) {
	s, kv := openFaulty(t, t.TempDir())
	s.lead(t)
	ctx := testCtx(t)
	kv.set("store", syscall.EIO)
	if err := waitErr(ctx, s.group.Propose(ctx, []byte("b=1"))); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	<-s.group.HaltedCh()
	if err := s.group.Halted(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
}

// Damage that comes while the group is open: raft would panic on a committed
// entry that it cannot read. The group halts instead.
func TestUnreadableCommittedEntryHalts(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 5)
	crash := t.TempDir()
	copyTree(t, dir, crash) // the state was never flushed: everything is replayed
	var f *faultKV
	c := openShard(t, crash, func(o *Options) {
		o.wrapKV = func(kv boltKV) boltKV {
			f = &faultKV{boltKV: kv, fail: map[string]error{"get 5": errBoom}}
			return f
		}
	})
	<-c.group.HaltedCh()
	var halt *HaltError
	if err := c.group.Halted(); !errors.As(err, &halt) || halt.Index != 5 || !errors.Is(err, ErrCorruptLog) {
		t.Fatal(err)
	}
	if n := len(c.machine.get().Rows); n > 5 {
		t.Fatalf("%d rows", n)
	}
}

func TestStoreTimesAreObserved(t *testing.T) {
	s := openShard(t, t.TempDir()).lead(t)
	s.put(t, "a=1")
	if st := s.group.Stats(); st.StoreMax <= 0 || st.StoreLast <= 0 || st.StoreLast > st.StoreMax || st.Voters != 1 || st.State != "Leader" {
		t.Fatalf("%+v", st)
	}
}

func TestErrorsReadWell(t *testing.T) {
	h := &HaltError{Index: 5, Cause: &ApplyError{Index: 5, Err: errBoom}}
	if !errors.Is(h, ErrHalted) || !errors.Is(h, errBoom) || !strings.Contains(h.Error(), "index 5") {
		t.Fatal(h)
	}
	for raftSide, want := range map[error]error{
		raft.ErrNotLeader: ErrNotLeader, raft.ErrLeadershipLost: ErrUnknownOutcome, raft.ErrRaftShutdown: ErrClosed,
		raft.ErrLeadershipTransferInProgress: ErrNotLeader, raft.ErrAbortedByRestore: ErrUnknownOutcome, errBoom: errBoom,
	} {
		if got := raftErr("x", raftSide); !errors.Is(got, want) {
			t.Errorf("%v became %v", raftSide, got)
		}
	}
	if raftErr("x", nil) != nil {
		t.Error("an error out of nothing")
	}
}

// What was cut off for entries that could not be stored counts as other entries, until some are.
// Raft's cutting off of what is in a snapshot leaves nothing of that kind.
func TestEntriesThatWereCutOffDifferFromAll(t *testing.T) {
	s := openTestStores(t, filepath.Join(t.TempDir(), "raft.db"))
	entry := func(index, term uint64) *raft.Log {
		return &raft.Log{Index: index, Term: term, Data: []byte("x")}
	}
	for i := uint64(1); i <= 9; i++ {
		if err := s.log.StoreLog(entry(i, 2)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(index uint64) (term uint64, there bool) {
		t.Helper()
		var l raft.Log
		if err := s.log.GetLog(index, &l); err != nil {
			return 0, false
		}
		if (l.Term == 0) != isStandIn(&l) {
			t.Errorf("%+v", l)
		}
		return l.Term, true
	}
	s.log.boundary = func() (uint64, uint64) { return 3, 2 }
	if err := s.log.DeleteRange(1, 3); err != nil {
		t.Fatal(err)
	}
	if _, there := read(2); there {
		t.Error("what is in a snapshot was made up")
	}
	for _, from := range []uint64{7, 9, 6} { // 9 is not there any more, and raft does not know it
		if err := s.log.DeleteRange(from, 9); err != nil {
			t.Fatal(err)
		}
	}
	s.kv.set("store", syscall.ENOSPC)
	if err := s.log.StoreLog(entry(6, 3)); err == nil {
		t.Fatal("stored on a full disk")
	}
	for index, want := range map[uint64]uint64{5: 2, 6: 0, 9: 0} {
		if term, there := read(index); term != want || !there {
			t.Errorf("entry %d: term %d, %t", index, term, there)
		}
	}
	if _, there := read(10); there {
		t.Error("an entry that never was is there")
	}
	s.kv.set("store", nil)
	if err := s.log.StoreLog(entry(6, 3)); err != nil {
		t.Fatal(err)
	}
	if term, _ := read(6); term != 3 {
		t.Error("the entry that was stored is of term", term)
	}
	if _, there := read(7); there {
		t.Error("an entry behind the end is there")
	}
	s.log.boundary = func() (uint64, uint64) { return 6, 3 }
	if err := s.log.DeleteRange(4, 6); err != nil { // a snapshot has all of them
		t.Fatal(err)
	}
	if _, there := read(5); there {
		t.Error("what is in a snapshot was made up once the log was empty")
	}
}

// What stands in for an entry that was cut off is never applied.
func TestWhatWasCutOffIsNotApplied(t *testing.T) {
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "was cut off this replica's log") {
			t.Errorf("it went on: %v", said)
		}
	}()
	new(fsm).ApplyBatch([]*raft.Log{{Index: 4, Term: 2}, {Index: 5, Extensions: standIn}})
}
