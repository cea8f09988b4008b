package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/keyring"
	"mneme/internal/storage"
	"mneme/internal/storage/encfs"
	"mneme/memory"
)

// erasedWords are said in the namespace that is deleted only.
var erasedWords = []string{"borborygmine", "callipygianly", "defenestrator", "erinaceously", "floccinaucid", "gobbledygooks"}

// doomed fills two namespaces, the second of them with the words.
func doomed(t *testing.T, n *Node) {
	t.Helper()
	if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "doomed"}); err != nil {
		t.Fatal(err)
	}
	w := erasedWords
	for i := range 30 {
		must(t, n, fmt.Sprintf("the gardener waters row %d", i))
		postOK(t, n, "/v1/namespaces/doomed/events", map[string]any{"agent": "tester", "text": fmt.Sprintf("%s saw %s, entry %d", w[0], w[1], i),
			"uri": fmt.Sprintf("mem://doomed/%s/%d", w[2], i), "tags": []string{w[3]}, "conversation": w[4]})
	}
	if status, answer := post(t, n, "/v1/namespaces/doomed/events", `{"agent":"tester","text":"`+w[5]+`","kind":`); status != 400 {
		t.Fatalf("a body that is no JSON: %d %s", status, answer)
	}
	if status, answer := post(t, n, "/v1/namespaces/default/events", `{"agent":"tester","text":"malformed but alive","kind":`); status != 400 {
		t.Fatalf("a body that is no JSON: %d %s", status, answer)
	}
	// It writes the rows to a table, which a later deletion does not reach by itself.
	if err := n.served[0].state.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// erased waits until nothing is owed.
func erased(t *testing.T, n *Node) {
	t.Helper()
	await(t, "the erasure", func() bool {
		owed, err := n.eraser.owed()
		if err != nil {
			t.Fatal(err)
		}
		return owed == nil && n.eraser.Status() == nil
	})
}

// attack opens every derived file of dir with the storage keys of the keyring in
// keysOf, and lists the files that hold a word in a table, a log or elsewhere,
// and how many files that hold something opened.
func attack(t *testing.T, dir, keysOf string, words []string) (found []string, opened int) {
	t.Helper()
	keys, err := keyring.Open(keyring.Options{Dir: keysOf})
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	files := encfs.New(nil, keys.Storage())
	holds := func(b []byte) bool {
		small := bytes.ToLower(b)
		for _, w := range words {
			if bytes.Contains(small, []byte(w[:len(w)-2])) {
				return true
			}
		}
		return false
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(dir, path)
		if err = errors.Join(err, rerr); err != nil || e.IsDir() || e.Name() == "LOCK" || !isDerived(filepath.ToSlash(rel)) {
			return err
		}
		b, err := storage.ReadFile(files, path)
		if errors.Is(err, storage.ErrMissingKey) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(b) > 0 { // an empty file opens under no key
			opened++
		}
		if strings.HasSuffix(path, ".sst") {
			b = append(b, tableRows(t, files, path)...)
		}
		if holds(b) {
			found = append(found, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, opened
}

// tableRows is every row that a table holds, deleted or not.
func tableRows(t *testing.T, files vfs.FS, path string) (all []byte) {
	t.Helper()
	f, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		t.Fatal(err)
	}
	opt := &pebble.Options{Merger: &pebble.Merger{Name: "mneme.merge.1", Merge: pebble.DefaultMerger.Merge}}
	opt.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, opt.MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for kv := it.First(); kv != nil; kv = it.Next() {
		v, _, err := kv.Value(nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, kv.K.UserKey...), v...)
	}
	return all
}

// nothingLeft checks a closed node's files with every key that a thief may have.
func nothingLeft(t *testing.T, dir string, older ...string) {
	t.Helper()
	found, opened := attack(t, dir, image(t, dir), erasedWords)
	if opened < 5 || len(found) > 0 {
		t.Errorf("with today's keys %d files open, and a word stands in %v", opened, found)
	}
	keys, err := keyring.Open(keyring.Options{Dir: image(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := keys.Storage().Current(); id > 0 {
		if _, kept := keys.Storage().Key(id - 1); kept || id == 1 {
			t.Errorf("storage key %d is the current one, and the former one is there: %v", id, kept)
		}
	}
	if err := keys.Close(); err != nil {
		t.Fatal(err)
	}
	for _, keys := range older {
		if found, opened := attack(t, dir, keys, erasedWords); opened > 0 {
			t.Errorf("with older keys %d files still open, words in %v", opened, found)
		}
	}
	names, err := os.ReadDir(filepath.Join(dir, "shards", "0"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), "state.") || strings.HasPrefix(e.Name(), "raft.db.") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// rebuiltAndClosed rebuilds a node's state from the shredded log and closes it: the
// hash stays the same, and of the erased words, which the files of before hold,
// nothing is left.
func rebuiltAndClosed(t *testing.T, n *Node, dir, before, older string) {
	t.Helper()
	report, err := n.operator.Rebuild(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Shards[0]; s.StateHash != s.Before {
		t.Errorf("the fold of the shredded log comes to %s, not %s", s.StateHash, s.Before)
	}
	shut(t, n)
	if found, _ := attack(t, before, older, erasedWords); len(found) < 2 {
		t.Fatalf("the attack finds nothing where something is: %v", found)
	}
	nothingLeft(t, dir, older)
}

func stillSearches(t *testing.T, n *Node) {
	t.Helper()
	if got := find(t, n, "gardener waters"); len(got) == 0 {
		t.Error("the other namespace finds nothing")
	}
	if _, err := n.reads.Search(t.Context(), memory.Access{Namespace: "doomed"}, memory.SearchRequest{Query: "entry"}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("search in what was deleted: %v", err)
	}
	list, err := n.operator.Rejected(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Rejected {
		if m.Namespace == "doomed" {
			t.Errorf("a refused message of what was deleted is listed: %+v", m)
		}
	}
	if len(list.Rejected) == 0 {
		t.Error("the refused message of the other namespace is gone")
	}
}

// openErasing opens a node that keeps an image of its keys as they are before it erases
// for the first time.
func openErasing(t *testing.T, dir string) (n *Node, before *string) {
	t.Helper()
	cfg := quiet(dir)
	cfg.SnapshotThreshold = 16
	before = new(string)
	cfg.Parts.EraseStep = func(name string) {
		if name == eraseKeys && *before == "" {
			*before = image(t, dir)
		}
	}
	return open(t, cfg), before
}

// What stood in a deleted namespace was found in old tables, logs, snapshots and
// Raft's log by whoever had the storage key.
func TestDeletedNamespaceLeavesTheFiles(t *testing.T) {
	dir := t.TempDir()
	n, before := openErasing(t, dir)
	doomed(t, n)
	if err := os.MkdirAll(n.dir.state(shard0)+".damaged-1", 0o700); err != nil {
		t.Fatal(err)
	}
	older := image(t, dir)
	at := n.served[0].replica.Group().Stats().LastIndex
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
	stillSearches(t, n)
	manifests, err := filepath.Glob(filepath.Join(n.dir.state(shard0), "gen-*", "MANIFEST-*"))
	if err != nil || len(manifests) != 1 {
		t.Errorf("former manifests name keys of former tables: %v %v", manifests, err)
	}
	if s := n.served[0].replica.Group().Stats(); s.FirstIndex != 0 && s.FirstIndex <= at {
		t.Errorf("Raft's log begins at %d, what was deleted stands up to %d", s.FirstIndex, at)
	}
	nothingLeft(t, image(t, dir), older) // a rebuild would leave no table of before
	rebuiltAndClosed(t, n, dir, *before, older)
	n = open(t, quiet(dir))
	stillSearches(t, n)
}

// erasureGoesOn kills a node before each of the steps of what erase begins. The next
// start goes on with it, and left looks at what it comes to.
func erasureGoesOn(t *testing.T, fill func(n *Node), erase func(n *Node) error, left func(n *Node), steps ...string) {
	t.Helper()
	dir := t.TempDir()
	cfg := quiet(dir)
	images := map[string]string{}
	cfg.Parts.EraseStep = func(name string) {
		if images[name] == "" {
			images[name] = image(t, dir)
		}
	}
	n := open(t, cfg)
	fill(n)
	older := image(t, dir)
	if err := erase(n); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
	want := shardOf(t, n).StateHash
	shut(t, n)
	for _, step := range steps {
		killed := images[step]
		if killed == "" {
			t.Fatalf("no step %q", step)
		}
		n := open(t, quiet(killed))
		erased(t, n)
		if got := shardOf(t, n).StateHash; got != want {
			t.Errorf("killed before %q: state hash %s, want %s", step, got, want)
		}
		left(n)
		shut(t, n)
		nothingLeft(t, killed, older)
		if t.Failed() {
			t.Fatalf("killed before %q", step)
		}
	}
}

// A node was killed within the erasure: the next start did not go on with it.
func TestErasureGoesOnAfterAKillAtEveryStep(t *testing.T) {
	erasureGoesOn(t, func(n *Node) { doomed(t, n) },
		func(n *Node) error { _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); return err },
		func(n *Node) { stillSearches(t, n) },
		eraseKeys, eraseReaders, eraseTables, eraseState, eraseCaches, eraseStorageKey, eraseRaft, eraseFiles, eraseEnd)
}

// A read that had begun before keeps what it sees; the erasure waits for it and
// says so, and writing goes on.
func TestErasureWaitsForOldReads(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	doomed(t, n)
	v := n.served[0].state.View()
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	await(t, "the step in which reads are waited for", func() bool {
		s := shardOf(t, n).Erasing
		return s != nil && s.Step == eraseReaders
	})
	must(t, n, "writing goes on")
	if _, ok := v.Namespace("doomed"); !ok {
		t.Error("the old view lost its rows")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
}

// TestSlowExportDelayedErasure: an export of another namespace that was read at
// 80 KB a second held the plan in the step readers for three minutes.
func TestSlowExportDelayedErasure(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	doomed(t, n)
	n.eraser.readersFor = 50 * time.Millisecond
	ctx, giveUp := context.WithTimeout(t.Context(), patience)
	defer giveUp()
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		lines := 0
		ended <- n.reads.Export(ctx, memory.Access{Namespace: "default"}, func(memory.ExportLine) error {
			if lines++; lines == 1 {
				close(begun)
			}
			select { // a reader that takes a line in 100 ms
			case <-time.After(100 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	<-begun
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if e := memory.AsError(err); e.Code != memory.CodeUnavailable || e.Hint == "" {
		t.Errorf("the export ended with %v", err)
	}
	erased(t, n)
	again := 0
	if err := n.reads.Export(t.Context(), memory.Access{Namespace: "default"}, func(memory.ExportLine) error { again++; return nil }); err != nil || again != 30 {
		t.Errorf("asked again: %d lines, %v", again, err)
	}
}

// TestErasureThatFailedAtOnceWasNotShown: an error before the first step left
// erasing out of the status.
func TestErasureThatFailedAtOnceWasNotShown(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	n.eraser.failed(errors.New("no writer"))
	if s := shardOf(t, n).Erasing; s == nil || s.Error != "no writer" || s.Step != eraseKeys || s.Since.IsZero() {
		t.Errorf("%+v", s)
	}
	n.eraser.Wake()
	erased(t, n)
}

// TestErasedFileOfNewerFilesHeldUpErasing: nats/, shards/ and keys/ of an earlier day
// were put back beside today's erased.json. What was deleted then had a sequence that
// was covered, it said, so it never left the files.
func TestErasedFileOfNewerFilesHeldUpErasing(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	doomed(t, n)
	older := image(t, dir)
	for i := range 5 {
		must(t, n, fmt.Sprint("written later ", i))
	}
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
	shut(t, n)
	b, err := os.ReadFile(n.dir.erased())
	if err == nil {
		err = os.WriteFile(filepath.Join(older, "erased.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	cfg := quiet(older)
	cfg.Parts.EraseStep = func(name string) {
		if name == eraseEnd {
			ended++
		}
	}
	n = open(t, cfg)
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
	shut(t, n)
	if ended != 1 {
		t.Errorf("%d plans were carried out", ended)
	}
}

// erased.json counts for the log and the keys that it was written beside.
func TestErasedFileCountsForItsLogAndKeys(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	must(t, n, "something")
	at := n.served[0].state.Cursor().Seq
	frame, err := n.served[0].frameHash(at)
	if err != nil || frame == "" {
		t.Fatal(frame, err)
	}
	key, _ := n.keys.Storage().Current()
	state := n.served[0].state.Generation()
	for what, tt := range map[string]struct {
		f    erasedFile
		want uint64
	}{
		"its own":                    {erasedFile{Shards: []erasedShard{{State: state, Through: at, Frame: frame}}, StorageKey: key}, at},
		"an older key":               {erasedFile{Shards: []erasedShard{{State: state, Through: at, Frame: frame}}, StorageKey: key - 1}, at},
		"another log":                {erasedFile{Shards: []erasedShard{{State: state, Through: at, Frame: frame[2:] + "00"}}, StorageKey: key}, 0},
		"another place":              {erasedFile{Shards: []erasedShard{{State: state, Through: at - 1, Frame: frame}}, StorageKey: key}, 0},
		"beyond the log":             {erasedFile{Shards: []erasedShard{{State: state, Through: at + 9, Frame: frame}}, StorageKey: key}, 0},
		"beyond the log, and silent": {erasedFile{Shards: []erasedShard{{State: state, Through: at + 9}}, StorageKey: key}, 0},
		"newer keys":                 {erasedFile{Shards: []erasedShard{{State: state, Through: at, Frame: frame}}, StorageKey: key + 1}, 0},
		"another state":              {erasedFile{Shards: []erasedShard{{State: state + "x", Through: at, Frame: frame}}, StorageKey: key}, 0},
	} {
		if err := n.dir.writeErased(tt.f); err != nil {
			t.Fatal(err)
		}
		got, err := n.eraser.done(n.served[0])
		if err != nil || got != tt.want {
			t.Errorf("%s: %d, %v", what, got, err)
		}
		if f, err := n.dir.readErased(); err != nil || (f.of(0).Through == 0) != (tt.want == 0) {
			t.Errorf("%s is kept as %+v, %v", what, f, err)
		}
	}
}
