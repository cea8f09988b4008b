package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/raftfsm"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// kept is a Memory in memory.
type kept struct {
	mu    sync.Mutex
	bytes []byte
}

func (k *kept) Load() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes, nil
}

func (k *kept) Save(b []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bytes = slices.Clone(b)
	return nil
}

// files are what the closed files of a node's replica tell.
func files(t *testing.T, n *testNode, dir string) map[string]raftfsm.Inspection {
	t.Helper()
	found, err := raftfsm.Inspect(raftfsm.Options{Dir: dir, ID: n.disk.facts.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]raftfsm.Inspection{"0": found}
}

func takesNoPart(t *testing.T, c *Cluster, files map[string]raftfsm.Inspection, words string) {
	t.Helper()
	err := (Returning{c}).MayTakePart(limited(t), files)
	var again *RejoinError
	if !errors.As(err, &again) || !strings.Contains(err.Error(), words) {
		t.Fatalf("%v, want %q", err, words)
	}
}

// waitsWithIt checks that a node may not take part, and that it keeps what it has: too few
// others serve to remove its name.
func waitsWithIt(t *testing.T, c *Cluster, files map[string]raftfsm.Inspection, words string) {
	t.Helper()
	for all, short := limited(t), 500*time.Millisecond; ; short *= 2 {
		ctx, cancel := context.WithTimeout(all, short)
		err := (Returning{c}).MayTakePart(ctx, files)
		cancel()
		var e *Error
		switch waits := errors.As(err, &e) && e.Kind == KindWaiting; {
		case waits && e.Hint != "" && strings.Contains(e.Message, words):
			return
		case waits && all.Err() == nil && strings.Contains(e.Message, "in time"): // the machine is busy
		default:
			t.Errorf("%v, want that it waits, and %q", err, words)
			return
		}
	}
}

// serve has nodes say that they serve all their groups.
func serve(clusters ...*Cluster) {
	for _, c := range clusters {
		Witness{c}.ServeReplacing(func(context.Context, string) error { return nil })
	}
}

// remembers waits until a node remembers as much of another one as a third does.
func remembers(t *testing.T, c *Cluster, name string, as *Cluster) {
	t.Helper()
	want, _ := as.promises.All()
	for ctx := limited(t); ; {
		if has, _ := c.promises.All(); has[name]["0"].Keeps(want[name]["0"]) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("it is not told what others remember of %s", name)
		}
	}
}

// A node comes back with an older copy of its Raft files. The leader that counted it
// remembers what it acknowledged; another node, that was away, has it from the leader,
// also after a restart; the files that the node had last are good for everybody.
func TestAnOlderCopyIsNoticed(t *testing.T) {
	t.Parallel()
	founder, others, dirs := joined(t)
	f, other := others[0], others[1]
	for _, n := range []*testNode{founder.node, f.node, other.node} {
		n.opt.News = 100 * time.Millisecond
	}
	dir, older := dirs[f], filepath.Join(t.TempDir(), "older")
	f.leaves(t)
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	f.node.start(t)
	f = open(t, f.node, dir, nil)
	other.leaves(t)
	founder.add(t)
	name := f.node.disk.facts.Name()
	f.leaves(t)
	c := f.node.start(t).formed(t)
	serve(founder.node.cluster)
	waitsWithIt(t, c, files(t, f.node, older), "older than what "+founder.node.id+" remembers")
	if err := (Returning{c}).MayTakePart(limited(t), files(t, f.node, dir)); err != nil {
		t.Error(err)
	}

	other.node.opt.Memory = &kept{}
	o := other.node.start(t).formed(t)
	remembers(t, o, name, founder.node.cluster)
	waitsWithIt(t, c, files(t, f.node, older), "older than what ")
	serve(o)
	takesNoPart(t, c, files(t, f.node, older), "older than what ")
	founder.leaves(t)
	waitsWithIt(t, c, files(t, f.node, older), "older than what "+other.node.id+" remembers")
	other.node.stop(t)
	other.node.start(t).formed(t)
	waitsWithIt(t, c, files(t, f.node, older), "older than what "+other.node.id+" remembers")
	if err := (Returning{c}).MayTakePart(limited(t), files(t, f.node, dir)); err != nil {
		t.Error(err)
	}

	// Nobody else answers: it waits.
	other.node.stop(t)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var e *Error
	if err := (Returning{c}).MayTakePart(short, files(t, f.node, dir)); !errors.As(err, &e) || e.Kind != KindWaiting {
		t.Error(err)
	}
}

// Files that are gone or damaged are noticed by the node itself, and those of another
// cluster are refused.
func TestFilesThatTakeNoPart(t *testing.T) {
	t.Parallel()
	founder, others, dirs := joined(t)
	f := others[0]
	f.leaves(t)
	var hint atomic.Value // of what it waits for
	f.node.opt.Waiting = func(_, helps string) { hint.Store(helps) }
	c := f.node.start(t).formed(t)
	found := files(t, f.node, dirs[f])["0"]
	with := func(change func(*raftfsm.Inspection)) map[string]raftfsm.Inspection {
		i := found
		change(&i)
		return map[string]raftfsm.Inspection{"0": i}
	}
	waitsWithIt(t, c, map[string]raftfsm.Inspection{"0": {}}, "the Raft files of the group 0 are gone")
	if hint, _ := hint.Load().(string); !strings.Contains(hint, "start the other nodes") {
		t.Errorf("it waits, and whoever looks after the node is told to do %q", hint)
	}
	serve(founder.node.cluster, others[1].node.cluster)
	takesNoPart(t, c, map[string]raftfsm.Inspection{"0": {}}, "the Raft files of the group 0 are gone")
	takesNoPart(t, c, with(func(i *raftfsm.Inspection) { i.Log = false }), "the Raft files of the group 0 are gone")
	takesNoPart(t, c, with(func(i *raftfsm.Inspection) { i.Damage = errors.New("a page fails its checksum") }), "are damaged: a page fails its checksum")
	var e *Error
	err := (Returning{c}).MayTakePart(limited(t), with(func(i *raftfsm.Inspection) {
		i.Members = []raftfsm.Member{{ID: "n1-elsewhere", Voter: true}}
		i.Damage = errors.New("another key")
	}))
	if !errors.As(err, &e) || e.Kind != KindRefused || !strings.Contains(e.Message, "another cluster's: its nodes are n1-elsewhere") || e.Hint == "" {
		t.Error(err)
	}
	if err := (Returning{c}).MayTakePart(limited(t), map[string]raftfsm.Inspection{"0": found}); err != nil {
		t.Error(err)
	}
	founder.add(t)
}

// Two of three nodes have damage in their copies of the log: each waited for two others that
// take part, for ever, and neither said that the other one waits, too, and what helps.
func TestDamagedNodesSayThatTheyWaitForEachOther(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	here, there := founder.node.cluster, others[0].node.cluster
	Returning{there}.waitsWith("1.blk does not check at 8")
	if why, _ := (Returning{here}).Alone(t.Context()); why != "" {
		t.Errorf("one of the others waits, and it says that it is alone: %s", why)
	}
	third := others[1].node.cluster
	Returning{third}.waitsWith("2.blk does not check at 9")
	if why, hint := (Returning{here}).Alone(t.Context()); strings.Count(why, "waits, too, since") != 2 || !strings.Contains(why, "2.blk does not check at 9") || hint != stuckHint {
		t.Errorf("both others wait: %q, %q", why, hint)
	}
	Returning{third}.waitsWith("")
	promised := map[string]raftfsm.Promise{"0": {Term: 1 << 40}}
	there.promises.Saw(here.Self().Name, "0", promised["0"])
	for _, asked := range []struct {
		files      map[string]raftfsm.Promise
		remembered string
	}{{map[string]raftfsm.Promise{}, "0"}, {promised, ""}, {nil, ""}} { // without files it is told of nothing that it forgot
		answer, err := Witness{there}.returns(t.Context(), peer.Identity{Node: here.Self().Name}, asked.files)
		if err != nil || answer.Unusable != "1.blk does not check at 8" || answer.Serves || answer.Group != asked.remembered {
			t.Errorf("%v: %+v %v", asked.files, answer, err)
		}
	}
	for _, c := range []struct {
		others, unusable int
		stuck            bool
	}{{2, 0, false}, {2, 1, true}, {2, 2, true}, {4, 0, false}, {4, 1, false}, {4, 2, true}} {
		now := memories{others: c.others}
		for range c.unusable {
			now.unusable = append(now.unusable, "n2 waits, too, since …")
		}
		text, hint := now.cannotReturn("2.blk does not check at 9")
		if !strings.Contains(text, "2.blk does not check at 9; it comes back with nothing once") || strings.Contains(text, "wait for each other") != c.stuck ||
			strings.Contains(hint, "memctl cluster recover --data-dir DIR --peer-certs DIR --dry-run") != c.stuck || strings.Count(text, "waits, too") != c.unusable && c.stuck {
			t.Errorf("%+v: %s; %s", c, text, hint)
		}
	}
}

// A node that has to come back with nothing waited for more others than there are, where
// nodes that had lost everything were refused before: each of their names counted.
func TestRefusedIncarnationsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	f := others[0]
	f.leaves(t)
	for _, refused := range []string{founder.node.id, f.node.id, others[1].node.id} {
		for i := range 3 {
			f.node.disk.facts.Members, _ = merge(f.node.disk.facts.Members,
				Member{Name: fmt.Sprintf("%s-refused%d", refused, i), ID: refused, Peer: testaddr.Reserve(t, 1)[0], Route: "r", Version: 1})
		}
	}
	c := f.node.start(t).formed(t)
	serve(founder.node.cluster)
	gone := map[string]raftfsm.Inspection{"0": {}}
	waitsWithIt(t, c, gone, "once 2 others take part")
	serve(others[1].node.cluster)
	takesNoPart(t, c, gone, "the Raft files of the group 0 are gone")
}

// The nodes that a node knows count by their ids, also one of which only a group knows; this
// node, and what was removed, do not.
func TestOthersAreCountedByID(t *testing.T) {
	f := Facts{ID: "n3", Incarnation: "b", Removed: []string{"n3-a", "n5-a"},
		Members: []Member{{Name: "n1-a", ID: "n1"}, {Name: "n1-b", ID: "n1"}, {Name: "n2-a", ID: "n2"}, {Name: "n3-b", ID: "n3"}, {Name: "n3-c", ID: "n3"}}}
	if got := f.othersByID(nil); got != 2 {
		t.Error(got)
	}
	members := []raftfsm.Member{{ID: "n1-a", Voter: true}, {ID: "n3-a", Voter: true}, {ID: "n4-a", Voter: true}, {ID: "n5-a", Voter: true}, {ID: "n6-a"}}
	if got := f.othersByID(map[string]raftfsm.Inspection{"0": {Members: members}}); got != 3 {
		t.Error(got)
	}
}

// A node comes back with nothing, under another name: the others remove its former one,
// once most of them are there, and it gets a vote again.
func TestANodeJoinsAnew(t *testing.T) {
	t.Parallel()
	founder, others, dirs := joined(t)
	f, other := others[0], others[1]
	old := f.node.disk.facts.Name()
	other.leaves(t)
	if err := (Returning{f.node.cluster}).Rejoin("the test says so"); err != nil {
		t.Fatal(err)
	}
	f.leaves(t)
	if saved, _ := f.node.disk.Load(); saved.Rejoin == "" {
		t.Errorf("%+v", saved)
	}
	f.node.disk.facts = f.node.disk.facts.Anew("anew")
	c := f.node.start(t).formed(t)
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var e *Error
	if err := (Returning{c}).Replace(short); !errors.As(err, &e) || e.Kind != KindWaiting || !strings.Contains(e.Message, old) {
		t.Errorf("nobody serves its groups: %v", err)
	}
	log := &logServers{}
	Witness{founder.node.cluster}.ServeReplacing(log.remove)
	for _, not := range []string{founder.node.disk.facts.Name(), c.Self().Name} {
		if err := c.client.Call(limited(t), target(founder.node.cluster.Self()), "replace", not, nil); memory.CodeOf(err) != memory.CodeForbidden {
			t.Errorf("replace %s: %v", not, err)
		}
	}
	other.node.start(t)
	open(t, other.node, dirs[other], nil)
	if err := (Returning{c}).Replace(limited(t)); err != nil {
		t.Fatal(err)
	}
	if facts := c.Facts(); len(facts.Replaces) != 0 || !facts.removed(old) || !slices.Equal(log.asked, []string{old}) {
		t.Errorf("%+v, servers %v", facts, log.asked)
	}
	f = open(t, f.node, t.TempDir(), nil)
	joins(t, f)
	founder.add(t)
	if v := voters(founder); len(v) != 3 || f.node.disk.facts.Name() != fmt.Sprint(f.node.id, "-anew") {
		t.Errorf("voters %v", v)
	}
}
