package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// setAsideIn puts into a data directory what each sort of repair leaves, of a byte each.
func setAsideIn(t *testing.T, dir string) (paths map[string]string) {
	t.Helper()
	paths = map[string]string{
		"aside/n1-old":                      memory.AsideNode,
		"nats/damaged/MNEME-1.blk":          memory.AsideLogBlock,
		"shards/0/state.damaged-2":          memory.AsideState,
		"shards/0/raft.db.damaged-1":        memory.AsideRaftLog,
		"shards/0/snapshots/damaged-1-2-3":  memory.AsideSnapshot,
		"keys/raft/snapshots/damaged-1-2-3": memory.AsideSnapshot,
		"shards/0/state.damaged-1":          memory.AsideState,
	}
	for path, kind := range paths {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if kind == memory.AsideNode || kind == memory.AsideState || kind == memory.AsideSnapshot {
			file = filepath.Join(file, "some", "file")
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// TestWhatLiesAsideIsListedAndRemoved: it stayed for ever, and only somebody at a shell could
// remove it.
func TestWhatLiesAsideIsListedAndRemoved(t *testing.T) {
	n := open(t, quiet(shortDir(t)))
	must(t, n, "the canary sings")
	call := func(method, path, body string, into any) int {
		t.Helper()
		status, b := overWith(t, n, method, path, body)
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatalf("%d %s: %v", status, b, err)
		}
		return status
	}
	var list memory.AsideList
	if status := call("GET", "/v1/admin/aside", "", &list); status != 200 || list.Aside == nil || len(list.Aside) != 0 {
		t.Errorf("%d %+v", status, list)
	}
	paths := setAsideIn(t, n.dir.path)
	if err := os.WriteFile(filepath.Join(n.dir.path, "shards", "0", "state.damaged-2", whyFile), []byte("a table is damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call("GET", "/v1/admin/aside", "", &list)
	for _, one := range list.Aside {
		if paths[one.Path] != one.Kind || one.Why == "" || one.At.IsZero() || one.Path == "shards/0/state.damaged-2" && one.Why != "a table is damaged" {
			t.Errorf("%+v", one)
		}
	}
	if len(list.Aside) != len(paths) || list.Bytes != int64(len(paths)+len("a table is damaged\n")) {
		t.Errorf("%d things of %d bytes", len(list.Aside), list.Bytes)
	}

	var removal memory.AsideRemoval
	remove := func(before time.Time, dry bool) int {
		t.Helper()
		body, err := json.Marshal(memory.RemoveAside{Before: before, DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		removal = memory.AsideRemoval{}
		return call("POST", "/v1/admin/aside/remove", string(body), &removal)
	}
	if remove(time.Now().Add(-time.Hour), false); len(removal.Removed) != 0 || len(removal.Kept) != len(paths) {
		t.Errorf("what is younger: %+v", removal)
	}
	if remove(time.Now().Add(time.Hour), true); len(removal.Removed) != len(paths) || !removal.DryRun {
		t.Errorf("a dry run: %+v", removal)
	}
	if call("GET", "/v1/admin/aside", "", &list); len(list.Aside) != len(paths) {
		t.Errorf("a dry run removed something: %+v", list)
	}
	if status := remove(time.Time{}, false); status != 400 {
		t.Errorf("without a time: %d", status)
	}
	if remove(time.Now().Add(time.Hour), false); len(removal.Removed) != len(paths) || removal.Bytes != list.Bytes {
		t.Errorf("%+v", removal)
	}
	if call("GET", "/v1/admin/aside", "", &list); len(list.Aside) != 0 {
		t.Errorf("still there: %+v", list)
	}
	if got := find(t, n, "canary"); len(got) != 1 {
		t.Errorf("what the node uses was removed: %v", got)
	}
	must(t, n, "and goes on")

	setAsideIn(t, n.dir.path)
	n.served[0].replica.SetDiverged(&eventlog.DivergedError{})
	if status := remove(time.Now().Add(time.Hour), false); status != memory.CodeLogDiverged.HTTPStatus() {
		t.Errorf("while the log is damaged: %d", status)
	}
	if call("GET", "/v1/admin/aside", "", &list); len(list.Aside) != len(paths) {
		t.Errorf("what may be needed is gone: %+v", list)
	}
}

// TestWhatLiesAsideOnAStoppedNode does the same to its data directory.
func TestWhatLiesAsideOnAStoppedNode(t *testing.T) {
	dir, _ := filled(t)
	paths := setAsideIn(t, dir)
	off, all := Offline{}, memory.RemoveAside{Before: time.Now().Add(time.Hour)}
	list, err := off.Aside(dir)
	if err != nil || len(list.Aside) != len(paths) {
		t.Fatalf("%+v, %v", list, err)
	}
	mark := filepath.Join(dir, "shards", "0", divergedMark)
	if err := os.WriteFile(mark, []byte("a message is lost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := off.RemoveAside(t.Context(), dir, all); memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(memory.AsError(err).Hint, "log repair") {
		t.Errorf("while the log is damaged: %v", err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	if removal, err := off.RemoveAside(t.Context(), dir, all); err != nil || len(removal.Removed) != len(paths) {
		t.Errorf("%+v, %v", removal, err)
	}
	if list, err = off.Aside(dir); err != nil || len(list.Aside) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := off.Aside(t.TempDir()); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("of no data directory: %v", err)
	}
}
