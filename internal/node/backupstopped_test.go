package node

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/memory"
)

// filesOf are the hashes of all files of a directory but locks.
func filesOf(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.Contains(strings.ToLower(e.Name()), "lock") {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// backsUpStopped backs up a stopped node of a cluster, of which nothing may change, and
// makes a node on its own of it, whose log agrees with its state.
func backsUpStopped(t *testing.T, dir string) (memory.BackupReport, *Node) {
	t.Helper()
	off, out, before := Offline{Config: quiet("")}, t.TempDir(), filesOf(t, dir)
	log, keys, one := filepath.Join(out, "log"), filepath.Join(out, "keys"), filepath.Join(out, "one")
	report, err := off.Backup(t.Context(), dir, log, keys, nil)
	if err != nil || report.Stopped == nil {
		t.Fatalf("%+v %v", report, err)
	}
	if !maps.Equal(before, filesOf(t, dir)) {
		t.Error("the backup changed the directory")
	}
	if _, err := off.Restore(t.Context(), one, log, keys, nil); err != nil {
		t.Fatal(err)
	}
	if verified, err := off.VerifyLog(t.Context(), one, nil); err != nil || !verified.Shards[0].OK || verified.Shards[0].Last <= report.Frames/2 {
		t.Errorf("%+v %v", verified, err)
	}
	return report, open(t, quiet(one))
}

// stoppedBackups backs up a stopped node whose older shards/ and keys/ are elsewhere, with
// what was acknowledged in its state, its copy of the log, and its Raft log; one at least of
// them has it. late is sealed under a key that the older keys/ lacks.
func stoppedBackups(t *testing.T, source, older string, acked map[string]memory.CaptureResult, late string) {
	t.Helper()
	remove := func(dir string, names ...string) {
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, change := range map[string]func(dir string){
		"the state":           func(dir string) { remove(dir, "nats", "shards/0/raft.db", "shards/0/snapshots") },
		"its copy of the log": func(dir string) { putBack(t, filepath.Join(older, "shards"), filepath.Join(dir, "shards")) },
		"Raft's log": func(dir string) {
			putBack(t, filepath.Join(older, "shards", "0", "state"), filepath.Join(dir, "shards", "0", "state"))
			remove(dir, "nats")
		},
		"its copy of the log, without a key": func(dir string) {
			putBack(t, filepath.Join(older, "shards"), filepath.Join(dir, "shards"))
			putBack(t, filepath.Join(older, "keys"), filepath.Join(dir, "keys"))
		},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := copyStopped(source, dir); err != nil {
			t.Fatal(err)
		}
		change(dir)
		report, n := backsUpStopped(t, dir)
		lacks := strings.Join(report.Stopped.Lacks, "; ")
		keyless := strings.HasSuffix(what, "key")
		if report.Stopped.Node != "n1" || (lacks != "") != keyless || keyless && !strings.Contains(lacks, "key") {
			t.Errorf("%s: %+v", what, report.Stopped)
		}
		for id, want := range acked {
			rec, err := n.reads.Get(t.Context(), memory.Access{Namespace: "default", As: "a"}, want.RecordID, 0)
			if lost := keyless && id == late; lost != (memory.CodeOf(err) == memory.CodeNotFound) || !lost && (err != nil || rec.Position != want.Position) {
				t.Errorf("%s: %s: %+v %v, was %+v", what, id, rec, err, want)
			}
		}
		shut(t, n)
	}
	var off Offline
	off.Config = quiet("")
	for what, c := range map[string]struct {
		change func(dir string)
		code   memory.Code
	}{
		"no state":   {func(dir string) { remove(dir, "shards/0/state") }, memory.CodeLogDiverged},
		"older keys": {func(dir string) { putBack(t, filepath.Join(older, "keys"), filepath.Join(dir, "keys")) }, memory.CodeLogDiverged},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := copyStopped(source, dir); err != nil {
			t.Fatal(err)
		}
		c.change(dir)
		log := filepath.Join(t.TempDir(), "log")
		_, err := off.Backup(t.Context(), dir, log, log+".keys", nil)
		if e := memory.AsError(err); e == nil || e.Code != c.code || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(log); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file is there: %v", what, err)
		}
	}
}

// A frame told of a key that the keyring lacks, and what the key seals stood in the next one:
// with the first of them alone the backup could not be restored.
func TestFrameThatTellsOfAMissingKeyEndsABackup(t *testing.T) {
	cfg := quiet(t.TempDir())
	n := open(t, cfg)
	must(t, n, "a memory")
	r := &remains{shard: n.served[0].shard}
	v := n.served[0].state.View()
	info, ok := v.Namespace("default")
	if err := v.Close(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	known, err := n.keys.DataKey(info.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	frame := func(h events.Header) *events.Frame {
		h.Schema, h.Event = h.Type.Schema(), events.ID{1}
		e := events.Envelope{Header: h}
		return &events.Frame{Seq: 9, Events: [][]byte{e.Encode()}}
	}
	for _, c := range []struct {
		header  events.Header
		missing bool
	}{
		{events.Header{Type: events.TypeKeyCreated, Namespace: info.ID, Key: known.ID()}, false},
		{events.Header{Type: events.TypeKeyCreated, Namespace: info.ID, Key: [16]byte{7}}, true},
		{events.Header{Type: events.TypeNamespaceCreated, Namespace: info.ID, Name: "default"}, false},
		{events.Header{Type: events.TypeNamespaceCreated, Namespace: events.ID{7}, Name: "other"}, true},
		{events.Header{Type: events.TypeNamespacePlaced, Namespace: events.ID{7}, Name: "other", Home: 1}, true},
	} {
		if err := r.takes(frame(c.header)); errors.Is(err, keyring.ErrNoKey) != c.missing {
			t.Errorf("%s of %x: %v", c.header.Type, c.header.Namespace[:2], err)
		}
	}
}
