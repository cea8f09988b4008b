package cluster

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	seeds    = flag.Int("seeds", 1000, "how many seeds TestVotesFoundOnce runs")
	fromSeed = flag.Uint64("seed", 1, "the first of them")
)

// world is nodes that form a cluster over a network that loses, repeats and delays,
// and that are killed before, in and after a write.
type world struct {
	rng   *rand.Rand
	nodes []*simNode
	wire  []func() // messages under way; each may come at any time
	calm  bool     // no more faults
	drawn int

	founded map[string]string // cluster to founder
	bit     map[string]int    // faults and turns that happened
}

type simNode struct {
	w     *world
	name  string
	n     int
	disk  Facts
	life  int // counts restarts: an answer to an earlier life is lost
	f     *forming
	seen  map[string]hello
	crash bool // the next write kills it
}

var errKilled = errors.New("killed")

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), founded: map[string]string{}, bit: map[string]int{}}
	count := 3 + w.rng.IntN(3)
	expect := count/2 + 1 + w.rng.IntN(count-count/2)
	for i := range count {
		n := &simNode{w: w, n: expect, disk: Facts{ID: fmt.Sprint("n", i), Incarnation: "x"}}
		n.name = n.disk.Name()
		w.nodes = append(w.nodes, n)
		n.start()
	}
	return w
}

func (n *simNode) start() {
	n.life++
	n.crash = false
	n.seen = map[string]hello{}
	n.f = newForming(n.disk, Member{Name: n.name, ID: n.disk.ID, Peer: n.name, Version: 1}, fmt.Sprint(n.life), n.n, n.save)
}

// save may be the last that a process does, with or without effect.
func (n *simNode) save(f Facts) error {
	kill := n.crash
	if kill && n.w.rng.IntN(2) == 0 {
		n.w.bit["killed before a write"]++
		return errKilled
	}
	n.disk = f
	n.disk.Members = slices.Clone(f.Members)
	if f.Founder {
		n.w.founded[f.Cluster] = n.name
	}
	if kill {
		n.w.bit["killed after a write"]++
		return errKilled
	}
	return nil
}

// send puts a call on the wire: to asks of a node, and then hands the answer to back.
func send[T any](n *simNode, to *simNode, ask func(f *forming) (T, error), back func(T)) {
	life := n.life
	deliver := func() {
		got, err := ask(to.f)
		if to.restartIfBroken() || err != nil {
			return
		}
		n.w.wire = append(n.w.wire, func() {
			if n.life == life {
				back(got)
				n.restartIfBroken()
			}
		})
	}
	n.w.wire = append(n.w.wire, deliver)
	if !n.w.calm && n.w.rng.IntN(10) == 0 {
		n.w.bit["repeated"]++
		n.w.wire = append(n.w.wire, deliver)
	}
}

func (n *simNode) restartIfBroken() bool {
	if n.f.broken == nil {
		return false
	}
	n.start()
	return true
}

// look says hello to every other node.
func (n *simNode) look() {
	mine := n.f.hello()
	for _, to := range n.w.nodes {
		if to == n {
			continue
		}
		send(n, to, func(f *forming) (hello, error) { return f.hello(), f.heard(mine) }, func(h hello) { n.seen[h.Self.Name] = h })
	}
}

// act decides on what was seen, which may be old.
func (n *simNode) act(t *testing.T) {
	s, err := n.f.decide(slices.Collect(maps.Values(n.seen)))
	if n.restartIfBroken() {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	n.w.bit["waits"] += len(s.waits)
	for _, m := range s.via {
		to := n.w.node(m.Name)
		send(n, to, func(f *forming) (Facts, error) { return f.facts, nil }, func(told Facts) {
			if told.Cluster == "" {
				t.Fatal("a node that had a cluster has none")
			}
			if err := n.f.join(welcome{Cluster: told.Cluster, Members: told.Members, Removed: told.Removed}); err != nil && n.f.broken == nil {
				t.Fatal(err)
			}
		})
	}
	for _, m := range s.ask {
		send(n, n.w.node(m.Name), func(f *forming) (ballot, error) {
			before := f.facts.Vote
			b, err := f.vote(n.name, n.n)
			if before != "" && f.facts.Vote != before {
				n.w.bit["moved a vote"]++
			}
			return b, err
		}, func(b ballot) { n.f.voted(m, b) })
	}
	if n.f.won() {
		n.w.drawn++
		_ = n.f.found(fmt.Sprint("c", n.w.drawn), 0)
		n.restartIfBroken()
	}
}

func (w *world) node(name string) *simNode {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *simNode) bool { return n.name == name })]
}

// step does one thing.
func (w *world) step(t *testing.T) {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch pick := w.rng.IntN(100); {
	case pick < 20:
		n.look()
	case pick < 40:
		n.act(t)
	case !w.calm && pick < 43:
		w.bit["restarted"]++
		n.start()
	case !w.calm && pick < 46:
		n.crash = true
	case len(w.wire) > 0:
		i := w.rng.IntN(len(w.wire))
		message := w.wire[i]
		w.wire = slices.Delete(w.wire, i, i+1)
		if !w.calm && w.rng.IntN(5) == 0 {
			w.bit["lost"]++
			return
		}
		message()
	}
}

// check asserts what must hold at every moment.
func (w *world) check() error {
	if len(w.founded) > 1 {
		return fmt.Errorf("clusters and their founders: %v", w.founded)
	}
	for _, n := range w.nodes {
		if n.disk.Cluster != "" && w.founded[n.disk.Cluster] == "" {
			return fmt.Errorf("%s is of %s, which nobody founded", n.name, n.disk.Cluster)
		}
	}
	return nil
}

func runWorld(t *testing.T, seed uint64) (*world, error) {
	w := newWorld(seed)
	for i := range 600 {
		w.step(t)
		if err := w.check(); err != nil {
			return w, fmt.Errorf("step %d: %w", i, err)
		}
	}
	w.calm = true
	for _, n := range w.nodes {
		n.crash = false
	}
	for range 200 {
		for _, n := range w.nodes {
			clear(n.seen)
			n.look()
		}
		for rounds := 0; rounds < 2; rounds++ {
			for len(w.wire) > 0 {
				message := w.wire[0]
				w.wire = w.wire[1:]
				message()
			}
			if rounds == 0 {
				for _, i := range w.rng.Perm(len(w.nodes)) {
					w.nodes[i].act(t)
				}
			}
		}
		if err := w.check(); err != nil {
			return w, err
		}
		if !slices.ContainsFunc(w.nodes, func(n *simNode) bool { return n.disk.Cluster == "" }) {
			return w, nil
		}
	}
	states := []string{}
	for _, n := range w.nodes {
		states = append(states, fmt.Sprintf("%s{vote %s cluster %s}", n.name, n.disk.Vote, n.disk.Cluster))
	}
	return w, fmt.Errorf("not formed after all faults: expect %d, %s", w.nodes[0].n, strings.Join(states, " "))
}

// However messages are lost, repeated and late, and wherever nodes are killed: one
// cluster at most, and one in the end.
func TestVotesFoundOnce(t *testing.T) {
	bit := map[string]int{}
	for i := range *seeds {
		seed := *fromSeed + uint64(i)
		w, err := runWorld(t, seed)
		if err != nil {
			t.Fatalf("%v\n\tgo test ./internal/cluster -run TestVotesFoundOnce -seed %d -seeds 1", err, seed)
		}
		for what, times := range w.bit {
			bit[what] += times
		}
		bit["the smallest did not found"] += map[bool]int{true: 1}[w.founded["c1"] != "" && w.founded["c1"] != "n0-x"]
	}
	if *seeds < 100 {
		return
	}
	for _, what := range []string{"killed before a write", "killed after a write", "repeated", "lost", "restarted", "moved a vote", "waits", "the smallest did not found"} {
		if bit[what] < *seeds/100 {
			t.Errorf("%s: only %d times in %d seeds", what, bit[what], *seeds)
		}
	}
	t.Log(bit)
}

// fresh is a node of a test without network.
func fresh(id string, expect int) *forming {
	f := Facts{ID: id, Incarnation: "x"}
	return newForming(f, Member{Name: f.Name(), ID: id, Peer: id + ":1", Version: 1}, "run-"+id, expect, func(Facts) error { return nil })
}

func hellos(nodes ...*forming) (out []hello) {
	for _, n := range nodes {
		out = append(out, n.hello())
	}
	return out
}

func TestWhatANodeWaitsFor(t *testing.T) {
	a, b, c := fresh("n1", 3), fresh("n2", 3), fresh("n3", 3)
	other := fresh("n3", 5)
	voter := fresh("n3", 3)
	voter.facts.Vote = "n9-x"
	twin := fresh("n3", 3)
	twin.self.Name = "n3-y"
	blind := fresh("n3", 3)
	blind.settled = true
	for name, tc := range map[string]struct {
		self *forming
		seen []hello
		want string
	}{
		"too few":           {fresh("n1", 3), hellos(b), ""},
		"another number":    {fresh("n1", 3), hellos(b, other), "n3 was started with --bootstrap-expect 5, this node with 3"},
		"a lost candidate":  {fresh("n1", 3), hellos(b, voter), "n3 gave its vote to n9-x, which does not answer: start that again; if it is lost for ever and no node was ever ready, empty the data directories of the others and start them again"},
		"two of one id":     {fresh("n1", 3), hellos(b, c, twin), "two nodes have the id n3: n3-x and n3-y"},
		"not seen by one":   {fresh("n1", 3), hellos(blind), "n3 does not see this node: its --join does not name n1:1, or that cannot be reached from there"},
		"nothing to join":   {fresh("n4", 0), hellos(a), "no node of a cluster answers, and this one was started without --bootstrap-expect"},
		"its own candidate": {voter, hellos(a), "this node gave its vote to n9-x, which does not answer: start that again; if it is lost for ever and no node was ever ready, empty the data directories of the others and start them again"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "not seen by one" {
				for range unseenLooks {
					if s, err := tc.self.decide(tc.seen); err != nil || len(s.waits) > 0 {
						t.Errorf("too early: %q (%v)", s.waits, err)
					}
				}
			}
			s, err := tc.self.decide(tc.seen)
			if err != nil || strings.Join(s.waits, "; ") != tc.want {
				t.Errorf("%q, want %q (%v)", s.waits, tc.want, err)
			}
			if name == "two of one id" {
				stood := tc.self.facts.Vote
				tc.self.facts.Vote = tc.self.self.Name
				if s, _ = tc.self.decide(tc.seen); stood != "" || len(s.ask) > 0 {
					t.Error("it stood, or asked, while one id is there twice")
				}
			}
		})
	}
}

// The node that came later yields to one that looked around before.
func TestTwoNodesOfOneIDAreToldApart(t *testing.T) {
	first, later := fresh("n1", 3), fresh("n1", 3)
	later.self.Name, later.run = "n1-a", "run-later"
	first.settled = true
	if _, err := first.decide(hellos(later)); err != nil {
		t.Errorf("the first one yields: %v", err)
	}
	_, err := later.decide(hellos(first))
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindDuplicate || !strings.Contains(e.Message, "n1") {
		t.Errorf("the later one: %v", err)
	}
	clone := fresh("n1", 3)
	clone.run = "run-clone"
	if _, err := clone.decide(hellos(first)); err == nil || !strings.Contains(err.Error(), "copy") {
		t.Errorf("a copy of the data directory: %v", err)
	}
	one, two := fresh("n1", 3), fresh("n1", 3)
	two.run = "run-two"
	_, err1 := one.decide(hellos(two))
	_, err2 := two.decide(hellos(one))
	if (err1 == nil) == (err2 == nil) {
		t.Errorf("of two that start together one yields: %v, %v", err1, err2)
	}
}

func TestNodesOfTwoClusters(t *testing.T) {
	a, b, self := fresh("n1", 3), fresh("n2", 3), fresh("n3", 3)
	a.facts.Cluster, b.facts.Cluster = "c1", "c2"
	_, err := self.decide(hellos(a, b))
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindOtherCluster || !strings.Contains(e.Message, "n1 is of c1, n2 is of c2") {
		t.Error(err)
	}
	if err := a.join(welcome{Cluster: "c2"}); !errors.As(err, &e) || e.Kind != KindOtherCluster {
		t.Error(err)
	}
}

// What could not be stored is not said, and nothing after it.
func TestAVoteThatIsNotStoredIsNotGiven(t *testing.T) {
	f := fresh("n2", 3)
	f.save = func(Facts) error { return errKilled }
	if b, err := f.vote("n1-x", 3); err == nil || b.Vote != "" {
		t.Errorf("%+v, %v", b, err)
	}
	f.save = func(Facts) error { return nil }
	if _, err := f.vote("n1-x", 3); !errors.Is(err, errKilled) {
		t.Error(err)
	}
	if _, err := f.decide(nil); !errors.Is(err, errKilled) {
		t.Error(err)
	}
}

func TestNewsOfMembers(t *testing.T) {
	old := []Member{{Name: "a-x", Peer: "1", Version: 2}, {Name: "c-x", Peer: "3", Version: 1}}
	got, changed := merge(old, Member{Name: "b-x", Peer: "2", Version: 1}, Member{Name: "a-x", Peer: "0", Version: 1}, Member{Name: "c-x", Peer: "4", Version: 2}, Member{})
	want := []Member{{Name: "a-x", Peer: "1", Version: 2}, {Name: "b-x", Peer: "2", Version: 1}, {Name: "c-x", Peer: "4", Version: 2}}
	if !changed || !slices.Equal(got, want) || old[1].Peer != "3" {
		t.Errorf("%v %v", got, changed)
	}
	if _, changed := merge(got, got...); changed {
		t.Error("old news count as new")
	}
}
