package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/backup"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// runs is a node that runs, as backups are made from it.
type runs struct{ *Node }

func (r runs) Log(ctx context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	return r.operator.BackupLog(ctx, w, after)
}

func (r runs) Keys(ctx context.Context, w io.Writer, master bool) error {
	_, err := r.operator.BackupKeys(ctx, w, master)
	return err
}

func (r runs) Destroyed(ctx context.Context) (memory.DestroyedKeys, error) {
	return r.operator.DestroyedKeys(ctx)
}

// places are two places of backups, in which each run comes an hour after the one before.
type places struct {
	t        *testing.T
	to, keys backup.Dir
	now      time.Time
}

func newPlaces(t *testing.T) *places {
	out := t.TempDir()
	return &places{t: t, to: backup.Dir{Path: filepath.Join(out, "place")}, keys: backup.Dir{Path: filepath.Join(out, "keys")}, now: time.Now().Add(-240 * time.Hour)}
}

func (p *places) try(src backup.Source, full bool) (memory.BackupMade, error) {
	p.now = p.now.Add(time.Hour)
	return backup.Make(p.t.Context(), src, p.to, p.keys, backup.Options{Full: full, Now: func() time.Time { return p.now }, Version: "test"})
}

func (p *places) backup(src backup.Source) memory.BackupMade {
	p.t.Helper()
	made, err := p.try(src, false)
	if err != nil {
		p.t.Fatal(err)
	}
	return made
}

func (p *places) choose(id string) backup.Chosen {
	p.t.Helper()
	c, err := backup.Choose(p.t.Context(), p.to, p.keys, backup.Which{ID: id})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// restore restores a backup, and gives where.
func (p *places) restore(c backup.Chosen, until Until) (string, memory.RestoreReport) {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), "new")
	r, err := Offline{Config: quiet("")}.RestoreFrom(p.t.Context(), dir, RestoreSource{Log: c.Log, Keys: c.Keys, Until: until, Destroyed: c.Destroyed, Place: &c}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return dir, r
}

func (p *places) drill(id string) (memory.BackupDrillReport, error) {
	p.t.Helper()
	scratch := p.t.TempDir()
	r, err := Offline{Config: quiet("")}.Drill(p.t.Context(), scratch, p.choose(id), nil)
	if left, lerr := os.ReadDir(scratch); lerr != nil || len(left) > 0 {
		p.t.Errorf("the drill left %v, %v", left, lerr)
	}
	return r, err
}

func TestBackupsOfARunningNodeGoOnFromEachOther(t *testing.T) {
	t.Parallel()
	p, n := newPlaces(t), open(t, quiet(t.TempDir()))
	for i := range 20 {
		must(t, n, fmt.Sprint("the first ones, number ", i))
	}
	first := p.backup(runs{n})
	was := shardOf(t, n)
	must(t, n, "a heron stood in the harbour")
	second := p.backup(runs{n})
	want := shardOf(t, n)
	if second.Parent != first.ID || second.Frames != 1 || second.Events != 1 || second.Position != want.Position {
		t.Errorf("%+v behind %+v, at %s", second, first, want.Position)
	}
	for id, want := range map[string]memory.ShardStatus{first.ID: was, second.ID: want} {
		c := p.choose(id)
		if got := c.Manifest.Shards[0].StateHash; got != want.StateHash {
			t.Errorf("%s: the manifest has the hash %s, not %s", id, got, want.StateHash)
		}
		r, err := p.drill(id)
		if err != nil || !r.OK || !r.Shards[0].Same || r.Shards[0].Want != want.StateHash || r.Records != want.Records || r.NotCompared != "" {
			t.Errorf("drill of %s: %+v, %v", id, r, err)
		}
	}
	shut(t, n)

	// What was restored from the newest goes on in the same place; what was restored from an
	// older one is another log.
	dir, r := p.restore(p.choose(""), Until{})
	if r.Shards[0].StateHash != want.StateHash {
		t.Errorf("%+v, want %s", r, want.StateHash)
	}
	again := open(t, quiet(dir))
	must(t, again, "after the restore")
	third := p.backup(runs{again})
	if third.Parent != second.ID || third.Events > 10 {
		t.Errorf("%+v", third)
	}
	if r, err := p.drill(""); err != nil || !r.OK || !r.Shards[0].Same {
		t.Errorf("%+v, %v", r, err)
	}
	shut(t, again)
	dir, _ = p.restore(p.choose(first.ID), Until{})
	other := open(t, quiet(dir))
	for i := range 5 {
		must(t, other, fmt.Sprint("another course of things ", i))
	}
	if _, err := p.try(runs{other}, false); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(memory.AsError(err).Hint, "--full") {
		t.Errorf("a log that does not go on: %v", err)
	}
	if made, err := p.try(runs{other}, true); err != nil || made.Parent != "" { // the remedy
		t.Errorf("%+v, %v", made, err)
	}
	v, err := backup.Verify(t.Context(), p.to, p.keys, nil)
	if err != nil || !v.OK || v.Backups != 4 {
		t.Errorf("%+v, %v", v, err)
	}
	shut(t, other)
}

func TestBackupsOfAStoppedNodeGoOn(t *testing.T) {
	t.Parallel()
	p, dir := newPlaces(t), t.TempDir()
	off := Offline{Config: quiet("")}
	var last memory.BackupMade
	for i := range 3 {
		n := open(t, quiet(dir))
		must(t, n, fmt.Sprint("memory ", i))
		want := shardOf(t, n)
		shut(t, n)
		err := off.BackupSource(t.Context(), dir, nil, func(src backup.Source) error {
			made := p.backup(src)
			if made.Parent != last.ID || i > 0 && made.Events > 5 {
				t.Errorf("%d: %+v", i, made)
			}
			last = made
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.drill(""); err != nil || !r.OK || r.Shards[0].Want != want.StateHash {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestBackupOfSeveralShards(t *testing.T) {
	t.Parallel()
	cfg := quiet(t.TempDir())
	cfg.Shards = 3
	n, p := open(t, cfg), newPlaces(t)
	for i := range 6 {
		name := fmt.Sprint("space-", i)
		if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: name}); err != nil {
			t.Fatal(err)
		}
		postOK(t, n, "/v1/namespaces/"+name+"/events", map[string]any{"agent": "tester", "text": "said in " + name})
	}
	p.backup(runs{n})
	postOK(t, n, "/v1/namespaces/space-1/events", map[string]any{"agent": "tester", "text": "said later"})
	made := p.backup(runs{n})
	if made.Frames != 1 || strings.Count(made.Position, ",") != 2 {
		t.Errorf("%+v", made)
	}
	r, err := p.drill("")
	if err != nil || !r.OK || len(r.Shards) != 3 || r.Records != 7 || !r.Shards[2].Same || r.Shards[2].Want == "" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"0.1.0.1." + strings.Repeat("0", 64), "nonsense"} {
		if _, err := n.operator.BackupLog(t.Context(), io.Discard, bad); memory.CodeOf(err) != memory.CodeConflict && memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("marks %q: %v", bad, err)
		}
	}
	// A position of each shard is wanted.
	c := p.choose("")
	for positions, code := range map[string]memory.Code{"p0.0.1.0": memory.CodeInvalid, "p0.0.1.0,p0.0.1.0": memory.CodeInvalid, "x": memory.CodeInvalid,
		"p0.0.1.0,p1.0.1.0,p2.0.99999.0": memory.CodeNotFound} {
		_, err := Offline{Config: quiet("")}.RestoreFrom(t.Context(), filepath.Join(t.TempDir(), "new"), RestoreSource{Log: c.Log, Keys: c.Keys, Until: Until{Positions: positions}}, nil)
		if memory.CodeOf(err) != code {
			t.Errorf("%s: %v", positions, err)
		}
	}
	if _, r := p.restore(c, Until{Positions: made.Position}); r.Shards[1].StateHash != c.Manifest.Shards[1].StateHash {
		t.Errorf("%+v", r)
	}
	shut(t, n)
}

// A restore ends at a position or a time, and positions behind it are lost.
func TestRestoreUpToAPositionOrATime(t *testing.T) {
	t.Parallel()
	cfg := quiet(t.TempDir())
	now := time.Now().Add(-time.Hour).Truncate(time.Second)
	cfg.Now = func() time.Time { return now }
	n, p := open(t, cfg), newPlaces(t)
	type point struct {
		status memory.ShardStatus
		at     time.Time
	}
	var points []point
	for i := range 4 {
		now = now.Add(time.Minute)
		must(t, n, fmt.Sprint("memory ", i))
		points = append(points, point{shardOf(t, n), now})
		if i%2 == 0 {
			p.backup(runs{n})
		}
	}
	// Several events in one frame.
	now = now.Add(time.Minute)
	items := []memory.Capture{}
	for i := range 3 {
		items = append(items, memory.Capture{Agent: "tester", Text: fmt.Sprint("at once ", i)})
	}
	postOK(t, n, "/v1/namespaces/default/events", items)
	together := shardOf(t, n)
	p.backup(runs{n})
	shut(t, n)
	c := p.choose("")
	for i, pt := range points {
		for _, until := range []Until{{Positions: pt.status.Position}, {Time: pt.at.Add(30 * time.Second)}} {
			dir, r := p.restore(c, until)
			if r.Shards[0].StateHash != pt.status.StateHash {
				t.Errorf("%d, %+v: %+v, want %s", i, until, r.Shards[0], pt.status.StateHash)
			}
			if i != 1 {
				continue
			}
			n := open(t, quiet(dir))
			if got := shardOf(t, n); got.Records != 2 {
				t.Errorf("%d memories", got.Records)
			}
			must(t, n, "life goes on")
			if _, err := n.reads.Search(t.Context(), memory.Access{Namespace: "default", AtLeast: points[3].status.Position}, memory.SearchRequest{Query: "memory"}); memory.CodeOf(err) != memory.CodeLostPosition {
				t.Errorf("a position that was not restored: %v", err)
			}
			shut(t, n)
		}
	}
	if _, r := p.restore(c, Until{Time: now.Add(time.Hour)}); r.Shards[0].StateHash != together.StateHash {
		t.Errorf("a time behind the end: %+v", r)
	}
	end, err := events.ParsePosition(together.Position)
	if err != nil || end.Index != 2 {
		t.Fatalf("%s: the three are not in one frame, %v", together.Position, err)
	}
	end.Index = 1
	inside, lost := end.String(), end
	lost.Index, lost.Epoch = 2, 7
	for positions, want := range map[string]struct {
		code memory.Code
		hint string
	}{
		inside:        {memory.CodeInvalid, together.Position},
		lost.String(): {memory.CodeLostPosition, "--backup"},
	} {
		_, err := Offline{Config: quiet("")}.RestoreFrom(t.Context(), filepath.Join(t.TempDir(), "new"), RestoreSource{Log: c.Log, Keys: c.Keys, Until: Until{Positions: positions}}, nil)
		if memory.CodeOf(err) != want.code || !strings.Contains(memory.AsError(err).Hint, want.hint) {
			t.Errorf("%s: %v, %q", positions, err, memory.AsError(err).Hint)
		}
	}
	_, err = Offline{Config: quiet("")}.RestoreFrom(t.Context(), filepath.Join(t.TempDir(), "new"), RestoreSource{Log: c.Log, Keys: c.Keys, Until: Until{Time: now.Add(-24 * time.Hour)}}, nil)
	if memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("before the beginning: %v", err)
	}
}

// What was forgotten stays forgotten: an older backup, with the keys of its own time, is
// restored without what was erased since.
func TestRestoreForgetsWhatWasForgottenSince(t *testing.T) {
	t.Parallel()
	n, p := open(t, quiet(t.TempDir())), newPlaces(t)
	ids := doomedSubject(t, n)
	if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "doomed"}); err != nil {
		t.Fatal(err)
	}
	postOK(t, n, "/v1/namespaces/doomed/events", map[string]any{"agent": "tester", "text": "said in the doomed one"})
	older := p.backup(runs{n})
	oldKeys := p.choose("").Keys
	if err := n.Erase(t.Context(), "default", "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	must(t, n, "written after that")
	newest := p.backup(runs{n})
	want := shardOf(t, n)
	if len(newest.Removed) != 1 || newest.Destroyed < 3 {
		t.Errorf("%+v", newest)
	}
	shut(t, n)
	if r, err := p.drill(""); err != nil || !r.OK || r.Shards[0].Want != want.StateHash {
		t.Errorf("the newest: %+v, %v", r, err)
	}
	if r, err := p.drill(older.ID); err != nil || !r.OK || !strings.Contains(r.NotCompared, "destroyed since") {
		t.Errorf("the older: %+v, %v", r, err)
	}
	c := p.choose(older.ID)
	if bytes.Equal(c.Keys, oldKeys) {
		t.Error("the older keys are still there")
	}
	for name, keys := range map[string][]byte{"the newest keys": c.Keys, "keys of that time": oldKeys} {
		c.Keys = keys
		dir, _ := p.restore(c, Until{})
		n := open(t, quiet(dir))
		onlyOthersAreFound(t, n, ids)
		await(t, "the namespace to end", func() bool {
			_, err := n.reads.Namespace(t.Context(), "doomed")
			return memory.CodeOf(err) == memory.CodeNotFound
		})
		erased(t, n)
		before := shardOf(t, n)
		if r, err := n.operator.Rebuild(t.Context(), nil); err != nil || r.Shards[0].StateHash != before.StateHash {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		shut(t, n)
	}
	// Without the list they come back, so the test above shows something.
	c.Keys, c.Destroyed = oldKeys, backup.Destroyed{}
	dir, _ := p.restore(c, Until{})
	n = open(t, quiet(dir))
	if got := find(t, n, erasedWords[0]); len(got) == 0 || strings.HasPrefix(got[0], "the gardener") {
		t.Errorf("without the list: %v", got)
	}
	shut(t, n)
}

// A full backup of an older copy of the node does not take the keys of what only the newer
// backups hold, whatever is destroyed later, and each backup is restored with keys that open it.
func TestBackupOfAnOlderCopyKeepsTheKeysOfNewerBackups(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), newPlaces(t)
	n := open(t, quiet(dir))
	must(t, n, "a memory of the first time")
	for _, name := range []string{"doomed", "doomed-later"} {
		if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: name}); err != nil {
			t.Fatal(err)
		}
		postOK(t, n, "/v1/namespaces/"+name+"/events", map[string]any{"agent": "tester", "text": "said in " + name})
	}
	first := p.backup(runs{n})
	shut(t, n)
	older := filepath.Join(t.TempDir(), "copy")
	if err := copyStopped(dir, older); err != nil {
		t.Fatal(err)
	}
	n = open(t, quiet(dir))
	if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "team-two"}); err != nil {
		t.Fatal(err)
	}
	postOK(t, n, "/v1/namespaces/team-two/events", map[string]any{"agent": "tester", "text": "a memory of team two"})
	second := p.backup(runs{n})
	shut(t, n)

	n = open(t, quiet(older))
	if _, err := p.try(runs{n}, false); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("%v", err)
	}
	if _, err := p.try(runs{n}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	last := p.backup(runs{n})
	shut(t, n)
	name := "keys/" + second.ID + ".keys"
	if !slices.Contains(last.KeysKept, name) || slices.Contains(last.Removed, name) || !slices.Contains(last.Removed, "keys/"+first.ID+".keys") {
		t.Errorf("%+v", last)
	}
	if _, err := backup.Prune(t.Context(), p.to, p.keys, backup.Keep{Newest: 8, Now: func() time.Time { return p.now }}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first.ID, second.ID, last.ID} {
		if r, err := p.drill(id); err != nil || !r.OK || (r.DestroyedLiving > 0) != (id == second.ID) {
			t.Errorf("drill of %s: %+v, %v", id, r, err)
		}
	}
	if v, err := backup.Verify(t.Context(), p.to, p.keys, nil); err != nil || !v.OK {
		t.Errorf("%+v, %v", v, err)
	}
	restored, r := p.restore(p.choose(second.ID), Until{})
	if r.DestroyedLiving == 0 {
		t.Errorf("%+v", r)
	}
	n = open(t, quiet(restored))
	if found, err := n.reads.Search(t.Context(), memory.Access{Namespace: "team-two"}, memory.SearchRequest{Query: "team two"}); err != nil || len(found.Results) != 1 {
		t.Errorf("team-two: %+v, %v", found, err)
	}
	await(t, "the namespace to end again", func() bool {
		_, err := n.reads.Namespace(t.Context(), "doomed")
		return memory.CodeOf(err) == memory.CodeNotFound
	})
	shut(t, n)

	// Without those keys verify names what opens nowhere.
	if err := os.Remove(filepath.Join(p.keys.Path, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
	v, err := backup.Verify(t.Context(), p.to, p.keys, nil)
	if err != nil || v.OK || len(v.Problems) != 1 || v.Problems[0].Backup != second.ID || v.Problems[0].Kind != memory.BackupMissing {
		t.Errorf("without the keys: %+v, %v", v, err)
	}
}

// Keys of a file are those that the place was written with, or the restore does not begin.
func TestKeysOfAFileBelongToThePlace(t *testing.T) {
	t.Parallel()
	p, file := newPlaces(t), filepath.Join(t.TempDir(), "keys")
	var keys [][]byte
	for i := range 2 {
		n := open(t, quiet(t.TempDir()))
		must(t, n, "a memory")
		var b bytes.Buffer
		if _, err := n.operator.BackupKeys(t.Context(), &b, true); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, b.Bytes())
		if i == 0 {
			p.backup(runs{n})
		}
		shut(t, n)
	}
	for i, code := range []memory.Code{"", memory.CodeLogDiverged} {
		if err := os.WriteFile(file, keys[i], 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := backup.Choose(t.Context(), p.to, nil, backup.Which{})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "new")
		_, err = Offline{Config: quiet("")}.RestoreFrom(t.Context(), dir, RestoreSource{Log: c.Log, KeysFile: file, Destroyed: c.Destroyed, Place: &c}, nil)
		if (err != nil) != (code != "") || err != nil && (memory.CodeOf(err) != code || memory.AsError(err).Hint == "") {
			t.Errorf("keys %d: %v", i, err)
		}
	}
}

// A drill tells a state that is not the one that was backed up, leaves nothing behind when it
// fails, and removes what a killed one left, but not what another one is working in.
func TestDrill(t *testing.T) {
	t.Parallel()
	n, p := open(t, quiet(t.TempDir())), newPlaces(t)
	must(t, n, "a memory")
	made := p.backup(runs{n})
	shut(t, n)
	off := Offline{Config: quiet("")}
	scratch := t.TempDir()
	for _, name := range []string{drillPrefix + "killed", drillPrefix + "running", "somebody's"} {
		if err := os.MkdirAll(filepath.Join(scratch, name, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirs := t.TempDir() // a link is not followed
	if err := os.Symlink(theirs, filepath.Join(scratch, drillPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	lock, err := lockDataDir(n.cfg.FS, filepath.Join(scratch, drillPrefix+"running"))
	if err != nil {
		t.Fatal(err)
	}
	c := p.choose("")
	c.Manifest.Shards[0].StateHash = strings.Repeat("0", 64)
	var inside []string
	r, err := off.Drill(t.Context(), scratch, c, func(done, total uint64) {
		if done != total {
			return
		}
		_ = filepath.WalkDir(scratch, func(path string, _ os.DirEntry, _ error) error {
			inside = append(inside, filepath.Base(path))
			return nil
		})
	})
	if err != nil || r.OK || r.Shards[0].Same || !r.Shards[0].LogOK {
		t.Errorf("another hash: %+v, %v", r, err)
	}
	if !slices.Contains(inside, "keyring.v1") || slices.ContainsFunc(inside, func(name string) bool { return strings.HasPrefix(name, "master.key") }) {
		t.Errorf("the master key was written, or nothing was: %v", inside)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := off.Drill(ended, scratch, p.choose(""), nil); err == nil {
		t.Error("a drill that was stopped succeeded")
	}
	left, err := os.ReadDir(scratch)
	if err != nil || len(left) != 3 || left[0].Name() != drillPrefix+"link" || left[1].Name() != drillPrefix+"running" || left[2].Name() != "somebody's" {
		t.Errorf("left: %v, %v", left, err)
	}
	if in, err := os.ReadDir(theirs); err != nil || len(in) > 0 {
		t.Errorf("behind the link: %v, %v", in, err)
	}
	if err := lock.unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := off.Drill(t.Context(), filepath.Join(scratch, "none"), p.choose(""), nil); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("no scratch directory: %v", err)
	}
	// A damaged range is an error with a hint, and no report.
	path := filepath.Join(p.to.Path, "log", made.ID+".log")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, flipped(b), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.drill(""); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("a damaged backup: %v", err)
	}
}

// Keys without their master key are of use beside it only.
func TestKeysWithoutTheirMasterKey(t *testing.T) {
	t.Parallel()
	cfg := quiet(t.TempDir())
	cfg.MasterKey = keyring.MasterText{Name: "$MASTER", Text: strings.Repeat("5a", 32)}
	n, p := open(t, cfg), newPlaces(t)
	must(t, n, "a memory")
	made, err := backup.Make(t.Context(), runs{n}, p.to, p.keys, backup.Options{WithoutMaster: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	shut(t, n)
	if v, err := backup.Verify(t.Context(), p.to, p.keys, nil); err != nil || !v.OK {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := p.drill(made.ID); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(fmt.Sprint(err), "master key") || memory.AsError(err).Hint == "" {
		t.Errorf("without it: %v, %q", err, memory.AsError(err).Hint)
	}
	with := quiet("")
	with.MasterKey = cfg.MasterKey
	if r, err := (Offline{Config: with}).Drill(t.Context(), t.TempDir(), p.choose(""), nil); err != nil || !r.OK || !r.Shards[0].Same {
		t.Errorf("beside it: %+v, %v", r, err)
	}
}

func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

// A place that gives other bytes at the second reading than at the first is found out, and
// what was restored up to then is gone.
func TestRestoreOfAPlaceThatChanges(t *testing.T) {
	t.Parallel()
	n, p := open(t, quiet(t.TempDir())), newPlaces(t)
	must(t, n, "a memory")
	p.backup(runs{n})
	shut(t, n)
	c := p.choose("")
	times, whole := 0, c.Log.Files[0].Open
	c.Log.Files[0].Open = func(ctx context.Context) (io.ReadCloser, error) {
		r, err := whole(ctx)
		if times++; times == 2 && err == nil {
			b, _ := io.ReadAll(r)
			return io.NopCloser(bytes.NewReader(b[:len(b)-20])), r.Close()
		}
		return r, err
	}
	dir := filepath.Join(t.TempDir(), "new")
	_, err := Offline{Config: quiet("")}.RestoreFrom(t.Context(), dir, RestoreSource{Log: c.Log, Keys: c.Keys}, nil)
	if err == nil || times != 2 {
		t.Errorf("%v after %d readings", err, times)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "[^L]*")); err != nil || len(left) > 0 { // all but LOCK
		t.Errorf("left: %v, %v", left, err)
	}
}

// Backups beside writes hold a state, and each holds all that was acknowledged before it.
func TestBackupsBesideWrites(t *testing.T) {
	t.Parallel()
	n, p := open(t, quiet(t.TempDir())), newPlaces(t)
	must(t, n, "the first")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		i := 0
		for ; ctx.Err() == nil && i < 5000; i++ {
			if _, err := capture(n, fmt.Sprint("beside ", i)); err != nil {
				t.Error(err)
				break
			}
		}
		done <- i
	}()
	for range 4 {
		acked := must(t, n, "acknowledged before")
		made := p.backup(runs{n})
		end, err := events.ParsePosition(made.Position)
		at, err2 := events.ParsePosition(acked.Position)
		if err != nil || err2 != nil || end.Before(at) {
			t.Errorf("the backup ends at %s, %s was acknowledged before it", made.Position, acked.Position)
		}
		if c := p.choose(""); c.Manifest.Shards[0].StateHash == "" {
			t.Errorf("%s has no state hash", made.ID)
		}
	}
	cancel()
	if n := <-done; n == 0 {
		t.Error("nothing was written beside them")
	}
	shut(t, n)
	set, err := backup.ReadSet(t.Context(), p.to)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range set.Backups {
		if r, err := p.drill(m.ID); err != nil || !r.OK || r.NotCompared != "" {
			t.Errorf("%s: %+v, %v", m.ID, r, err)
		}
	}
}
