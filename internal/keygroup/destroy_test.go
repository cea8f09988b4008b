package keygroup

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/keyring"
)

// secretsOf gives the bytes of keys, and of the key that commands are sealed under, as
// they lie in a snapshot.
func (n *node) secretsOf(ids ...keyring.KeyID) (out [][]byte) {
	n.site.t.Helper()
	snapshot, err := n.keys.Machine().Snapshot()
	must(n.site.t, err)
	const head, key, idAndTag = 1 + 3*8, 32, 16 + 16
	out = append(out, snapshot[head:head+key])
	for _, id := range ids {
		at := bytes.Index(snapshot, id[:])
		if at < 0 {
			n.site.t.Fatal("the snapshot does not have a key")
		}
		out = append(out, snapshot[at+idAndTag:at+idAndTag+key])
	}
	return out
}

// Every node's files hold a key as long as there is an older snapshot, or an entry of
// the log and the key that it is sealed under: also a node's that was away.
func TestDestroyedKeyLeavesTheFiles(t *testing.T) {
	t.Parallel()
	s := threeNodes(t, func(n *node) { n.clear = true })
	maker, away := s.followers()[0], s.followers()[1]
	proposed := &recorder{Proposer: maker.group}
	must(t, maker.keys.Machine().SetProposer(proposed))
	must(t, maker.keys.CreateNamespace(team))
	ada := maker.ensure("ada")
	s.same()
	for _, n := range s.nodes {
		must(t, n.group.Raft().Snapshot())
	}
	bob, eve := maker.ensure("bob"), maker.ensure("eve")
	sealed := maker.seal(eve)
	s.same()
	secrets, commands := maker.secretsOf(ada, bob), proposed.commands
	for _, n := range s.nodes {
		if len(n.holds(secrets...)) == 0 || len(n.holds(commands...)) == 0 {
			t.Fatalf("node %s holds neither: the test does not bite", n.name)
		}
	}
	away.stop()
	must(t, maker.keys.Destroy(ada, bob))
	check := func(n *node) {
		t.Helper()
		must(t, n.group.CatchUp(testCtx(t)))
		must(t, n.group.Renewed(testCtx(t)))
		if files := n.holds(append(secrets, commands...)...); len(files) > 0 {
			t.Errorf("node %s: destroyed keys are in %q", n.name, files)
		}
		for _, id := range []keyring.KeyID{ada, bob} {
			if _, err := n.keys.KeyByID(id); !errors.Is(err, keyring.ErrDestroyed) {
				t.Errorf("node %s: %v", n.name, err)
			}
		}
		n.mustOpen(eve, sealed)
	}
	for _, n := range s.nodes {
		if n != away {
			check(n)
		}
	}
	if len(away.holds(secrets...)) == 0 {
		t.Fatal("the node that is away holds nothing: the test does not bite")
	}
	away.mustStart(false)
	check(away)
	s.same()
	maker.ensure("ada") // a new one
}

// faults fails what touches a path with a part, while it is armed.
type faults struct {
	part  string
	err   error
	armed atomic.Bool
	bit   chan struct{}
}

func newFaults(part string, err error) *faults {
	return &faults{part: part, err: err, bit: make(chan struct{}, 1)}
}

func (f *faults) fs(below vfs.FS) vfs.FS { return errorfs.Wrap(below, f) }

// MaybeError implements errorfs.Injector.
func (f *faults) MaybeError(op errorfs.Op) error {
	if !f.armed.Load() || op.Kind.ReadOrWrite() == errorfs.OpIsRead || !strings.Contains(op.Path, f.part) {
		return nil
	}
	select {
	case f.bit <- struct{}{}:
	default:
	}
	return f.err
}

func (f *faults) String() string { return "faults" }

// A node that stopped, or failed, before its files were renewed forgot that they were to
// be.
func TestRenewalIsOwedAcrossAStart(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"snapshots", renewedName} {
		s := newSite(t, 1)
		n, f := s.nodes[0], newFaults(part, errors.New("injected fault"))
		var renewals atomic.Int32
		n.clear = true
		n.change = func(o *Options) {
			o.FS = f.fs(o.FS)
			o.step = func(string) { renewals.Add(1) }
		}
		n.mustStart(true)
		must(t, n.keys.CreateNamespace(team))
		ada := n.ensure("ada")
		must(t, n.group.Raft().Snapshot())
		secrets := n.secretsOf(ada)
		f.armed.Store(true)
		must(t, n.keys.Destroy(ada))
		<-f.bit
		if done, _ := n.group.renewal.now(); done != 0 {
			t.Fatal("the fault did not bite")
		}
		held := len(n.holds(secrets...)) > 0
		if part == "snapshots" && !held {
			t.Fatal("the key is gone: the test does not bite")
		}
		n.stop()
		f.armed.Store(false)
		renewals.Store(0)
		n.mustStart(false)
		must(t, n.group.Renewed(testCtx(t)))
		if files := n.holds(secrets...); len(files) > 0 || renewals.Load() == 0 {
			t.Errorf("%s: after %d renewals a destroyed key is in %q", part, renewals.Load(), files)
		}
		n.stop()
		renewals.Store(0)
		n.mustStart(false)
		must(t, n.group.Renewed(testCtx(t)))
		must(t, n.keys.CreateNamespace(keyring.NamespaceID{2}))
		if renewals.Load() != 0 {
			t.Errorf("%s: what was done is done again", part)
		}
	}
}

// A follower whose disk was full halted, and stayed so when there was room again.
func TestFullDiskDoesNotHaltTheGroup(t *testing.T) {
	t.Parallel()
	disks := map[string]*faults{}
	s := threeNodes(t, func(n *node) {
		disks[n.name] = newFaults("keyring.v1", syscall.ENOSPC)
		n.keyFS = disks[n.name].fs(vfs.Default)
	})
	must(t, s.leader().keys.CreateNamespace(team))
	s.same()
	lead, n := s.leader(), s.followers()[0]
	full := disks[n.name]
	full.armed.Store(true)
	id := lead.ensure("ada")
	sealed := lead.seal(id)
	<-full.bit
	<-full.bit // and again
	must(t, n.group.Halted())
	full.armed.Store(false)
	must(t, n.group.CatchUp(testCtx(t)))
	n.mustOpen(id, sealed)

	full.armed.Store(true)
	lead.ensure("bob")
	<-full.bit
	n.stop() // what waits is left to the next start
	full.armed.Store(false)
	n.mustStart(false)
	s.same()
}
