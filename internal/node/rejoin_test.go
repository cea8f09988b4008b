package node

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/cluster"
	"mneme/internal/events"
)

// stumbling is a file system on which one renaming fails, and all after it.
type stumbling struct {
	vfs.FS
	left int // renamings that succeed
}

func (s *stumbling) Rename(from, to string) error {
	if s.left == 0 {
		return errors.New("killed")
	}
	s.left--
	return s.FS.Rename(from, to)
}

// A node that comes back anew has nothing but what the operator gave it, another name,
// and the rest lies aside, wherever it was killed on the way.
func TestBegunAnewWhereverItWasKilled(t *testing.T) {
	moved := []string{"keys/keyring.v1", "keys/storage.keys", "keys/raft/raft.db", "nats/jetstream/a", "shards/0/raft.db", "logs/rejected/a", "erased.json"}
	stays := []string{"keys/master.key", "keys/operator.token", "config.yaml"}
	for killed := range 7 {
		dir := t.TempDir()
		for _, name := range append(moved, stays...) {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		ids := events.NewIDSource(time.Now, nil)
		was := cluster.Facts{ID: "n2", Incarnation: "old", Cluster: "c", Groups: []string{"0", "keys"}, Rejoin: "the test says so",
			Members: []cluster.Member{{Name: "n1-a", ID: "n1"}, {Name: "n2-old", ID: "n2"}}}
		d := &dataDir{fs: vfs.Default, path: dir, id: "n2", node: nodeFile{Format: nodeFormat, NodeID: "n2", ClusterID: "c", Mode: modeCluster, Cluster: &was}}
		if err := d.writeNode(); err != nil {
			t.Fatal(err)
		}
		d.fs = &stumbling{vfs.Default, killed}
		if err := d.beginAnew(ids, slog.New(slog.DiscardHandler)); err == nil {
			t.Fatalf("%d renamings are enough", killed)
		}
		d = &dataDir{fs: vfs.Default, path: dir, id: "n2"}
		if err := errors.Join(d.readNode(ids), d.beginAnew(ids, slog.New(slog.DiscardHandler))); err != nil {
			t.Fatal(err)
		}
		again := &dataDir{fs: vfs.Default, path: dir, id: "n2"}
		if err := again.readNode(ids); err != nil {
			t.Fatal(err)
		}
		f := again.node.Cluster
		if f.Incarnation == "old" || f.Rejoin != "" || len(f.Groups) != 0 || f.Cluster != "c" || len(f.Members) != 1 || len(f.Replaces) != 1 || f.Replaces[0] != "n2-old" || !again.fresh {
			t.Errorf("killed after %d: %+v, fresh %v", killed, f, again.fresh)
		}
		for _, name := range moved {
			b, err := os.ReadFile(filepath.Join(dir, "aside", "n2-old", filepath.FromSlash(name)))
			if _, gone := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(b) != name || gone == nil {
				t.Errorf("killed after %d: %s: %q %v", killed, name, b, err)
			}
		}
		list, err := (aside{again.fs, again.path}).list()
		if err != nil || len(list.Aside) != 1 || list.Aside[0].Path != "aside/n2-old" || list.Aside[0].Why != "the test says so" {
			t.Errorf("killed after %d: %+v, %v", killed, list, err)
		}
		for _, name := range stays {
			if b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil || string(b) != name {
				t.Errorf("killed after %d: %s: %q %v", killed, name, b, err)
			}
		}
	}
}

// What a node remembers of the others is what it stored, or nothing.
func TestRememberedIsWhatWasStored(t *testing.T) {
	r := remembered{&dataDir{fs: vfs.Default, path: t.TempDir()}, slog.New(slog.DiscardHandler)}
	if b, err := r.Load(); b != nil || err != nil {
		t.Fatal(b, err)
	}
	want := []byte(`{"n2-a":{"0":{"term":3,"voted":true,"index":7}}}`)
	if err := r.Save(want); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(r.d.remembered())
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 4
		for _, b := range [][]byte{damaged, whole[:i]} {
			if err := os.WriteFile(r.d.remembered(), b, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := r.Load(); err != nil || got != nil && !bytes.Equal(got, want) {
				t.Errorf("byte %d: %q %v", i, got, err)
			}
		}
	}
}
