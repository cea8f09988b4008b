package raftfsm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain frames as a group without a sealer does.
var plain framer

var osFS = vfs.Default

// fileMachine is a Machine that keeps "key=value" commands in a map and its
// durable form in one file per state, replaced as a whole: the dumb twin of a
// database whose writes are atomic and reach the disk only with Flush.
type fileMachine struct {
	fs  vfs.FS
	dir string

	mu       sync.Mutex
	state    machineState
	applies  int // calls of Apply
	seen     []uint64
	failAt   uint64 // Apply returns an error when it meets this index
	panicAt  uint64
	short    bool // Apply forgets a result
	failNext map[string]error
	hold     chan struct{} // Apply waits for it, if set
}

type machineState struct {
	Index, Term uint64
	Rows        map[string]string
	Chain       uint64 // order-sensitive sum over all commands
}

func newFileMachine(t testing.TB, dir string) *fileMachine {
	t.Helper()
	return newMachineOn(t, vfs.Default, dir)
}

func newMachineOn(t testing.TB, fsys vfs.FS, dir string) *fileMachine {
	t.Helper()
	if err := storage.MkdirAll(fsys, dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &fileMachine{fs: fsys, dir: dir, state: machineState{Rows: map[string]string{}}, failNext: map[string]error{}}
	if b, err := storage.ReadFile(fsys, m.file()); err == nil {
		if err := json.Unmarshal(b, &m.state); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *fileMachine) file() string { return filepath.Join(m.dir, "state.json") }

func (m *fileMachine) fail(op string) error {
	err := m.failNext[op]
	delete(m.failNext, op)
	return err
}

func (m *fileMachine) Apply(entries []Entry) ([]any, error) {
	m.mu.Lock()
	hold := m.hold
	m.mu.Unlock()
	if hold != nil {
		<-hold
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applies++
	next := m.state
	next.Rows = maps.Clone(m.state.Rows)
	out := make([]any, 0, len(entries))
	for _, e := range entries {
		if e.Index <= m.state.Index {
			return nil, fmt.Errorf("entry %d was applied before", e.Index)
		}
		switch e.Index {
		case m.failAt:
			return nil, &ApplyError{Index: e.Index, Err: errBoom}
		case m.panicAt:
			panic("boom")
		}
		m.seen = append(m.seen, e.Index)
		next.apply(e)
		out = append(out, len(next.Rows))
	}
	m.state = next
	if m.short {
		return out[:len(out)-1], nil
	}
	return out, nil
}

var errBoom = errors.New("boom")

func (s *machineState) apply(e Entry) {
	k, v, _ := cut(e.Data)
	s.Rows[k] = v
	for _, b := range e.Data {
		s.Chain = s.Chain*1099511628211 + uint64(b) + 1
	}
	s.Index, s.Term = e.Index, e.Term
}

func cut(b []byte) (k, v string, ok bool) {
	for i, c := range b {
		if c == '=' {
			return string(b[:i]), string(b[i+1:]), true
		}
	}
	return string(b), "", false
}

func (m *fileMachine) AppliedIndex() (uint64, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Index, m.state.Term
}

func (m *fileMachine) get() machineState {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state
	s.Rows = maps.Clone(s.Rows)
	return s
}

func (m *fileMachine) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("flush"); err != nil {
		return err
	}
	b, err := json.Marshal(m.state)
	if err != nil {
		return err
	}
	return storage.ReplaceFile(m.fs, m.file(), b, 0o600)
}

func (m *fileMachine) Checkpoint(dir string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("checkpoint"); err != nil {
		return 0, err
	}
	if err := m.fs.MkdirAll(m.fs.PathJoin(dir, "sub"), 0o700); err != nil {
		return 0, err
	}
	b, err := json.Marshal(m.state)
	if err != nil {
		return 0, err
	}
	if err := writeFile(m.fs, m.fs.PathJoin(dir, "state.json"), b); err != nil {
		return 0, err
	}
	return m.state.Index, writeFile(m.fs, m.fs.PathJoin(dir, "sub", "index"), binary.BigEndian.AppendUint64(nil, m.state.Index))
}

func (m *fileMachine) Restore(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail("restore"); err != nil {
		return err
	}
	b, err := storage.ReadFile(m.fs, m.fs.PathJoin(dir, "state.json"))
	if err != nil {
		return err
	}
	var s machineState
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if err := storage.ReplaceFile(m.fs, m.file(), b, 0o600); err != nil {
		return err
	}
	m.state = s
	return nil
}

// writeFile writes without a sync, as a checkpoint may.
func writeFile(fsys vfs.FS, path string, b []byte) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// testCtx bounds a test against hanging; nothing is measured with it.
func testCtx(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// shard is one replica for tests: a machine and a group in one folder.
type shard struct {
	dir     string
	machine *fileMachine
	group   *Group
}

func openShard(t testing.TB, dir string, change ...func(*Options)) *shard {
	t.Helper()
	s, err := tryOpenShard(t, dir, change...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryOpenShard(t testing.TB, dir string, change ...func(*Options)) (*shard, error) {
	t.Helper()
	s := &shard{dir: dir}
	opt := Options{Dir: filepath.Join(dir, "raft"), ID: "n1", Bootstrap: true, NoSync: true, FS: vfs.Default}
	opt.Machine = newFileMachine(t, filepath.Join(dir, "state"))
	for _, f := range change {
		f(&opt)
	}
	s.machine = opt.Machine.(*fileMachine)
	if s.machine.fs != opt.FS {
		s.machine = newMachineOn(t, opt.FS, filepath.Join(dir, "state"))
		opt.Machine = s.machine
	}
	var err error
	if s.group, err = Open(opt); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = s.group.Close() })
	return s, nil
}

func (s *shard) lead(t testing.TB) *shard {
	t.Helper()
	if err := s.group.WaitLeader(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shard) put(t testing.TB, kv string) uint64 {
	t.Helper()
	ctx := testCtx(t)
	_, index, err := s.group.Propose(ctx, []byte(kv)).Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func (s *shard) putMany(t testing.TB, from, to int) {
	t.Helper()
	ctx := testCtx(t)
	var futures []*Future
	for i := from; i < to; i++ {
		futures = append(futures, s.group.Propose(ctx, fmt.Appendf(nil, "k%03d=v%d", i, i)))
	}
	for _, f := range futures {
		if _, _, err := f.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *shard) close(t testing.TB) {
	t.Helper()
	if err := s.group.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkRows(t testing.TB, s machineState, n int) {
	t.Helper()
	if len(s.Rows) != n {
		t.Fatalf("state has %d rows, want %d", len(s.Rows), n)
	}
	for i := range n {
		if got := s.Rows[fmt.Sprintf("k%03d", i)]; got != fmt.Sprintf("v%d", i) {
			t.Fatalf("row %d is %q", i, got)
		}
	}
}

func damagedFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "raft", "raft.db.damaged-*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// cluster is several replicas that reach each other.
type cluster struct {
	net    network
	dirs   []string
	shards []*shard
}

// network makes the transports of a cluster.
type network interface {
	// transport returns a new transport of replica i, whose former one is closed.
	transport(t testing.TB, i int) Transport
	addr(i int) string
	// cut takes replica i from all others, for good.
	cut(i int)
}

// memory is a network within the process.
type memory struct{ trans map[int]*raft.InmemTransport }

func (m *memory) addr(i int) string { return fmt.Sprintf("addr-%d", i) }

func (m *memory) transport(_ testing.TB, i int) Transport {
	_, tr := raft.NewInmemTransport(raft.ServerAddress(m.addr(i)))
	for j, other := range m.trans {
		if j != i {
			tr.Connect(other.LocalAddr(), other)
			other.Connect(tr.LocalAddr(), tr)
		}
	}
	m.trans[i] = tr
	return tr
}

func (m *memory) cut(i int) {
	m.trans[i].DisconnectAll()
	for _, other := range m.trans {
		other.Disconnect(m.trans[i].LocalAddr())
	}
}

// ports is a network of peer ports with certificates.
type ports struct {
	certs string
	ports map[int]*peer.Port

	promised map[[2]string]Promise // by who saw it, and whose it is

	mu    sync.Mutex
	links map[net.Conn][2]string
	gone  map[string]bool
}

func (p *ports) cut(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[replicaID(i)] = true
	for c, ends := range p.links {
		if slices.Contains(ends[:], replicaID(i)) {
			_ = c.Close()
		}
	}
}

// dial is how replica i reaches another one.
func (p *ports) dial(ctx context.Context, i int, addr, id string) (net.Conn, error) {
	c, err := p.ports[i].Dial(ctx, addr, id, "raft/0")
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && (p.gone[id] || p.gone[replicaID(i)]) {
		err = errors.Join(errors.New("cut off"), c.Close())
	}
	if err == nil {
		p.links[c] = [2]string{id, replicaID(i)}
	}
	return c, err
}

func newPorts(t testing.TB, n int) *ports {
	p := &ports{certs: t.TempDir(), ports: map[int]*peer.Port{}, links: map[net.Conn][2]string{}, gone: map[string]bool{}, promised: map[[2]string]Promise{}}
	opt := devca.Options{Dir: p.certs, Valid: time.Hour}
	for i := range n {
		opt.Nodes = append(opt.Nodes, replicaID(i))
	}
	if _, err := devca.Make(opt); err != nil {
		t.Fatal(err)
	}
	return p
}

// saw notes what replica i saw another one promise.
func (p *ports) saw(i int, replica string, promise Promise) {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := [2]string{replicaID(i), replica}
	p.promised[by] = p.promised[by].And(promise)
}

func replicaID(i int) string { return fmt.Sprintf("n%d", i+1) }

func (p *ports) addr(i int) string { return Address(replicaID(i), p.ports[i].Addr().String()) }

func (p *ports) transport(t testing.TB, i int) Transport {
	t.Helper()
	if p.ports[i] == nil {
		certs, err := peer.OpenCertificates(p.certs, replicaID(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs,
			Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: replicaID(i)} }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = port.Close() })
		p.ports[i] = port
	}
	l, err := p.ports[i].Service("raft/0")
	if err != nil {
		t.Fatal(err)
	}
	return NewTransport(Network{ID: replicaID(i), Addr: p.ports[i].Addr().String(), Listener: l,
		Saw: func(replica string, promise Promise) { p.saw(i, replica, promise) },
		Dial: func(ctx context.Context, addr, id string) (net.Conn, error) {
			return p.dial(ctx, i, addr, id)
		}})
}

// overBoth runs a test over each network.
func overBoth(t *testing.T, n int, test func(*testing.T, network)) {
	t.Run("memory", func(t *testing.T) { test(t, &memory{map[int]*raft.InmemTransport{}}) })
	t.Run("ports", func(t *testing.T) { test(t, newPorts(t, n)) })
}
