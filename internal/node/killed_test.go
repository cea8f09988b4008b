package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// killed makes the directory of a node that was killed: the state on disk lacks its
// newest commands, which are in Raft's log.
func killed(t *testing.T) (dir string, want memory.ShardStatus) {
	t.Helper()
	running := t.TempDir()
	shut(t, open(t, quiet(running)))
	n := open(t, quiet(running))
	for i := range 12 {
		must(t, n, fmt.Sprint("memory of the harbour, number ", i))
	}
	want = shardOf(t, n)
	dir = image(t, running)
	shut(t, n)
	return dir, want
}

// cutLog takes the last messages off the log of a stopped node.
func cutLog(t *testing.T, dir string, messages int) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	b, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for o := 0; o < len(b); o += int(binary.LittleEndian.Uint32(b[o:]) &^ (1 << 31)) {
		at = append(at, o)
	}
	if err := os.Truncate(blocks[0], int64(at[len(at)-messages])); err != nil {
		t.Fatal(err)
	}
}

// Offline doctor, verify and backup compared a log that had lost its end with a state
// that lacked it too, and said that all is well; a repair wrote less than what was
// acknowledged and said that it had done.
func TestWorkOnAKilledNodeKnowsAllThatItApplied(t *testing.T) {
	t.Parallel()
	dir, want := killed(t)
	off := Offline{Config: quiet("")}
	out := t.TempDir()
	log, keys := filepath.Join(out, "log"), filepath.Join(out, "keys")

	whole := image(t, dir)
	if r, err := off.Doctor(t.Context(), whole); err != nil || !r.OK {
		t.Errorf("nothing is lost: %+v, %v", r, err)
	}
	if r, err := off.Backup(t.Context(), whole, log, keys, nil); err != nil || r.Position != want.Position {
		t.Errorf("backup %+v, %v; want %s", r, err, want.Position)
	}
	n := open(t, quiet(whole))
	if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" {
		t.Errorf("%d of %d records", got.Records, want.Records)
	}
	shut(t, n)

	// Each verb is the first to look at such a node.
	const lost = 5
	short := func() string {
		copied := image(t, dir)
		cutLog(t, copied, lost)
		return copied
	}
	if r, err := off.Doctor(t.Context(), short()); err != nil || r.OK {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	if r, err := off.VerifyLog(t.Context(), short(), nil); err != nil || r.Shards[0].OK {
		t.Errorf("verify: %+v, %v", r, err)
	}
	if _, err := off.Backup(t.Context(), short(), log, keys, nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("backup: %v", err)
	}
	for what, damage := range map[string]func(dir string) error{
		"end lost":  func(string) error { return nil },
		"log lost":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, "nats")) },
		"raft lost": func(dir string) error { return os.Remove(filepath.Join(dir, "shards", "0", "raft.db")) },
	} {
		e := short()
		if err := damage(e); err != nil {
			t.Fatal(err)
		}
		r, err := off.RepairLog(t.Context(), e, nil)
		if what == "raft lost" { // then nothing tells of what was lost
			if memory.CodeOf(err) != memory.CodeConflict {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
			continue
		}
		behind := events.Position{Epoch: 1, Seq: want.Log.Last + 1}.String() // its last frame begins the epoch
		if err != nil || r.Shards[0].Position != behind {
			t.Errorf("%s: repaired to %+v, %v; want %s", what, r, err, behind)
		}
		if d, err := off.Doctor(t.Context(), e); err != nil || !d.OK {
			t.Errorf("%s: repaired: %+v, %v", what, d, err)
		}
		n := open(t, quiet(e))
		sound(t, n)
		if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" {
			t.Errorf("%s: %d of %d records, %+v", what, got.Records, want.Records, got.Log)
		}
		shut(t, n)
	}
}

// What Raft's files hold was taken for nothing where they could not be read: a backup
// of a log that had lost its end, too, was made without what was acknowledged.
func TestUnreadableRaftFilesStopABackup(t *testing.T) {
	dir, _ := killed(t)
	cutLog(t, dir, 5)
	snapshots := filepath.Join(dir, "shards", "0", "snapshots")
	indexes, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "msgs", "index.db"))
	if err = errors.Join(err, os.RemoveAll(snapshots), os.WriteFile(snapshots, nil, 0o600), os.RemoveAll(indexes[0])); err != nil {
		t.Fatal(err)
	}
	off := Offline{Config: quiet("")}
	if r, err := off.Backup(t.Context(), dir, filepath.Join(t.TempDir(), "log"), "", nil); err == nil {
		t.Errorf("%+v", r)
	}
	if r, err := off.RepairLog(t.Context(), dir, nil); err == nil {
		t.Errorf("repaired: %+v", r)
	}
	if r, err := off.Doctor(t.Context(), dir); err != nil || r.OK {
		t.Errorf("doctor: %+v, %v", r, err)
	}
}

// Doctor and repair took a state of before a repair, which a start brings up to date
// from Raft's log, for one whose log is lost.
func TestOlderStateThatTheStartHealsIsNoDamage(t *testing.T) {
	t.Parallel()
	dir, _ := rotten(t, 7)
	state := filepath.Join(dir, "shards", "0", "state")
	older := image(t, state)
	n := open(t, quiet(dir))
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	must(t, n, "written after the repair")
	want := shardOf(t, n)
	shut(t, n)
	putBack(t, older, state)
	off := Offline{Config: quiet("")}
	if _, err := off.RepairLog(t.Context(), image(t, dir), nil); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("repair: %v", err)
	}
	if r, err := off.Doctor(t.Context(), dir); err != nil || !r.OK {
		t.Errorf("doctor: %+v, %v", r, err)
	}
	n = open(t, quiet(dir))
	if got := shardOf(t, n); got.Records != want.Records || got.Log.Diverged != "" {
		t.Errorf("%d of %d records, %+v", got.Records, want.Records, got.Log)
	}
}

// lostEndIsTold expects of all work on a stopped node that it says of a log whose end
// is lost that it is.
func lostEndIsTold(t *testing.T, off Offline, dir string) {
	t.Helper()
	if report, err := off.Doctor(t.Context(), dir); err != nil || report.OK {
		t.Errorf("doctor is content: %+v %v", report, err)
	}
	if _, err := off.VerifyLog(t.Context(), dir, nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("verify: %v", err)
	}
	if _, err := off.RepairLog(t.Context(), dir, nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("repair: %v", err)
	}
}

// emptyState makes the state of a stopped node that has none, as a start does that is
// killed before it has filled it.
func emptyState(t *testing.T, off Offline, dir string) {
	t.Helper()
	err := off.with(t.Context(), dir, func(c *core) error {
		s, err := projections.Open(c.shards[0].replicaOptions().StateOptions())
		if err != nil {
			return err
		}
		return s.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A log that was cut at a flipped bit and a state that was lost: the node folded what
// was left of the log, said nothing, and gave positions out again.
func TestLostStateBesideACutLogIsFilledFromRaft(t *testing.T) {
	t.Parallel()
	whole, want := killed(t)
	wantEnded := want
	compacted, wantCompacted := whole, want // of one whose Raft log has been cut off behind a snapshot
	{
		dir := image(t, whole)
		n := open(t, quiet(dir))
		if err := n.served[0].replica.Group().Snapshot(); err != nil {
			t.Fatal(err)
		}
		must(t, n, "behind the snapshot")
		wantCompacted, compacted = shardOf(t, n), image(t, dir)
		shut(t, n)
	}
	ended := func(end func(n *Node) error) string { // of one killed right behind a snapshot
		dir := image(t, whole)
		n := open(t, quiet(dir))
		defer shut(t, n)
		if err := end(n); err != nil {
			t.Fatal(err)
		}
		wantEnded = shardOf(t, n)
		return image(t, dir)
	}
	snapped := ended(func(n *Node) error { return n.served[0].replica.Group().Snapshot() })
	renewed := ended(func(n *Node) error { return n.served[0].replica.Group().Renew(t.Context()) })
	state, snapshots := filepath.Join("shards", "0", "state"), filepath.Join("shards", "0", "snapshots")
	off := Offline{Config: quiet("")}
	for name, c := range map[string]struct {
		from    string
		want    memory.ShardStatus
		cut     int
		lost    []string
		refuses bool
	}{
		"end of the log":                        {whole, want, 5, []string{state}, false},
		"all of the log":                        {whole, want, 0, []string{state, "nats"}, false},
		"behind a snapshot":                     {compacted, wantCompacted, 5, []string{state}, false},
		"all of the log behind a snapshot":      {compacted, wantCompacted, 0, []string{state, "nats"}, false},
		"nothing behind a snapshot":             {snapped, wantEnded, 5, []string{state}, false},
		"a new raft.db behind a snapshot":       {renewed, wantEnded, 5, []string{state}, false},
		"all of the log behind a new raft.db":   {renewed, wantEnded, 0, []string{state, "nats"}, false},
		"end of the log, and the snapshot":      {compacted, wantCompacted, 5, []string{state, snapshots}, true},
		"nothing of the log, but the snapshots": {compacted, wantCompacted, 0, []string{state, snapshots}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := image(t, c.from)
			if c.cut > 0 {
				cutLog(t, dir, c.cut)
			}
			for _, lost := range c.lost {
				if err := os.RemoveAll(filepath.Join(dir, lost)); err != nil {
					t.Fatal(err)
				}
			}
			shorter := c.cut > 0 || len(c.lost) == 2 && c.lost[1] == "nats"
			copied := image(t, dir)
			backup := func() {
				t.Helper()
				if _, err := off.Backup(t.Context(), copied, filepath.Join(t.TempDir(), "log"), "", nil); shorter != (memory.CodeOf(err) == memory.CodeLogDiverged) || !shorter && err != nil {
					t.Errorf("backup: %v", err)
				}
			}
			backup()
			if shorter {
				lostEndIsTold(t, off, copied)
				backup() // the repair that was refused has made no state that agrees with the log
				emptyState(t, off, copied)
				backup()
				lostEndIsTold(t, off, copied)
			}
			n, err := Open(t.Context(), quiet(dir))
			if c.refuses {
				var s *StartError
				if !errors.As(err, &s) || s.Kind != StartDamaged || s.Hint == "" {
					t.Errorf("start: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, n)
			if got := shardOf(t, n); got.Records != c.want.Records || (got.Log.Diverged != "") != shorter {
				t.Errorf("%d of %d records, %+v", got.Records, c.want.Records, got.Log)
			}
			if !shorter {
				must(t, n, "life goes on")
				return
			}
			if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeLogDiverged {
				t.Errorf("a write: %v", err)
			}
			if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			sound(t, n)
			if got := shardOf(t, n); got.Records != c.want.Records {
				t.Errorf("repaired: %d of %d records", got.Records, c.want.Records)
			}
			before := shardOf(t, n).StateHash
			if r, err := n.operator.Rebuild(t.Context(), nil); err != nil || r.Shards[0].StateHash != before {
				t.Errorf("rebuild: %+v, %v; want %s", r, err, before)
			}
			must(t, n, "life goes on")
		})
	}
}
