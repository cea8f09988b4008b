package route_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/peer/rpc"
	"mneme/internal/route"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster whose nodes write into one log: what the fold does with ids is done
// here.
type world struct {
	mu      sync.Mutex
	nodes   []*member
	log     []entry
	used    map[string]int // id → sequence of its entry
	changed chan struct{}
}

// entry is one thing that was carried out.
type entry struct {
	node, method string
	args         []any
}

// member is one node. Its fields but the hooks are under the world's mutex.
type member struct {
	*route.Router
	w      *world
	name   string
	port   *peer.Port
	server *rpc.Server
	leader *member // that it knows of
	open   bool    // its writer is
	why    error   // it is not
	asked  []string

	// before and after run where a call has come and where it was carried out. An error
	// is what the call is answered.
	before, after func(ctx context.Context) error
	waits         func() // at each wait for a change
	position      func(ctx context.Context) (string, error)
	reached       []string
}

// open makes three nodes, none of which leads.
func open(t testing.TB, patience time.Duration) (w *world, a, b, c *member) {
	t.Helper()
	dir := t.TempDir()
	names := []string{"a", "b", "c"}
	if _, err := devca.Make(devca.Options{Dir: dir, Nodes: names, Valid: time.Hour}); err != nil {
		t.Fatal(err)
	}
	var ports []*peer.Port
	for _, name := range names {
		certs, err := peer.OpenCertificates(dir, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Greeting: 30 * time.Second,
			Self: func() peer.Identity { return peer.Identity{Cluster: "x", Node: name} }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = port.Close() })
		ports = append(ports, port)
	}
	w = shardAt(t, 0, names, ports, patience)
	return w, w.nodes[0], w.nodes[1], w.nodes[2]
}

// beside is another shard of the same nodes.
func (w *world) beside(t testing.TB, shard uint16, patience time.Duration) *world {
	t.Helper()
	var names []string
	var ports []*peer.Port
	for _, m := range w.nodes {
		names, ports = append(names, m.name), append(ports, m.port)
	}
	return shardAt(t, shard, names, ports, patience)
}

// shardAt is a shard of nodes with these ports, none of which leads it.
func shardAt(t testing.TB, shard uint16, names []string, ports []*peer.Port, patience time.Duration) *world {
	t.Helper()
	w := &world{used: map[string]int{}, changed: make(chan struct{})}
	for i, port := range ports {
		m := &member{w: w, name: names[i], port: port}
		m.position = func(context.Context) (string, error) { return "p0.0.7.0", nil }
		clients := route.NewClients(port, shard)
		opt := route.Options{Local: &fake{m}, Open: m.opens, Unwritten: func(err error) bool { return errors.Is(err, errUnconfirmed) }, Leader: m.leads, Wait: m.wait, Clients: clients, Patience: patience,
			Position: func(ctx context.Context) (string, error) { return m.position(ctx) },
			Reach: func(_ context.Context, at string) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				m.reached = append(m.reached, at)
				return nil
			}}
		m.Router = route.New(opt)
		var err error
		if m.server, err = rpc.ServeLarge(port, route.ServiceOf(shard), route.Methods(opt), nil); err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, m)
		t.Cleanup(func() {
			clients.Close()
			m.kill()
		})
	}
	return w
}

// lead lets a node lead, and the others know.
func (w *world) lead(now *member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.nodes {
		m.leader, m.open = now, m == now
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// entries returns the log.
func (w *world) entries() []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log
}

// write writes one thing, unless its id is used already.
func (w *world) write(e entry, id string) (seq int, duplicate bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seq, ok := w.used[id]; ok && id != "" {
		return seq, true
	}
	w.log = append(w.log, e)
	w.used[id] = len(w.log)
	return len(w.log), false
}

func (m *member) opens() error {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if m.open {
		return nil
	}
	if m.why != nil {
		return m.why
	}
	return memory.Errorf(memory.CodeUnavailable, "the writer of %s is not open", m.name)
}

func (m *member) leads() (to rpc.Target, self, known bool) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if m.leader == nil {
		return to, false, false
	}
	return m.leader.target(), m.leader == m, true
}

func (m *member) target() rpc.Target { return rpc.Target{Addr: m.port.Addr().String(), Node: m.name} }

func (m *member) wait(ctx context.Context) {
	m.w.mu.Lock()
	changed, waits := m.w.changed, m.waits
	m.w.mu.Unlock()
	if waits != nil {
		waits()
	}
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// kill cuts off what is under way.
func (m *member) kill() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.server.Close(now)
}

// die is a hook: the node is killed in the middle of a call, and another one leads.
func (m *member) die(next *member) func(context.Context) error {
	return func(ctx context.Context) error {
		m.w.lead(next)
		go m.kill()
		<-ctx.Done()
		return ctx.Err()
	}
}

// depose is a hook: another node leads, and the call is answered with an error.
func (m *member) depose(next *member, code memory.Code) func(context.Context) error {
	return func(context.Context) error {
		m.w.lead(next)
		return memory.Errorf(code, "%s was deposed", m.name)
	}
}

// doubt is a hook: the node cannot confirm that it leads, and so refuses. With next, another
// one does; else it can the next time.
func (m *member) doubt(next *member) func(context.Context) error {
	asked := false
	return func(context.Context) error {
		if asked && next == nil {
			return nil
		}
		if asked = true; next != nil {
			m.w.lead(next)
		}
		return memory.Errorf(memory.CodeUnavailable, "%s cannot tell", m.name).WithCause(errUnconfirmed)
	}
}

var errUnconfirmed = errors.New("unconfirmed")

// fake is a node's writer. Everything that it is asked for goes into the world's log.
type fake struct{ m *member }

func (f *fake) carry(ctx context.Context, method, id string, args ...any) (duplicate bool, err error) {
	f.m.w.mu.Lock()
	f.m.asked = append(f.m.asked, method)
	f.m.w.mu.Unlock()
	if f.m.before != nil {
		if err := f.m.before(ctx); err != nil {
			return false, err
		}
	}
	_, duplicate = f.m.w.write(entry{f.m.name, method, args}, id)
	if f.m.after != nil {
		return duplicate, f.m.after(ctx)
	}
	return duplicate, nil
}

// Capture is answered as a node answers: each item by itself.
func (f *fake) Capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	f.m.w.mu.Lock()
	f.m.asked = append(f.m.asked, "Capture")
	f.m.w.mu.Unlock()
	resp := memory.CaptureResponse{Results: make([]memory.CaptureResult, len(items)), Vectors: "pending"}
	fail := func(i int, err error) {
		e := memory.AsError(err)
		resp.Results[i] = memory.CaptureResult{ID: items[i].ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: e.Code, Detail: e.Message, Hint: e.Hint}}
	}
	for i, item := range items {
		if ctx.Err() != nil { // it is dead
			return resp, ctx.Err()
		}
		if f.m.before != nil {
			err := f.m.before(ctx)
			if errors.Is(err, errUnconfirmed) { // of the request as a whole
				return memory.CaptureResponse{}, err
			}
			if err != nil {
				fail(i, err)
				continue
			}
		}
		source := ""
		if opt.Source != nil {
			source = opt.Source[i]
		}
		seq, duplicate := f.m.w.write(entry{f.m.name, "Capture", []any{namespace, item, opt.Origin, source, wait}}, item.ID)
		at := fmt.Sprintf("p0.0.%d.0", seq)
		resp.Results[i] = memory.CaptureResult{ID: item.ID, RecordID: fmt.Sprint("record-", seq), Position: at, Status: memory.StatusCreated}
		if duplicate {
			resp.Results[i].Status = memory.StatusDuplicate
		}
		resp.Position = at
		if f.m.after != nil {
			if err := f.m.after(ctx); err != nil {
				fail(i, err)
			}
		}
	}
	return resp, nil
}

func (f *fake) Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	_, err := f.carry(ctx, "Revise", clientID, namespace, as, id, rev, ifMatch, clientID)
	return answered[memory.RevisionResponse](err)
}

func (f *fake) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	_, err := f.carry(ctx, "ChangeGraph", change.ID, namespace, change)
	return answered[memory.GraphChanged](err)
}

func (f *fake) NoteRead(ctx context.Context, namespace string, note events.ReadNote) (string, error) {
	_, err := f.carry(ctx, "NoteRead", "", namespace, note)
	return answered[string](err)
}

func (f *fake) Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	_, err := f.carry(ctx, "Forget", "", namespace, as, id, ifMatch)
	return answered[memory.ForgetResponse](err)
}

func (f *fake) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	_, err := f.carry(ctx, "CreateNamespace", "", req)
	return answered[memory.Namespace](err)
}

func (f *fake) ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error) {
	_, err := f.carry(ctx, "ChangeNamespace", "", name, patch)
	return answered[memory.Namespace](err)
}

func (f *fake) DeleteNamespace(ctx context.Context, name string) (string, error) {
	_, err := f.carry(ctx, "DeleteNamespace", "", name)
	return answered[string](err)
}

func (f *fake) SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (memory.EmbedderStatus, bool, error) {
	_, err := f.carry(ctx, "SwitchEmbedder", "", namespace, req)
	st, err := answered[memory.EmbedderStatus](err)
	return st, err == nil, err
}

func (f *fake) CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	_, err := f.carry(ctx, "CancelSwitch", "", namespace)
	return answered[memory.EmbedderStatus](err)
}

func (f *fake) AcceptClock(ctx context.Context) (memory.ClockReport, error) {
	_, err := f.carry(ctx, "AcceptClock", "")
	return answered[memory.ClockReport](err)
}

// answered is an answer with every field set.
func answered[T any](err error) (out T, _ error) {
	if err == nil {
		filled(&out)
	}
	return out, err
}
