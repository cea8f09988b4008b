package keygroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"mneme/internal/keyring"
	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/internal/storage/encfs"
	"mneme/internal/testaddr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is against hanging only.
const patience = time.Minute

// site is the nodes of a cluster in one process, which reach each other over peer ports.
type site struct {
	t     testing.TB
	certs string
	nodes []*node
}

// node is one of them. Its keyring and its group lie in dir.
type node struct {
	site  *site
	name  string
	addr  string
	dir   string
	clear bool // files lie in clear, so that a test can look into them
	// changes of the options at each start
	change func(*Options)
	keyFS  vfs.FS // of the keyring; nil = the system's

	port   *peer.Port
	server *rpc.Server
	client *rpc.Client
	keys   *keyring.Keyring
	group  *Group
}

// newSite makes nodes and starts the first of them, which founds the group.
func newSite(t testing.TB, n int) *site {
	t.Helper()
	s := &site{t: t, certs: t.TempDir()}
	opt := devca.Options{Dir: s.certs, Valid: time.Hour}
	for i, addr := range testaddr.Reserve(t, n) {
		nd := &node{site: s, name: fmt.Sprintf("n%d", i+1), addr: addr, dir: t.TempDir()}
		s.nodes = append(s.nodes, nd)
		opt.Nodes = append(opt.Nodes, nd.name)
	}
	_, err := devca.Make(opt)
	must(t, err)
	t.Cleanup(func() {
		for _, nd := range s.nodes {
			nd.stop()
		}
	})
	return s
}

// threeNodes are all in the group.
func threeNodes(t testing.TB, change ...func(*node)) *site {
	t.Helper()
	s := newSite(t, 3)
	for i, nd := range s.nodes {
		for _, f := range change {
			f(nd)
		}
		nd.mustStart(i == 0)
		if i > 0 {
			s.join(nd)
		}
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testCtx(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (n *node) groupDir() string { return filepath.Join(n.dir, "group") }

// clearSealer seals nothing.
type clearSealer struct{}

func (clearSealer) Seal(dst, _, plaintext []byte) []byte       { return append(dst, plaintext...) }
func (clearSealer) Open(dst, _, sealed []byte) ([]byte, error) { return append(dst, sealed...), nil }

func (n *node) mustStart(founds bool) {
	n.site.t.Helper()
	must(n.site.t, n.start(founds))
}

// start opens the node's parts. A node that does not found begins with a blank keyring.
func (n *node) start(founds bool) (err error) {
	defer func() {
		if err != nil {
			n.stop()
		}
	}()
	fsys := n.keyFS
	if fsys == nil {
		fsys = vfs.Default
	}
	exists, err := keyring.Exists(fsys, n.dir)
	if err != nil {
		return err
	}
	if n.keys, err = keyring.Open(keyring.Options{Dir: n.dir, FS: fsys, AllowCreate: !exists, Group: true, Blank: !founds}); err != nil {
		return err
	}
	certs, err := peer.OpenCertificates(n.site.certs, n.name, nil)
	if err != nil {
		return err
	}
	if n.port, err = peer.Listen(peer.Options{Addr: n.addr, Certificates: certs,
		Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: n.name} }}); err != nil {
		return err
	}
	listener, err := n.port.Service("raft/keys")
	if err != nil {
		return err
	}
	port := n.port
	n.client = rpc.NewClient(port, Service)
	opt := Options{Dir: n.groupDir(), ID: n.name, Keys: n.keys, Found: founds, Call: n.client.Call, Logger: logTo(n.site.t).With("node", n.name),
		HeartbeatTimeout: 1500 * time.Millisecond,
		Transport: raftfsm.NewTransport(raftfsm.Network{ID: n.name, Addr: n.addr, Listener: listener,
			Dial: func(ctx context.Context, addr, id string) (net.Conn, error) {
				return port.Dial(ctx, addr, id, "raft/keys")
			}}),
		FS: encfs.New(fsys, n.keys.Storage()), Sealer: encfs.NewBox(n.keys.Storage(), "raft log")}
	if n.clear {
		opt.FS, opt.Sealer = fsys, clearSealer{}
	}
	if n.change != nil {
		n.change(&opt)
	}
	if n.group, err = Open(opt); err != nil {
		return err
	}
	n.server, err = rpc.Serve(n.port, Service, n.group.Methods(), nil)
	return err
}

// stop ends the node's parts, as a process that dies does: nothing is handed over.
func (n *node) stop() {
	t := n.site.t
	if n.port != nil {
		must(t, n.port.Close())
	}
	if n.server != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.server.Close(ctx) // calls are cut off
	}
	if n.group != nil {
		must(t, n.group.Close())
	}
	if n.client != nil {
		n.client.Close()
	}
	if n.keys != nil {
		must(t, n.keys.Close())
	}
	n.port, n.server, n.group, n.client, n.keys = nil, nil, nil, nil, nil
}

// join makes a node a voter.
func (s *site) join(n *node) {
	s.t.Helper()
	addNonvoter(s, n)
	must(s.t, n.group.CatchUp(testCtx(s.t)))
	s.ask(func(ctx context.Context, lead *node) error {
		return lead.group.Raft().Promote(ctx, n.name, raftfsm.Address(n.name, n.addr), 0)
	})
}

// addNonvoter begins a node's joining.
func addNonvoter(s *site, n *node) {
	s.t.Helper()
	s.ask(func(ctx context.Context, lead *node) error {
		return lead.group.Raft().AddNonvoter(ctx, n.name, raftfsm.Address(n.name, n.addr), 0)
	})
}

// ask asks the leader for a change of the members, and again where it leads no more: on a
// machine that is busy leaders change.
func (s *site) ask(what func(ctx context.Context, lead *node) error) {
	s.t.Helper()
	ctx := testCtx(s.t)
	for {
		err := what(ctx, s.leader())
		if (errors.Is(err, raftfsm.ErrNotLeader) || errors.Is(err, raftfsm.ErrUnknownOutcome)) && ctx.Err() == nil {
			continue
		}
		must(s.t, err)
		return
	}
}

// leader waits until a node leads whose term has begun.
func (s *site) leader() *node {
	s.t.Helper()
	ctx := testCtx(s.t)
	for {
		for _, n := range s.nodes {
			if n.group == nil {
				continue
			}
			if _, err := n.group.Raft().LinearizableIndex(ctx); err == nil {
				return n
			}
		}
		select {
		case <-ctx.Done():
			s.t.Fatal("nobody leads")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// forgetsLeader waits until a node whose leader is gone knows of none: what is asked of one
// that goes away may be under way.
func (n *node) forgetsLeader() {
	n.site.t.Helper()
	for ctx := testCtx(n.site.t); ; {
		if id, _ := n.group.Leader(); id == "" {
			return
		}
		select {
		case <-ctx.Done():
			n.site.t.Fatalf("%s still has a leader", n.name)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// followers are the nodes that run and do not lead.
func (s *site) followers() (out []*node) {
	s.t.Helper()
	lead := s.leader()
	for _, n := range s.nodes {
		if n != lead && n.group != nil {
			out = append(out, n)
		}
	}
	return out
}

// same checks that all nodes that run have the same keyring.
func (s *site) same() {
	s.t.Helper()
	var want []byte
	for _, n := range s.nodes {
		if n.group == nil {
			continue
		}
		must(s.t, n.group.CatchUp(testCtx(s.t)))
		got, err := n.keys.Machine().Snapshot()
		must(s.t, err)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			s.t.Fatalf("node %s has another keyring", n.name)
		}
	}
}

var team = keyring.NamespaceID{1, 7}

// ensure makes a subject's key through a node.
func (n *node) ensure(subject string) keyring.KeyID {
	n.site.t.Helper()
	ids, created, err := n.keys.EnsureSubjects(team, []string{subject})
	must(n.site.t, err)
	if !created[0] {
		n.site.t.Fatalf("the key of %s was there", subject)
	}
	return ids[0]
}

// mustOpen opens what another node sealed.
func (n *node) mustOpen(id keyring.KeyID, sealed []byte) {
	n.site.t.Helper()
	d, err := n.keys.KeyByID(id)
	must(n.site.t, err)
	got, err := d.Open(nil, keyring.Identity{}, nil, sealed)
	if must(n.site.t, err); string(got) != "text" {
		n.site.t.Fatalf("node %s opens %q", n.name, got)
	}
}

func (n *node) seal(id keyring.KeyID) []byte {
	n.site.t.Helper()
	d, err := n.keys.KeyByID(id)
	must(n.site.t, err)
	return d.Seal(nil, keyring.Identity{}, nil, []byte("text"))
}

// holds lists the files of the node, as they lie on the disk, that contain one of the
// values.
func (n *node) holds(values ...[]byte) (files []string) {
	n.site.t.Helper()
	must(n.site.t, filepath.WalkDir(n.groupDir(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, v := range values {
			if bytes.Contains(b, v) {
				files = append(files, path)
				break
			}
		}
		return nil
	}))
	return files
}

// recorder keeps the commands that a node proposes.
type recorder struct {
	keyring.Proposer
	mu       sync.Mutex
	commands [][]byte
}

func (r *recorder) Propose(command []byte) (keyring.Answer, error) {
	r.mu.Lock()
	r.commands = append(r.commands, command)
	r.mu.Unlock()
	return r.Proposer.Propose(command)
}

// logTo writes what a failed test wants to know.
func logTo(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(&testWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct{ t testing.TB }

func (w *testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(b))
	return len(b), nil
}
