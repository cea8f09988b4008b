package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/memory"
)

const rottenFrames = 40 // more than the cheap check compares

// rotten makes a stopped node's directory whose log has one flipped bit in the
// message at seq, and returns the status that it had before.
func rotten(t *testing.T, seq uint64) (dir string, want memory.ShardStatus) {
	t.Helper()
	dir = t.TempDir()
	n := open(t, quiet(dir))
	for i := range rottenFrames {
		must(t, n, fmt.Sprint("memory of the harbour, number ", i))
	}
	want = shardOf(t, n)
	m, err := n.served[0].stream.Get(t.Context(), seq)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, n)
	rot(t, dir, m.Data)
	return dir, want
}

// rot flips a bit in the middle of a message that some block of the log holds.
func rot(t *testing.T, dir string, message []byte) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range blocks {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, message); at >= 0 {
			b[at+len(message)/2] ^= 4
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no block of %v holds the message", blocks)
}

// names checks that an error is a divergence that names the sequence and a
// remedy.
func names(t *testing.T, what string, err error, seq uint64) {
	t.Helper()
	e := memory.AsError(err)
	if err == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Message, fmt.Sprintf("sequence %d", seq)) || !strings.Contains(e.Hint, "memctl log repair") {
		t.Errorf("%s: %v (%s)", what, err, e.Hint)
	}
}

// TestRotInAnOldMessageHasAWayOut: beyond the last 16 messages nothing noticed
// it, repair found nothing to repair, and backup and rebuild failed with an
// internal error.
func TestRotInAnOldMessageHasAWayOut(t *testing.T) {
	t.Parallel()
	const seq = 7
	for _, who := range []string{"backup", "rebuild", "doctor", "verify", "repair"} {
		t.Run(who, func(t *testing.T) {
			dir, want := rotten(t, seq)
			n := open(t, quiet(dir))
			must(t, n, "the cheap check sees nothing")
			want.StateHash = shardOf(t, n).StateHash
			switch who {
			case "backup":
				var b bytes.Buffer
				_, err := n.operator.BackupLog(t.Context(), &b, "")
				names(t, who, err, seq)
				if b.Len() > 0 {
					t.Errorf("%d bytes of a backup were written", b.Len())
				}
			case "rebuild":
				_, err := n.operator.Rebuild(t.Context(), nil)
				names(t, who, err, seq)
			case "doctor":
				r, err := n.operator.Doctor(t.Context())
				if err != nil || r.OK || !slices.ContainsFunc(r.Checks, func(c memory.Check) bool {
					return c.State == "fail" && strings.Contains(c.Detail, "sequence 7") && strings.Contains(c.Hint, "memctl log repair")
				}) {
					t.Errorf("%+v, %v", r, err)
				}
			case "verify":
				r, err := n.operator.VerifyLog(t.Context(), nil)
				if err != nil || r.Shards[0].OK || !strings.Contains(fmt.Sprint(r), "sequence 7") {
					t.Errorf("%+v, %v", r, err)
				}
				if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeLogDiverged {
					t.Errorf("a write after the damage is known: %v", err)
				}
			}
			report, err := n.operator.RepairLog(t.Context(), nil)
			if err != nil || report.Shards[0].Epoch != 1 || report.Shards[0].StateHash != want.StateHash {
				t.Fatalf("%+v, %v", report, err)
			}
			must(t, n, "life goes on")
			sound(t, n)
		})
	}
}

func sound(t *testing.T, n *Node) {
	t.Helper()
	if r, err := n.operator.VerifyLog(t.Context(), nil); err != nil || !r.Shards[0].OK || len(r.Shards[0].Problems) > 0 {
		t.Errorf("after the repair: %+v, %v", r, err)
	}
	if _, err := n.operator.BackupLog(t.Context(), io.Discard, ""); err != nil {
		t.Error(err)
	}
	if s := shardOf(t, n); s.Epoch != 1 {
		t.Errorf("after the repair: %+v", s)
	}
}

// TestSlowScrubFindsRot: the worker reads everything, stops writes, and says so.
func TestSlowScrubFindsRot(t *testing.T) {
	dir, _ := rotten(t, 9)
	cfg := quiet(dir)
	cfg.ScrubEvery, cfg.ScrubRate = time.Millisecond, 1<<30
	n := open(t, cfg)
	await(t, "the scrub to find the damage", func() bool { return n.served[0].replica.Diverged() != nil })
	s := shardOf(t, n)
	if d := n.served[0].replica.Diverged(); d.Seq != 9 || !strings.Contains(s.Log.Scrub.Problem, "sequence 9") || !strings.Contains(s.Log.Diverged, "sequence 9") {
		t.Errorf("%+v, %+v", d, s.Log)
	}
	_, err := capture(n, "must not be taken")
	names(t, "a write", err, 9)
	if len(find(t, n, "harbour")) == 0 {
		t.Error("reads are down")
	}
	shut(t, n)
	n = open(t, quiet(dir)) // it stays so over a restart
	_, err = capture(n, "must not be taken")
	names(t, "a write after a restart", err, 9)
	shut(t, n)
	n = open(t, cfg)
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	repaired := time.Now()
	await(t, "a scrub of the repaired log", func() bool { return shardOf(t, n).Log.Scrub.FinishedAt.After(repaired) })
	if s := shardOf(t, n); s.Log.Scrub.Problem != "" || s.Log.Diverged != "" {
		t.Errorf("%+v", s.Log)
	}
	must(t, n, "life goes on")
	sound(t, n)
}

// TestFindingOnAReplacedStreamStoppedWrites: a check of the log that a repair overtook
// stopped writes into the new one.
func TestFindingOnAReplacedStreamStoppedWrites(t *testing.T) {
	dir, _ := rotten(t, 7)
	n := open(t, quiet(dir))
	err := n.served[0].stopOver(func() (*eventlog.DivergedError, error) {
		_, err := n.operator.RepairLog(t.Context(), nil)
		return &eventlog.DivergedError{Kind: eventlog.KindHash, Seq: 7, Detail: "found before the repair"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := n.served[0].replica.Diverged(); d != nil {
		t.Errorf("writes are stopped: %v", d)
	}
	if _, err := os.Stat(n.served[0].divergedMark()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new log is marked as damaged: %v", err)
	}
	must(t, n, "life goes on")
	sound(t, n)
}

// TestScrubIsPaced: a pass takes as long as its rate says.
func TestScrubIsPaced(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	for i := range 5 {
		must(t, n, fmt.Sprint("memory ", i))
	}
	info, err := n.served[0].stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.served[0].scrub.rate = int64(info.Bytes) * 2 // half a second, at most
	began := time.Now()
	if err := n.served[0].scrub.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("%d bytes at %d a second took %s", info.Bytes, n.served[0].scrub.rate, took)
	}
	if s := n.served[0].scrub.Status(); s.Running || s.Done != info.Last || s.Total != info.Last || s.FinishedAt.IsZero() {
		t.Errorf("%+v of %+v", s, info)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	n.served[0].scrub.rate = 1
	if err := n.served[0].scrub.pass(ctx); err == nil || n.served[0].scrub.Status().Running {
		t.Errorf("a pass that should take for ever ended with %v: %+v", err, n.served[0].scrub.Status())
	}
}

// TestStoppedLogIsRepaired: repair was for running nodes only, and a node that
// does not start had no way out.
func TestStoppedLogIsRepaired(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T) (string, memory.ShardStatus){
		"rot": func(t *testing.T) (string, memory.ShardStatus) { return rotten(t, 7) },
		"lost": func(t *testing.T) (string, memory.ShardStatus) {
			dir, want := filled(t)
			return dir, errOnly(t, want, os.RemoveAll(filepath.Join(dir, "nats")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, want := damage(t)
			off := Offline{Config: quiet("")}
			out := filepath.Join(t.TempDir(), "log")
			if _, err := off.Backup(t.Context(), dir, out, "", nil); memory.CodeOf(err) != memory.CodeLogDiverged {
				t.Errorf("backup of a diverged log: %v", err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("the refused backup left a file")
			}
			report, err := off.RepairLog(t.Context(), dir, nil)
			if err != nil || report.Shards[0].StateHash != want.StateHash || report.Shards[0].Restored == 0 || report.Shards[0].Epoch != 1 {
				t.Fatalf("%+v, %v", report, err)
			}
			if _, err := off.RepairLog(t.Context(), dir, nil); memory.CodeOf(err) != memory.CodeConflict {
				t.Errorf("nothing to repair: %v", err)
			}
			if r, err := off.VerifyLog(t.Context(), dir, nil); err != nil || !r.Shards[0].OK {
				t.Errorf("%+v, %v", r, err)
			}
			n := open(t, quiet(dir))
			if got := shardOf(t, n); got.StateHash != want.StateHash || got.Epoch != 1 || got.Log.Diverged != "" {
				t.Errorf("%+v, want %+v", got, want)
			}
			onlyStream(t, n)
			must(t, n, "life goes on")
			sound(t, n)
		})
	}
}

func errOnly(t *testing.T, s memory.ShardStatus, err error) memory.ShardStatus {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRepairTakesWhatTheStateHasNotApplied: with rot before it, an acknowledged
// message that was only in the log kept the repair from making the log anew.
func TestRepairTakesWhatTheStateHasNotApplied(t *testing.T) {
	dir, _ := filled(t)
	shards := filepath.Join(dir, "shards")
	older := image(t, shards)
	n := open(t, quiet(dir))
	must(t, n, "acknowledged and only in the log")
	want := shardOf(t, n)
	m, err := n.served[0].stream.Get(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, n)
	putBack(t, older, shards)
	rot(t, dir, m.Data)
	report, err := Offline{Config: quiet("")}.RepairLog(t.Context(), dir, nil)
	if err != nil || report.Shards[0].StateHash != want.StateHash {
		t.Fatalf("%+v, %v; want %s", report, err, want.StateHash)
	}
	n = open(t, quiet(dir))
	if got := shardOf(t, n); got.Records != want.Records {
		t.Errorf("%+v, want %+v", got, want)
	}
	sound(t, n)
}

// TestRepairedIdentityIsDurable: a repair that had ended was undone by kill -9,
// because the state's note about the new stream was not on disk.
func TestRepairedIdentityIsDurable(t *testing.T) {
	dir, want := filled(t)
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	n := open(t, quiet(dir))
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	again := open(t, quiet(image(t, dir)))
	if got := shardOf(t, again); got.Log.Diverged != "" || got.Epoch != 1 || got.Records != want.Records {
		t.Errorf("%+v", got)
	}
	must(t, again, "life goes on")
	sound(t, again)
}

// TestRotWithoutStateSaysWhatToDo: a start ended with exit 1 and "sequence 7 is
// missing".
func TestRotWithoutStateSaysWhatToDo(t *testing.T) {
	dir, _ := rotten(t, 7)
	if err := os.RemoveAll(filepath.Join(dir, "shards")); err != nil {
		t.Fatal(err)
	}
	e := fails(t, quiet(dir), StartDamaged)
	if !strings.Contains(e.Message, "sequence 7") || !strings.Contains(e.Hint, "memctl restore") {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
}

// TestKilledRestoreIsNoDataDirectory: 9 of 15 killed restores left a directory
// that opened as if whole and took writes behind a log that ended early.
func TestKilledRestoreIsNoDataDirectory(t *testing.T) {
	log, keys, want := backedUp(t)
	off := Offline{Config: quiet("")}
	to := filepath.Join(t.TempDir(), "new")
	killed := t.TempDir()
	_, err := off.Restore(t.Context(), to, log, keys, func(done, total uint64) {
		if done == 4 {
			if err := copyStopped(to, killed); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := fails(t, quiet(killed), StartDamaged); !strings.Contains(e.Hint, "memctl restore") {
		t.Errorf("%s; %s", e.Message, e.Hint)
	}
	if _, err := off.VerifyLog(t.Context(), killed, nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("verify: %v", err)
	}
	if _, err := off.Restore(t.Context(), killed, log, keys, nil); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{to, killed} {
		n := open(t, quiet(d))
		if got := shardOf(t, n); got.StateHash != want.StateHash || got.Records != want.Records {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if _, err := off.Restore(t.Context(), killed, log, keys, nil); err == nil {
		t.Error("a finished restore was restored over")
	}
}

// await looks until a condition holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// awaitNil awaits the end of what try says is wrong, and tells what it was where that did not come.
func awaitNil(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	defer func() {
		if err != nil {
			t.Logf("the last time: %v", err)
		}
	}()
	await(t, what, func() bool { err = try(); return err == nil })
}

// TestRestoringTwiceGivesPositionsOutOnce: both restores of one backup began the
// epoch after the backup's, so the positions of the first one named other memories
// of the second.
func TestRestoringTwiceGivesPositionsOutOnce(t *testing.T) {
	log, keys, _ := backedUp(t)
	restored := func(at time.Time) *Node {
		cfg := quiet("")
		cfg.Now = func() time.Time { return at }
		to := filepath.Join(t.TempDir(), "new")
		if _, err := (Offline{Config: cfg}).Restore(t.Context(), to, log, keys, nil); err != nil {
			t.Fatal(err)
		}
		return open(t, quiet(to))
	}
	now := time.Now() // of both: one pair of them in a million is the same
	first := restored(now)
	lost := must(t, first, "written after the first restore, and then lost")
	shut(t, first)
	second := restored(now)
	kept := must(t, second, "written after the second restore")
	must(t, second, "and another one, so that the log goes on as far as it did")
	search := func(after string) error {
		_, err := second.reads.Search(t.Context(), memory.Access{Namespace: "default", AtLeast: after}, memory.SearchRequest{Query: "restore"})
		return err
	}
	if err := search(lost.Position); memory.CodeOf(err) != memory.CodeLostPosition {
		t.Errorf("at %s, which was lost: %v", lost.Position, err)
	}
	if err := search(kept.Position); err != nil {
		t.Errorf("at %s: %v", kept.Position, err)
	}
}

// TestRestoresOfOneSecondBeganOneEpoch: the time in seconds was all that held
// restores apart, and a clock before 2026 or far ahead left not even that.
func TestRestoresOfOneSecondBeganOneEpoch(t *testing.T) {
	const spread = restoreSpread - 1
	minute := firstRestore.Add(time.Minute)
	for _, tt := range []struct {
		last, random, want uint32
		now                time.Time
	}{
		{3, 0, 60, minute},
		{3, 9, 69, minute},
		{60, 0, 61, minute},
		{99, 7, 107, minute}, // repairs followed
		{99, math.MaxUint32, 100 + spread, minute},
		{3, 5, 9, firstRestore.Add(-time.Hour)},                  // a clock before
		{3, 5, 9, firstRestore.Add(math.MaxInt32 * time.Second)}, // one far ahead
		{3, spread, math.MaxInt32 - 1 + spread, firstRestore.Add((math.MaxInt32 - 1) * time.Second)},
		{math.MaxUint32 - 2*restoreSpread, spread, math.MaxUint32 - restoreSpread, minute},
		{math.MaxUint32 - 2*restoreSpread + 1, spread, 0, minute}, // none is left
		{math.MaxUint32, 0, 0, minute},
	} {
		got, err := restoredEpoch(tt.last, tt.now, tt.random)
		if got != tt.want || (err != nil) != (tt.want == 0) {
			t.Errorf("after epoch %d, at %s, random %d: %d, %v", tt.last, tt.now, tt.random, got, err)
		}
	}
}

// A repair ended the damage, and the status and the metrics told of it until the next pass, a day
// later. A log that an operator had verified, or doctor had read, was not one that was read.
func TestRepairedLogWasCalledDamagedForADay(t *testing.T) {
	t.Parallel()
	dir, _ := rotten(t, 7)
	n := open(t, quiet(dir))
	if _, err := n.operator.VerifyLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if s := n.served[0].scrub.Status(); s.Problem == "" || !s.FinishedAt.IsZero() {
		t.Errorf("a verification of a damaged log: %+v", s)
	}
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if s := n.served[0].scrub.Status(); s.Problem != "" || !s.FinishedAt.IsZero() {
		t.Errorf("after the repair: %+v", s)
	}
	if _, err := n.operator.VerifyLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if s := n.served[0].scrub.Status(); s.Problem != "" || s.FinishedAt.IsZero() {
		t.Errorf("a verification of a sound log: %+v", s)
	}
}
