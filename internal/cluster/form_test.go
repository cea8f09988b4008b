package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/peer/rpc"
	"mneme/internal/testaddr"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a Store in memory.
type disk struct {
	mu    sync.Mutex
	facts Facts
	saved func(Facts) error // after each Save, whose answer it is
}

func (d *disk) fails(saved func(Facts) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved = saved
}

func (d *disk) Load() (Facts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts, nil
}

func (d *disk) Save(f Facts) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts = f
	if d.saved != nil {
		return d.saved(f)
	}
	return nil
}

func (d *disk) identity() peer.Identity {
	f, _ := d.Load()
	return peer.Identity{Cluster: f.Cluster, Node: f.Name()}
}

// lines are what a node logged.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	text []string
	more chan struct{}
}

func newLines() *lines {
	return &lines{Handler: slog.DiscardHandler, more: make(chan struct{})}
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, r.Message)
	close(l.more)
	l.more = make(chan struct{})
	return nil
}
func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lines) WithGroup(string) slog.Handler      { return l }

// await returns once a line with all words was logged.
func (l *lines) await(t *testing.T, words ...string) {
	t.Helper()
	for {
		l.mu.Lock()
		found := slices.ContainsFunc(l.text, func(line string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
		})
		more, text := l.more, strings.Join(l.text, "\n")
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-t.Context().Done():
			t.Fatalf("no line with %q in\n%s", words, text)
		case <-time.After(time.Minute):
			t.Fatalf("no line with %q in\n%s", words, text)
		}
	}
}

// testNode is a node of a test, before and after it starts.
type testNode struct {
	id   string
	disk *disk
	addr string
	log  *lines
	opt  Options
	dir  string // of certificates
	net  *holes // nil has none
	end  context.CancelFunc

	port    *peer.Port
	cluster *Cluster
	tokenMu sync.Mutex
	token   string
	done    chan error
	removed chan error // what Options.Removed was told

	replica *replica    // of the group "0", once it was opened
	beside  []*testNode // all that share the group
}

func certs(t *testing.T, change func(*devca.Options), nodes ...string) string {
	t.Helper()
	opt := devca.Options{Dir: t.TempDir(), Nodes: nodes, Valid: time.Hour}
	if change != nil {
		change(&opt)
	}
	if _, err := devca.Make(opt); err != nil {
		t.Fatal(err)
	}
	return opt.Dir
}

// fresh makes nodes that expect all of each other.
func freshNodes(t *testing.T, dir string, ids ...string) []*testNode {
	t.Helper()
	nodes, join := make([]*testNode, len(ids)), []string{}
	for i, id := range ids {
		nodes[i] = &testNode{id: id, dir: dir, addr: testaddr.Reserve(t, 1)[0], disk: &disk{facts: Facts{ID: id, Incarnation: fmt.Sprint("x", i)}}}
		join = append(join, nodes[i].addr)
	}
	for _, n := range nodes {
		n.opt = Options{Join: join, Expect: len(ids), Route: "route-of-" + n.id}
	}
	return nodes
}

// start begins Form.
func (n *testNode) start(t *testing.T) *testNode {
	t.Helper()
	c, err := peer.OpenCertificates(n.dir, n.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.port, err = peer.Listen(peer.Options{Addr: n.addr, Certificates: c, Self: n.disk.identity, Connect: n.net.connect()})
	if err != nil {
		t.Fatal(err)
	}
	opt := n.opt
	n.log = newLines()
	opt.Port, opt.Store, opt.Peer, opt.Logger = n.port, n.disk, cmp.Or(n.opt.Peer, n.addr), slog.New(n.log)
	opt.NewCluster = func() (string, error) { return "cluster-of-" + n.id, nil }
	opt.Token = func() (string, error) { return n.tokens("token-of-" + n.id), nil }
	if opt.TakeToken == nil {
		opt.TakeToken = func(token string) error { n.tokens(token); return nil }
	}
	removed := make(chan error, 1)
	opt.Removed = func(err error) {
		select {
		case removed <- err:
		default:
		}
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	n.end, n.done, n.removed = end, done, removed
	go func() {
		var err error
		n.cluster, err = Form(ctx, opt)
		done <- err
	}()
	t.Cleanup(func() { n.stop(t) })
	return n
}

// tokens returns the node's operator token, which is the first one that it was given.
func (n *testNode) tokens(first string) string {
	n.tokenMu.Lock()
	defer n.tokenMu.Unlock()
	if n.token == "" {
		n.token = first
	}
	return n.token
}

// formed waits until Form has returned.
func (n *testNode) formed(t *testing.T) *Cluster {
	t.Helper()
	if err := <-n.done; err != nil {
		t.Fatalf("%s: %v", n.id, err)
	}
	n.done <- nil
	return n.cluster
}

// refused waits until Form has failed.
func (n *testNode) refused(t *testing.T, kind Kind, words ...string) {
	t.Helper()
	err := <-n.done
	n.done <- err
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("%s: %v, want kind %s", n.id, err, kind)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("%q does not say %q", e.Message, w)
		}
	}
	if e.Hint == "" && kind != KindWaiting && kind != KindStorage {
		t.Errorf("%q has no hint", e.Message)
	}
}

// stop ends a node as a kill does: what is on its disk stays.
func (n *testNode) stop(t *testing.T) {
	t.Helper()
	if n.port == nil {
		return
	}
	n.end()
	<-n.done
	if n.cluster != nil {
		if err := n.cluster.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := n.port.Close(); err != nil {
		t.Error(err)
	}
	n.port, n.cluster = nil, nil
}

// one checks that nodes are of one cluster with one founder, and returns its id.
func one(t *testing.T, nodes ...*testNode) string {
	t.Helper()
	founders, id := 0, ""
	for _, n := range nodes {
		f := n.formed(t).Facts()
		if id == "" {
			id = f.Cluster
		}
		if saved, _ := n.disk.Load(); f.Cluster != id || f.Cluster == "" || saved.Cluster != id {
			t.Errorf("%s is of %q, on disk %q, others of %q", n.id, f.Cluster, saved.Cluster, id)
		}
		if f.Founder {
			founders++
		}
		want, has := "token-of-"+strings.TrimPrefix(id, "cluster-of-"), ""
		if id == "cluster-of-"+n.id {
			has = want // it may not have been asked for it
		}
		if has = n.tokens(has); has != want {
			t.Errorf("%s has the token %q, want %q", n.id, has, want)
		}
	}
	if founders != 1 {
		t.Errorf("%d founders", founders)
	}
	return id
}

func TestThreeNodesFormInAnyOrder(t *testing.T) {
	dir := certs(t, nil, "n1", "n2", "n3")
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			nodes := freshNodes(t, dir, "n1", "n2", "n3")
			for i, k := range order {
				nodes[k].start(t)
				if i < 2 { // until it has seen those before it, and misses the rest
					nodes[k].log.await(t, fmt.Sprintf("have %d of 3 nodes", i+1), nodes[order[2]].addr+" does not answer: connection refused")
				}
			}
			one(t, nodes...)
			for _, n := range nodes {
				if f := n.cluster.Facts(); len(f.Members) != 3 || f.Members[1].Route != "route-of-n2" || f.Members[1].Peer != nodes[1].addr {
					t.Errorf("%s knows %+v", n.id, f.Members)
				}
			}
		})
	}
}

// A candidate dies when it has all votes, before it has noted that it founds or just
// after. The others wait for it, say so, and go on with it when it is back.
func TestACandidateThatDiesGoesOnLater(t *testing.T) {
	for _, noted := range []bool{false, true} {
		t.Run(fmt.Sprint("noted ", noted), func(t *testing.T) {
			t.Parallel()
			candidateDies(t, noted)
		})
	}
}

func candidateDies(t *testing.T, noted bool) {
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	n1, n2, n3 := nodes[0], nodes[1], nodes[2]
	n1.disk.saved = func(f Facts) error {
		if f.Cluster == "" {
			return nil
		}
		if !noted {
			n1.disk.facts = Facts{ID: f.ID, Incarnation: f.Incarnation, Vote: f.Vote}
		}
		return errKilled
	}
	for _, n := range nodes {
		n.start(t)
	}
	n1.refused(t, KindStorage)
	n1.stop(t)
	n2.log.await(t, "this node gave its vote to n1-x0, which does not answer", "n3 gave its vote to n1-x0")
	n3.log.await(t, "this node gave its vote to n1-x0, which does not answer")
	if f, _ := n1.disk.Load(); f.Vote != "n1-x0" || f.Founder != noted {
		t.Fatalf("%+v", f)
	}
	n1.disk.saved = nil
	n1.start(t)
	if id := one(t, nodes...); id != "cluster-of-n1" {
		t.Error(id)
	}
}

func TestFourNodesOfWhichThreeFound(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3", "n4"), "n1", "n2", "n3", "n4")
	for _, n := range nodes {
		n.opt.Expect = 3
		n.start(t)
	}
	one(t, nodes...)
	for _, n := range nodes[:3] {
		if got := len(n.cluster.Facts().Members); got < 3 {
			t.Errorf("%s knows %d members", n.id, got)
		}
	}
}

// Each names one other only. They find each other because who asks is looked at.
func TestNodesWithDifferentLists(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	nodes[0].opt.Join = []string{nodes[0].addr}
	nodes[1].opt.Join = []string{nodes[0].addr}
	nodes[2].opt.Join = []string{nodes[1].addr, nodes[0].addr}
	for _, n := range nodes {
		n.start(t)
	}
	one(t, nodes...)
}

func TestNodesThatExpectDifferentNumbers(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	nodes[2].opt.Expect = 5
	for _, n := range nodes {
		n.start(t)
	}
	nodes[0].log.await(t, "have 2 of 3 nodes: n1, n2", "n3 was started with --bootstrap-expect 5, this node with 3")
	nodes[2].log.await(t, "n1 was started with --bootstrap-expect 3, this node with 5")
	nodes[2].stop(t)
	nodes[2].opt.Expect = 3
	nodes[2].start(t)
	one(t, nodes...)
}

// A cluster of one, and nodes that join it later, also through one that joined.
func TestLaterNodesJoin(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	n1, n2, n3 := nodes[0], nodes[1], nodes[2]
	n1.opt.Expect, n1.opt.Join = 1, []string{n1.addr}
	n2.opt.Expect, n2.opt.Join = 0, []string{n1.addr}
	n3.opt.Expect, n3.opt.Join = 0, []string{"127.0.0.1:1", n2.addr}
	n2.start(t)
	n2.log.await(t, "looking for a cluster to join", n1.addr)
	n1.start(t)
	n2.formed(t)
	n3.start(t)
	one(t, n1, n2, n3)
	for _, n := range nodes {
		if got := len(n.cluster.Facts().Members); got != 3 {
			t.Errorf("%s knows %d members", n.id, got)
		}
	}
	if err := n1.cluster.Begun(); err != nil || n1.disk.facts.Founder {
		t.Error("it would begin its groups again", err)
	}

	// Those that are up hear of a new address at once, those that are not when they
	// start.
	n3.stop(t)
	n1.stop(t)
	n3.addr = testaddr.Reserve(t, 1)[0]
	n3.start(t).formed(t)
	n1.opt.Join = nil // what it knows is enough
	n1.start(t).formed(t)
	for _, n := range []*testNode{n1, n2} {
		if m := n.cluster.Facts().Members[2]; m.Peer != n3.addr || m.Version != 2 {
			t.Errorf("%s knows %+v", n.id, m)
		}
	}

	status := n1.cluster.Status(t.Context())
	n2.stop(t)
	without := n1.cluster.Status(t.Context())
	if len(status) != 3 || !status[1].Reachable || without[1].Reachable || !without[2].Reachable || without[1].ID != "n2" || without[1].Role != RoleLearner {
		t.Errorf("%+v, %+v", status, without)
	}
}

func TestAnotherCluster(t *testing.T) {
	t.Parallel()
	dir := certs(t, nil, "n1", "n2", "n3")
	nodes := freshNodes(t, dir, "n1", "n2", "n3")
	n1, n2, n3 := nodes[0], nodes[1], nodes[2]
	for _, n := range nodes[:2] {
		n.opt.Expect, n.opt.Join = 1, nil
		n.start(t).formed(t)
	}
	n3.opt.Expect = 0
	n3.start(t)
	n3.refused(t, KindOtherCluster, "n1 is of cluster-of-n1, n2 is of cluster-of-n2")
	n3.stop(t)
	n3.opt.Join = []string{n2.addr}
	n3.start(t).formed(t)
	n3.stop(t)
	n3.opt.Join = []string{n1.addr, n2.addr} // one of its own answers as well
	n3.start(t).formed(t)
	n3.log.await(t, "another cluster", n1.addr)
	n3.stop(t)
	n2.stop(t)
	n3.opt.Join = []string{n1.addr}
	n3.start(t)
	n3.refused(t, KindOtherCluster, "cluster-of-n2", "cluster-of-n1")
}

// A node whose certificate is no good ends with an error; the others wait, and form
// once it has a good one.
func TestCertificatesThatAreNoGood(t *testing.T) {
	t.Parallel()
	good := certs(t, nil, "n1", "n2", "n3")
	expired := certs(t, func(o *devca.Options) { o.Now = func() time.Time { return time.Now().Add(-48 * time.Hour) } }, "n3")
	nodes := freshNodes(t, good, "n1", "n2", "n3")
	n1, n2, n3 := nodes[0], nodes[1], nodes[2]
	n1.start(t)
	n2.start(t)
	n3.dir = certs(t, nil, "n3") // of another authority
	n3.start(t)
	n3.refused(t, KindCertificates, n1.addr, "another authority")
	n1.log.await(t, "have 2 of 3", n3.addr+" has a certificate of another authority")
	n3.stop(t)
	n3.dir = expired
	n3.start(t)
	n3.refused(t, KindCertificates, "valid from")
	n3.stop(t)
	n3.dir = good
	n3.start(t)
	one(t, nodes...)
}

// What each failure of a connection is called.
func TestFailuresOfConnections(t *testing.T) {
	t.Parallel()
	dir := certs(t, nil, "n1", "n2", "n3")
	nodes := freshNodes(t, dir, "n1")
	n := nodes[0]
	odd, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer odd.Close()
	go func() {
		for {
			c, err := odd.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail\r\n"))
			_ = c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(n.addr)
	n.opt.Join = []string{"no-such-name.invalid:8800", "0.0.0.0:" + port, odd.Addr().String()}
	n.opt.Expect = 3
	n.start(t)
	n.log.await(t, "no-such-name.invalid:8800 is a name that")
	n.log.await(t, "0.0.0.0:"+port+" has a certificate for other names", "127.0.0.1")
	n.log.await(t, odd.Addr().String()+" does not answer: tls: first record does not look like a TLS handshake")
	n.end()
	n.refused(t, KindWaiting, "have 1 of 3 nodes: n1", "no-such-name.invalid")
}

func TestTwoNodesWithOneID(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	n1, n2, n3 := nodes[0], nodes[1], nodes[2]
	n1.start(t)
	n1.log.await(t, "have 1 of 3")
	twin := &testNode{id: "n1", dir: n1.dir, addr: testaddr.Reserve(t, 1)[0], opt: n1.opt, disk: &disk{facts: Facts{ID: "n1", Incarnation: "twin"}}}
	twin.start(t)
	twin.refused(t, KindDuplicate, "id n1 runs already", n1.addr)
	twin.stop(t)
	clone := &testNode{id: "n1", dir: n1.dir, addr: testaddr.Reserve(t, 1)[0], opt: n1.opt, disk: &disk{facts: n1.disk.facts}}
	clone.start(t)
	clone.refused(t, KindDuplicate, "copy", n1.addr)
	clone.stop(t)
	n2.start(t)
	n3.start(t)
	one(t, nodes...)

	// It is not told of n1's address, but the node that it asks knows it.
	twin.opt.Join, twin.opt.Expect = []string{n2.addr}, 0
	twin.start(t)
	twin.refused(t, KindDuplicate, "id n1 runs already", n1.addr)
	twin.stop(t)
	n1.stop(t)
	twin.start(t).formed(t) // whether it replaces the other one is for the groups to say
}

func TestAnAddressThatReachesAnotherNode(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2"), "n1", "n2")
	n1, n2 := nodes[0], nodes[1]
	n1.opt.Expect, n2.opt.Expect = 3, 3
	n1.start(t)
	n1.log.await(t, "have 1 of 3")
	c, err := peer.OpenCertificates(n2.dir, "n2", nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: c, Self: n2.disk.identity})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	opt := n2.opt
	opt.Port, opt.Store, opt.Peer = port, n2.disk, n1.addr
	_, err = Form(t.Context(), opt)
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindAddress || !strings.Contains(e.Message, "reaches the node n1") {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	facts := Facts{ID: "n1", Incarnation: "x"}
	many := []string{"a", "b", "c", "d", "e", "f"}
	for name, tc := range map[string]struct {
		opt   Options
		facts Facts
		want  string
	}{
		"no id":                {Options{Expect: 3}, Facts{}, "cannot be called"},
		"an odd incarnation":   {Options{Expect: 3}, Facts{ID: "n1", Incarnation: "a-b"}, "cannot be called"},
		"fewer than none":      {Options{Expect: -1}, facts, "no number"},
		"two":                  {Options{Expect: 2}, facts, "stops when either"},
		"two allowed":          {Options{Expect: 2, AllowTwo: true}, facts, ""},
		"nothing to do":        {Options{}, facts, "neither --join nor"},
		"three of five":        {Options{Expect: 3, Join: many[:5]}, facts, ""},
		"three of six":         {Options{Expect: 3, Join: many}, facts, "two clusters could be founded"},
		"three, one twice":     {Options{Expect: 3, Join: append(many[:5:5], "a")}, facts, ""},
		"one beside others":    {Options{Expect: 1, Join: many[:2]}, facts, "two clusters could be founded"},
		"of a cluster already": {Options{Expect: 2, Join: many}, Facts{ID: "n1", Incarnation: "x", Cluster: "c"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.opt.validate(tc.facts)
			var e *Error
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (!errors.As(err, &e) || e.Kind != KindUsage || !strings.Contains(e.Message, tc.want)):
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	for says, opt := range map[string]Options{"an even number of nodes founds a cluster: 4 bear the loss of 1, as 3 do": {Expect: 4}, "when either of them is gone nothing is written": {Expect: 2, AllowTwo: true}} {
		log := newLines()
		opt.Logger = slog.New(log)
		if err := opt.validate(facts); err != nil {
			t.Error(err)
		}
		log.await(t, says)
	}
}

// One that founds alone does not where it is told of another node.
func TestOneNodeFoundsOnlyWhereItIsAlone(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2"), "n1", "n2")
	n := nodes[0]
	n.opt.Expect, n.opt.Join = 1, []string{nodes[1].addr}
	n.start(t)
	n.log.await(t, "founds a cluster alone, but --join names "+nodes[1].addr)
	n.stop(t)
	if n.disk.facts.Vote != "" || n.disk.facts.Cluster != "" {
		t.Errorf("%+v", n.disk.facts)
	}
}

func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
		kind Kind
	}{
		{fmt.Errorf("%w: call hello of a:1: connect to peer a:1: %w", rpc.ErrNotReached, io.EOF), "does not answer: EOF", ""},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")}, "does not take this node's certificate: it has expired, or does not count yet", KindCertificates},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")}, "does not take this node's certificate: it is of another authority", KindCertificates},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "does not take this node's certificate: bad certificate", KindCertificates},
		{fmt.Errorf("connect to peer n1-x at a:1: %w: n2-y, not n1-x", peer.ErrOtherNode), "the address reaches another node: n2-y, not n1-x", ""},
		{fmt.Errorf("connect: %w", peer.ErrNoService), "is a node that is not ready for others yet", ""},
		{context.DeadlineExceeded, "does not answer in time", ""},
		{&net.DNSError{Err: "server misbehaving", Name: "n1"}, "is a name that cannot be resolved: server misbehaving", ""},
		{&net.DNSError{Err: "no such host", Name: "n1", IsNotFound: true}, "is a name that does not resolve", ""},
		{memory.Errorf(memory.CodeUnavailable, "not now"), "refuses: not now", ""},
	} {
		if got, kind := explain(tc.err); got != tc.want || kind != tc.kind {
			t.Errorf("%v: %q (%s), want %q", tc.err, got, kind, tc.want)
		}
	}
}

// One certificate among others that is no good is that node's; if it is no good with
// anybody, or at this node's own address, it is this node's.
func TestWhoseCertificateIsNoGood(t *testing.T) {
	bad := &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}
	self := Member{Name: "n1-x", ID: "n1"}
	own := answer{addr: "own", hello: hello{Self: self, Run: "r"}}
	other := answer{addr: "a", hello: hello{Self: Member{Name: "n2-x", ID: "n2"}}}
	for name, tc := range map[string]struct {
		answers []answer
		want    Kind
	}{
		"one of two":     {[]answer{own, other, {addr: "b", err: bad}}, ""},
		"one, one away":  {[]answer{own, {addr: "a", err: io.EOF}, {addr: "b", err: bad}}, ""},
		"both":           {[]answer{own, {addr: "a", err: bad}, {addr: "b", err: bad}}, KindCertificates},
		"its own":        {[]answer{{addr: "own", err: bad}, other}, KindCertificates},
		"nobody there":   {[]answer{own}, ""},
		"not its own":    {[]answer{{addr: "own", hello: other.hello}}, KindAddress},
		"its own, twice": {[]answer{own, {addr: "another name of it", hello: own.hello}, other}, ""},
	} {
		l := sift(tc.answers, Options{Peer: "own", Expect: 3}, self, "r")
		var e *Error
		if errors.As(l.err, &e); (e == nil) != (tc.want == "") || e != nil && e.Kind != tc.want {
			t.Errorf("%s: %v, want %q", name, l.err, tc.want)
		}
	}
}
