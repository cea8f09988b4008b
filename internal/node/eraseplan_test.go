package node

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/internal/settings"
	"mneme/internal/storage"
	"mneme/memory"
)

// slowGroup is a node's Raft group that can keep one command from being agreed on.
type slowGroup struct {
	replica.Group
	entered chan struct{} // a command has come, once armed
	release chan struct{}
	armed   atomic.Bool
}

func (g *slowGroup) Propose(ctx context.Context, data []byte) *raftfsm.Future {
	if g.armed.CompareAndSwap(true, false) {
		close(g.entered)
		<-g.release
	}
	return g.Group.Propose(ctx, data)
}

// slowly has a node use such a group.
func slowly(cfg *Config) *slowGroup {
	s := &slowGroup{entered: make(chan struct{}), release: make(chan struct{})}
	cfg.Parts.Group = func(opt raftfsm.Options) (replica.Group, error) {
		g, err := raftfsm.Open(opt)
		s.Group = g
		return s, err
	}
	return s
}

// TestEndedKeysOfAnImpatientCallerLivedOn: a caller who goes away between the event
// that ends keys and their destruction left them alive until the next start; the
// plan that takes what they sealed out of the files has to destroy them.
func TestEndedKeysOfAnImpatientCallerLivedOn(t *testing.T) {
	cfg := quiet(t.TempDir())
	group := slowly(&cfg)
	n := open(t, cfg)
	doomedSubject(t, n)
	v := n.served[0].state.View()
	ns, _ := v.Namespace("default")
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := n.keys.DataKey(ns.ID, "ada")
	if err != nil {
		t.Fatal(err)
	}
	group.armed.Store(true)
	ctx, goAway := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Erase(ctx, "default", "ada") }()
	<-group.entered
	goAway()
	if err := <-ended; err == nil {
		t.Fatal("it was erased before it was agreed on")
	}
	if _, err := n.keys.KeyByID(key.ID()); err != nil {
		t.Fatalf("the key has gone before its event: %v", err)
	}
	close(group.release)
	await(t, "the event", func() bool {
		owed, err := n.eraser.owed()
		done, derr := n.eraser.done(n.served[0])
		if err = errors.Join(err, derr); err != nil {
			t.Fatal(err)
		}
		return owed != nil || done > 0
	})
	erased(t, n)
	if _, err := n.keys.KeyByID(key.ID()); !settings.IsErased(err) {
		t.Errorf("nothing is owed, and the key is there: %v", err)
	}
}

// TestStorageKeyChangedUnderACommand: the storage key has to change while no command
// is under way, else one that was derived before the keys were destroyed, or sealed
// under the former storage key, gets into the new raft.db.
func TestStorageKeyChangedUnderACommand(t *testing.T) {
	cfg := quiet(t.TempDir())
	group := slowly(&cfg)
	var n *Node
	var before uint32
	current := func() uint32 { id, _ := n.keys.Storage().Current(); return id }
	written := make(chan error, 1)
	cfg.Parts.EraseStep = func(step string) {
		if step != eraseStorageKey {
			return
		}
		before = current()
		group.armed.Store(true)
		go func() {
			_, err := n.writes.CreateNamespace(context.Background(), memory.CreateNamespace{Name: "late"})
			written <- err
		}()
		<-group.entered
	}
	n = open(t, cfg)
	doomed(t, n)
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	<-group.entered
	// Nothing says that something has not happened.
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end) && current() == before; time.Sleep(time.Millisecond) {
	}
	if now := current(); now != before {
		t.Errorf("storage key %d was replaced by %d while a command was under way", before, now)
	}
	close(group.release)
	if err := <-written; err != nil {
		t.Error(err)
	}
	erased(t, n)
	if current() == before {
		t.Error("the storage key has not changed at all")
	}
}

// TestCachesKeptWhatWasErased: the plan left saved graphs of sets that are gone, and
// refused messages whose keys are destroyed, in their files, wrapped anew.
func TestCachesKeptWhatWasErased(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	doomed(t, n)
	// A graph as it is saved of a set of 4,096 vectors, which is gone.
	graph := filepath.Join(n.dir.vectors(shard0), "0000ffff-0102030405060708.graph")
	if err := errors.Join(n.files.MkdirAll(filepath.Dir(graph), 0o700), storage.ReplaceFile(n.files, graph, []byte("links"), 0o600)); err != nil {
		t.Fatal(err)
	}
	lines := func() int {
		b, err := storage.ReadFile(n.files, filepath.Join(n.dir.logs(), "rejected"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("\n"))
	}
	if got := lines(); got != 2 {
		t.Fatalf("%d refused messages", got)
	}
	if _, err := n.writes.DeleteNamespace(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	erased(t, n)
	if _, err := os.Stat(graph); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the graph of a set that is gone: %v", err)
	}
	if got := lines(); got != 1 {
		t.Errorf("%d refused messages are in the file, one is of a living namespace", got)
	}
}
