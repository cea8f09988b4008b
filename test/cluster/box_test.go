package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/internal/settings"
	"mneme/internal/testaddr"
	"mneme/memory"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if built != "" {
			_ = os.RemoveAll(built)
		}
		os.Exit(code)
	}))
}

// patience is against hanging only.
const patience = time.Minute

// site is the nodes of one cluster. They share one keyring, for keys are not
// replicated yet.
type site struct {
	t     testing.TB
	certs string
	keys  *keyring.Keyring
	boxes []*box
}

// box is one node's parts.
type box struct {
	site   *site
	name   string
	dir    string
	certs  *peer.Certificates
	addrs  struct{ nats, route, peer string }
	port   *peer.Port
	server *eventlog.Server
	stream *eventlog.JetStream
	rep    *replica.Replica
}

func newSite(t testing.TB, n int) *site {
	t.Helper()
	keys, err := keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	must(t, err)
	s := &site{t: t, certs: t.TempDir(), keys: keys}
	opt := devca.Options{Dir: s.certs, Valid: time.Hour}
	free := testaddr.Reserve(t, 3*n)
	for i := range n {
		b := &box{site: s, name: fmt.Sprintf("n%d", i+1), dir: t.TempDir()}
		b.addrs.nats, b.addrs.route, b.addrs.peer = free[3*i], free[3*i+1], free[3*i+2]
		opt.Nodes = append(opt.Nodes, b.name)
		s.boxes = append(s.boxes, b)
	}
	_, err = devca.Make(opt)
	must(t, err)
	t.Cleanup(func() {
		for _, b := range s.boxes {
			b.stop()
		}
		must(t, keys.Close())
	})
	var wg sync.WaitGroup
	for i, b := range s.boxes {
		wg.Go(func() {
			if err := b.start(i == 0); err != nil {
				t.Errorf("start %s: %v", b.name, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	s.join()
	return s
}

// join makes every box a voter of the group that the first one founded.
func (s *site) join() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	first := s.boxes[0]
	must(s.t, first.rep.WaitWriter(ctx))
	for _, b := range s.boxes[1:] {
		group := first.rep.Group().(*raftfsm.Group)
		addr := raftfsm.Address(b.name, b.addrs.peer)
		must(s.t, group.AddNonvoter(ctx, b.name, addr, 0))
		must(s.t, group.Promote(ctx, b.name, addr, 0))
	}
}

func (b *box) start(founds bool) (err error) {
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	s := b.site
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if b.certs, err = peer.OpenCertificates(s.certs, b.name, nil); err != nil {
		return err
	}
	var routes []string
	for _, other := range s.boxes {
		routes = append(routes, other.addrs.route)
	}
	log := logTo(s.t).With("node", b.name)
	if b.server, err = eventlog.StartServer(ctx, eventlog.ServerOptions{Dir: filepath.Join(b.dir, "nats"), Addr: b.addrs.nats, Name: b.name, Logger: log,
		Cluster: &eventlog.ClusterOptions{Name: "site", Addr: b.addrs.route, Peers: routes, TLS: b.certs.Both()}}); err != nil {
		return err
	}
	nc, err := b.server.NodeConn(ctx)
	if err != nil {
		return err
	}
	if b.stream, err = eventlog.OpenStream(ctx, nc, eventlog.StreamConfig{ClusterID: "c", Replicas: len(s.boxes), AckTimeout: time.Second,
		Ref: events.StreamRef{Epoch: 1, Identity: "first"}, Fault: b.server.WriteFault}); err != nil {
		return err
	}
	if err := waitInfo(ctx, b.stream); err != nil {
		return err
	}
	if b.port, err = peer.Listen(peer.Options{Addr: b.addrs.peer, Certificates: b.certs, Logger: log,
		Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: b.name} }}); err != nil {
		return err
	}
	listener, err := b.port.Service("raft/0")
	if err != nil {
		return err
	}
	port := b.port
	transport := raftfsm.NewTransport(raftfsm.Network{ID: b.name, Addr: b.addrs.peer, Listener: listener, Logger: log,
		Dial: func(ctx context.Context, addr, id string) (net.Conn, error) {
			return port.Dial(ctx, addr, id, "raft/0")
		}})
	opt := replica.Options{ID: b.name, Dir: filepath.Join(b.dir, "shard"), Stream: b.stream, Keys: s.keys, Settings: settings.NewCache(s.keys),
		Transport: transport, Logger: log,
		OpenGroup: func(o raftfsm.Options) (replica.Group, error) {
			o.Bootstrap = founds
			o.HeartbeatTimeout, o.ElectionTimeout = 500*time.Millisecond, 500*time.Millisecond
			return raftfsm.Open(o)
		}}
	// Without Options.Streams an empty state asks the log, which may elect again just now.
	for b.rep, err = replica.Open(ctx, opt); errors.Is(err, eventlog.ErrNoLeader) && ctx.Err() == nil; b.rep, err = replica.Open(ctx, opt) {
		if err := waitInfo(ctx, b.stream); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return b.rep.Start(ctx, noViews{})
}

// waitInfo waits until the stream has a leader.
func waitInfo(ctx context.Context, st *eventlog.JetStream) error {
	for {
		_, err := st.Info(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the box's parts, in the order of a process that dies: nothing is handed
// over.
func (b *box) stop() {
	if b.port != nil {
		must(b.site.t, b.port.Close())
	}
	if b.server != nil {
		must(b.site.t, b.server.Shutdown(context.Background()))
	}
	if b.rep != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		b.rep.Stop(ctx)
		must(b.site.t, b.rep.Close())
	}
	b.port, b.server, b.rep, b.stream = nil, nil, nil, nil
}

// noViews keep nothing in memory.
type noViews struct{}

func (noViews) OnApply(*projections.Applied) {}
func (noViews) Load(context.Context) error   { return nil }

// writer returns the box that leads, waiting until one does.
func (s *site) writer(ctx context.Context) (*box, *ingest.Writer, error) {
	for {
		for _, b := range s.boxes {
			if b.rep == nil {
				continue
			}
			if w, err := b.rep.Writer(); err == nil {
				return b, w, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// capture sends one memory under one id until it is acknowledged, as a client does,
// and returns its record.
func (s *site) capture(ctx context.Context, id, text string) (memory.CaptureResult, int, error) {
	for attempt := 1; ; attempt++ {
		_, w, err := s.writer(ctx)
		if err != nil {
			return memory.CaptureResult{}, attempt, err
		}
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		resp, err := w.Capture(try, "team", []ingest.Item{{Capture: memory.Capture{Agent: "a", ID: id, Text: text}}}, memory.WaitApplied)
		cancel()
		switch {
		case err == nil && resp.Results[0].Error == nil:
			return resp.Results[0], attempt, nil
		case ctx.Err() != nil:
			return memory.CaptureResult{}, attempt, errors.Join(ctx.Err(), err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logTo logs to the test while it runs.
func logTo(t testing.TB) *slog.Logger {
	w := &testOutput{w: t.Output()}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testOutput struct {
	mu sync.Mutex
	w  io.Writer // nil once the test is over
}

func (o *testOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}

func (o *testOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}
