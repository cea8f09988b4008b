package raftfsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

func dbFile(dir string) string { return filepath.Join(dir, "raft", "raft.db") }

// boltSamples are small files as the log store writes them: one flat, one with
// branch pages and overflow.
func boltSamples(t testing.TB) [][]byte {
	var out [][]byte
	for _, n := range []int{2, 400} {
		path := filepath.Join(t.TempDir(), "raft.db")
		kv, err := openBolt(path, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			l := &raft.Log{Index: uint64(i + 1), Term: 1, Data: make([]byte, i%50)}
			if i == 100 {
				l.Data = make([]byte, 20_000)
			}
			l.Data = plain.sealEntry(l)
			if err := kv.StoreLogs([]*raft.Log{l}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(kv.Set([]byte("k"), plain.sealValue([]byte("k"), []byte("v"))), kv.Close()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func TestCheckLogReadsWhatBoltWrote(t *testing.T) {
	for i, b := range boltSamples(t) {
		path := filepath.Join(t.TempDir(), "raft.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		rep, err := checkLog(vfs.Default, path, framer{}, 2)
		if err != nil || rep.damage != nil {
			t.Fatal(err, rep.damage)
		}
		if want := []uint64{2, 400}[i]; rep.first != 1 || rep.last != want || rep.termAt[2] != 1 {
			t.Fatalf("%+v", rep)
		}
	}
}

// preparedShard is a closed shard with a snapshot, commands behind it, and a
// state that is on disk.
func preparedShard(t testing.TB, commands int) (dir string, want machineState) {
	t.Helper()
	dir = t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, commands/2)
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.putMany(t, commands/2, commands)
	s.close(t)
	return dir, s.machine.get()
}

// goesOn checks that a damaged shard opened with its whole state, works, and
// works again after one more restart.
func goesOn(t testing.TB, dir string, want machineState, what string) *shard {
	t.Helper()
	s, err := tryOpenShard(t, dir)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	s.lead(t)
	if got := s.machine.get(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: state %+v, want %+v", what, got, want)
	}
	if term := s.group.Term(); term <= want.Term {
		t.Fatalf("%s: term %d was used before (%d)", what, term, want.Term)
	}
	s.put(t, "after=damage")
	after := s.machine.get()
	s.close(t)
	again := openShard(t, dir).lead(t)
	if got := again.machine.get(); !reflect.DeepEqual(got, after) {
		t.Fatalf("%s: after one more restart %+v, want %+v", what, got, after)
	}
	if r := again.group.Stats().Repair; r.MovedTo != "" {
		t.Fatalf("%s: repaired twice: %+v", what, r)
	}
	again.close(t)
	return s
}

func TestLostRaftDB(t *testing.T) {
	for _, lose := range []string{"raft.db", "raft.db+membership", "raft.db+snapshots", "everything", "membership", "empty file"} {
		t.Run(lose, func(t *testing.T) {
			dir, want := preparedShard(t, 20)
			raftDir := filepath.Join(dir, "raft")
			remove := map[string][]string{
				"raft.db": {"raft.db"}, "raft.db+membership": {"raft.db", "membership"}, "membership": {"membership"},
				"raft.db+snapshots": {"raft.db", "snapshots"}, "everything": {"."}, "empty file": {"raft.db"},
			}[lose]
			for _, name := range remove {
				if err := os.RemoveAll(filepath.Join(raftDir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if lose == "empty file" {
				if err := os.WriteFile(dbFile(dir), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := goesOn(t, dir, want, lose)
			if lose == "membership" {
				return
			}
			if s.group.Stats().Repair.Reason == "" {
				t.Fatal("the repair is not reported")
			}
			if s.group.Term() < want.Term+termLeap { // the lost log may have seen more terms
				t.Fatalf("term %d after %d", s.group.Term(), want.Term)
			}
		})
	}
}

func TestLostSnapshotsKeepTheLog(t *testing.T) {
	dir, want := preparedShard(t, 20)
	if err := os.RemoveAll(filepath.Join(dir, "raft", "snapshots")); err != nil {
		t.Fatal(err)
	}
	s := goesOn(t, dir, want, "snapshots")
	if files := damagedFiles(t, dir); len(files) != 0 {
		t.Fatalf("a sound log was moved aside: %v", files)
	}
	if s.group.Stats().Repair.Reason != errNoSnapshot.Error() {
		t.Fatalf("%+v", s.group.Stats().Repair)
	}
}

func TestTruncatedRaftDB(t *testing.T) {
	base, want := preparedShard(t, 60)
	size := fileSize(t, dbFile(base))
	for _, cut := range []int64{1, 100, 4096, 5000, 8192, size / 4, size / 2, size - 4096, size - 1} {
		dir := t.TempDir()
		copyTree(t, base, dir)
		if err := os.Truncate(dbFile(dir), cut); err != nil {
			t.Fatal(err)
		}
		goesOn(t, dir, want, fmt.Sprintf("cut at %d", cut))
	}
}

// An older copy of raft.db, of the same term, is sound in itself but ends before
// the state.
func TestOlderRaftDB(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 10)
	old, err := os.ReadFile(dbFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	s.putMany(t, 10, 30)
	s.close(t)
	if err := os.WriteFile(dbFile(dir), old, 0o600); err != nil {
		t.Fatal(err)
	}
	goesOn(t, dir, s.machine.get(), "older copy")
	if files := damagedFiles(t, dir); len(files) != 1 || filepath.Base(files[0]) != "raft.db.damaged-1" {
		t.Fatalf("moved aside: %v", files)
	}
	// N counts up.
	if err := os.WriteFile(dbFile(dir), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	openShard(t, dir).lead(t).close(t)
	if files := damagedFiles(t, dir); len(files) != 2 {
		t.Fatalf("moved aside: %v", files)
	}
}

// A single flipped bit anywhere in raft.db is harmless or is noticed at open; in
// both cases the state is whole and no panic escapes.
func TestBitFlipsInRaftDB(t *testing.T) {
	base, want := preparedShard(t, 60)
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	size := fileSize(t, dbFile(base))
	flips := 150
	if testing.Short() {
		flips = 40
	}
	aside := 0
	for i := range flips {
		off, bit := rng.Int64N(size), uint(rng.IntN(8))
		if i%3 == 0 { // page headers, metas and element tables are where it hurts
			off = rng.Int64N(size/4096)*4096 + rng.Int64N(200)
		}
		dir := t.TempDir()
		copyTree(t, base, dir)
		flipBit(t, dbFile(dir), off, bit)
		what := fmt.Sprintf("seed %d flip %d: offset %d bit %d", seed, i, off, bit)
		s, err := tryOpenShard(t, dir)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		s.lead(t)
		if got := s.machine.get(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: state %+v, want %+v", what, got, want)
		}
		s.put(t, "after=flip")
		s.close(t)
		aside += len(damagedFiles(t, dir))
	}
	t.Logf("%d flips, %d moved aside", flips, aside)
	if aside == 0 {
		t.Fatal("no flip was noticed: the test does not bite")
	}
}

// Damage without a loss of state: with the machine's disk state older than the
// log, a flipped entry that the machine still needs cannot be made up. What was
// flushed stays; the log is moved aside.
func TestFlipInUnappliedEntry(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 10)
	if err := s.machine.Flush(); err != nil {
		t.Fatal(err)
	}
	want := s.machine.get()
	s.putMany(t, 10, 20)
	crash := t.TempDir()
	copyTree(t, dir, crash)
	flipAll(t, dbFile(crash), "k015=v15")
	goesOn(t, crash, want, "unapplied entry")
}

// flipAll flips one bit in every copy of s in the file. bolt copies pages when it
// writes, and which copy is the live one is not to be seen from outside.
func flipAll(t *testing.T, file, s string) {
	t.Helper()
	b := mustRead(t, file)
	hit := 0
	for at := 0; ; hit++ {
		next := bytes.Index(b[at:], []byte(s))
		if next < 0 {
			break
		}
		flipBit(t, file, int64(at+next), 0)
		at += next + 1
	}
	if hit == 0 {
		t.Fatalf("%q is not in the file", s)
	}
}

// The directory copied at random moments under load is what a kill leaves.
func TestCrashAtRandomMoments(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir, func(o *Options) { o.SnapshotThreshold = 64 }).lead(t)
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	acked, ctx := 0, testCtx(t)
	for round := range 12 {
		n := 1 + rng.IntN(80)
		var futures []*Future
		for i := range n {
			futures = append(futures, s.group.Propose(ctx, fmt.Appendf(nil, "k%03d=v%d", acked+i, acked+i)))
		}
		wait := rng.IntN(n)
		if _, _, err := futures[wait].Wait(ctx); err != nil {
			t.Fatal(err)
		}
		sure := acked + wait + 1
		// State first: a kill cannot leave a log older than the state, a copy in
		// the other order could. (The copy that is torn is the next test.)
		crash := t.TempDir()
		s.machine.mu.Lock() // a flush replaces its file in one step; a copy must not come between
		copyTree(t, filepath.Join(dir, "state"), filepath.Join(crash, "state"))
		s.machine.mu.Unlock()
		if !copyWhileWritten(filepath.Join(dir, "raft"), filepath.Join(crash, "raft")) {
			continue // a file vanished under the copy
		}
		for _, f := range futures {
			if _, _, err := f.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		acked += n
		c, err := tryOpenShard(t, crash)
		if err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		c.lead(t)
		got := c.machine.get()
		if moved := c.group.Stats().Repair.MovedTo; moved == "" && len(got.Rows) < sure {
			t.Fatalf("seed %d round %d: %d rows, %d were acknowledged", seed, round, len(got.Rows), sure)
		}
		checkRows(t, got, len(got.Rows)) // a prefix without holes, whatever was torn
		c.put(t, fmt.Sprintf("k%03d=v%d", len(got.Rows), len(got.Rows)))
		c.close(t)
	}
}

func copyWhileWritten(from, to string) bool { return os.CopyFS(to, os.DirFS(from)) == nil }

// A replica of a group with several voters must not invent a new log.
func TestSeveralVotersAreNeverRepaired(t *testing.T) {
	for _, where := range []string{"membership", "log", "both missing"} {
		t.Run(where, func(t *testing.T) {
			dir := t.TempDir()
			sync := func(o *Options) { o.NoSync = false }
			s := openShard(t, dir, sync).lead(t)
			s.putMany(t, 0, 5)
			s.close(t)
			m, err := openMemberFile(vfs.Default, filepath.Join(dir, "raft", "membership"))
			if err != nil {
				t.Fatal(err)
			}
			_, conf, _ := m.get()
			conf.Servers = append(conf.Servers, raft.Server{ID: "n2", Address: "n2"})
			switch where {
			case "membership", "both missing":
				if err := m.save(99, conf); err != nil {
					t.Fatal(err)
				}
			case "log":
				appendConfiguration(t, dir, conf)
				if err := os.Remove(filepath.Join(dir, "raft", "membership")); err != nil {
					t.Fatal(err)
				}
			}
			if where == "both missing" {
				if err := os.Remove(dbFile(dir)); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Truncate(dbFile(dir), fileSize(t, dbFile(dir))); err != nil {
				t.Fatal(err)
			}
			if where == "membership" {
				flipAll(t, dbFile(dir), "k003=v3")
			}
			_, err = tryOpenShard(t, dir, sync)
			if where == "log" { // the log is sound, it opens, but not as a lone voter
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(filepath.Join(dir, "raft", "membership")); err != nil {
					t.Fatal("the membership was not written anew")
				}
				return
			}
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("got %v", err)
			}
			if files := damagedFiles(t, dir); len(files) != 0 {
				t.Fatalf("moved aside: %v", files)
			}
			if _, err := tryOpenShard(t, dir); !errors.Is(err, ErrNoSync) {
				t.Fatalf("NoSync with two voters: %v", err)
			}
		})
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func appendConfiguration(t testing.TB, dir string, conf raft.Configuration) {
	t.Helper()
	kv, err := openBolt(dbFile(dir), true)
	if err != nil {
		t.Fatal(err)
	}
	last, err := kv.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	l := &raft.Log{Index: last + 1, Term: 99, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(conf)}
	l.Data = plain.sealEntry(l)
	term := []byte{0, 0, 0, 0, 0, 0, 0, 99}
	if err := errors.Join(kv.StoreLogs([]*raft.Log{l}), kv.Set([]byte(keyCurrentTerm), plain.sealValue([]byte(keyCurrentTerm), term)), kv.Close()); err != nil {
		t.Fatal(err)
	}
}

// A crash between any two steps of the repair is repaired by the next open.
func TestRepairIsIdempotent(t *testing.T) {
	base, want := preparedShard(t, 20)
	t.Run("snapshot made, file not moved", func(t *testing.T) {
		dir := t.TempDir()
		copyTree(t, base, dir)
		if err := os.WriteFile(dbFile(dir), []byte("junk"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tryOpenShard(t, dir, func(o *Options) {
			o.Machine.(*fileMachine).failNext["flush"] = errBoom
		})
		if !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		goesOn(t, dir, want, "after a failed repair")
	})
	t.Run("new file without a term", func(t *testing.T) {
		dir := t.TempDir()
		copyTree(t, base, dir)
		if err := os.Remove(dbFile(dir)); err != nil {
			t.Fatal(err)
		}
		kv, err := openBolt(dbFile(dir), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
		goesOn(t, dir, want, "empty new file")
	})
	t.Run("bootstrap without first entry", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "raft"), 0o700); err != nil {
			t.Fatal(err)
		}
		kv, err := openBolt(dbFile(dir), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
		openShard(t, dir).lead(t).put(t, "a=1")
	})
}

// A crash between a peer's snapshot and the clearing of the log behind it leaves
// entries that end before the snapshot, or that contradict it. Appending behind
// them would make a gap.
func TestLogBehindSnapshotIsCleared(t *testing.T) {
	for _, index := range []uint64{50, 5} { // behind the log's end; inside, with another term
		dir := t.TempDir()
		s := openShard(t, dir).lead(t)
		s.putMany(t, 0, 10)
		s.close(t)
		term := s.group.Term()
		if index == 5 {
			setStoredTerm(t, dir, 99)
			term = 99
		}
		ahead := newFileMachine(t, t.TempDir())
		if _, err := ahead.Apply([]Entry{{Index: index, Term: term, Data: []byte("from=peer")}}); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
			t.Fatal(err)
		}
		m, err := openMemberFile(vfs.Default, filepath.Join(dir, "raft", "membership"))
		if err != nil {
			t.Fatal(err)
		}
		_, conf, _ := m.get()
		store := newTestSnapStore(t, filepath.Join(dir, "raft", "snapshots"))
		sink, err := store.Create(1, index, term, conf, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := &fsm{machine: ahead, snaps: store}
		cp, err := f.checkpoint(index, term)
		if err != nil {
			t.Fatal(err)
		}
		if err := cp.Persist(sink); err != nil {
			t.Fatal(err)
		}
		c := openShard(t, dir).lead(t)
		if got := c.machine.get(); len(got.Rows) != 1 || got.Rows["from"] != "peer" {
			t.Fatalf("state %+v", got)
		}
		if first := c.group.Stats().FirstIndex; first != index+1 {
			t.Fatalf("the log begins at %d, want %d", first, index+1)
		}
		c.put(t, "more=1")
		c.close(t)
		c = openShard(t, dir).lead(t)
		if r := c.group.Stats().Repair; r != (Repair{}) || c.machine.get().Rows["more"] != "1" {
			t.Fatalf("%+v %+v", r, c.machine.get())
		}
	}
}

func setStoredTerm(t testing.TB, dir string, term byte) {
	t.Helper()
	kv, err := openBolt(dbFile(dir), true)
	if err != nil {
		t.Fatal(err)
	}
	frame := plain.sealValue([]byte(keyCurrentTerm), []byte{0, 0, 0, 0, 0, 0, 0, term})
	if err := errors.Join(kv.Set([]byte(keyCurrentTerm), frame), kv.Close()); err != nil {
		t.Fatal(err)
	}
}

// A damaged membership file alone is written anew from log and snapshot.
func TestDamagedMembershipFile(t *testing.T) {
	dir, want := preparedShard(t, 10)
	flipBit(t, filepath.Join(dir, "raft", "membership"), 12, 3)
	goesOn(t, dir, want, "membership")
	if m, err := openMemberFile(vfs.Default, filepath.Join(dir, "raft", "membership")); err != nil || !m.known {
		t.Fatal(err)
	}
	// With nothing else that tells, nobody may be assumed to be alone.
	flipBit(t, filepath.Join(dir, "raft", "membership"), 12, 3)
	for _, name := range []string{"raft.db", "snapshots"} {
		if err := os.RemoveAll(filepath.Join(dir, "raft", name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tryOpenShard(t, dir, func(o *Options) { o.NoSync = false })
	if !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
}

// A snapshot in front of a log that was cut is all there is of the past. If both
// it and the state are gone, the group says so instead of beginning from nothing,
// also at the second try.
func TestLostStateIsNeverTakenForAnEmptyOne(t *testing.T) {
	for _, later := range []int{0, 5} { // with an empty log, and with one that begins late
		dir := t.TempDir()
		s := openShard(t, dir).lead(t)
		s.putMany(t, 0, 10)
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
		s.putMany(t, 10, 10+later)
		s.close(t)
		for _, name := range []string{"state", "raft/snapshots"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := tryOpenShard(t, dir); !errors.Is(err, ErrStateLost) {
				t.Fatalf("later %d: %v", later, err)
			}
		}
	}
}

// Complete says what an empty machine would come to: a snapshot that is damaged, or
// lost, counts for nothing, unless the log goes on from the one before.
func TestCompleteReadsTheSnapshots(t *testing.T) {
	dir := t.TempDir()
	few := func(o *Options) { o.TrailingLogs = -1 }
	s := openShard(t, dir, few).lead(t)
	s.putMany(t, 0, 10)
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.putMany(t, 10, 12)
	s.close(t)
	opt := Options{Dir: filepath.Join(dir, "raft"), ID: "n1"}
	complete := func(want bool) {
		t.Helper()
		if whole, err := Complete(opt); err != nil || whole != want {
			t.Fatalf("complete: %v, %v", whole, err)
		}
	}
	complete(true)
	files, err := filepath.Glob(filepath.Join(opt.Dir, "snapshots", "*", "data", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	for b, want := range map[*[]byte]bool{&damaged: false, &whole: true} {
		if err := os.WriteFile(files[0], *b, 0o600); err != nil {
			t.Fatal(err)
		}
		complete(want)
	}
	if err := os.RemoveAll(filepath.Join(opt.Dir, "snapshots")); err != nil {
		t.Fatal(err)
	}
	complete(false)
}
