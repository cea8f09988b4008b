package natsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"mneme/internal/api"
	"mneme/internal/eventlog"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const recordID = "01JD0000000000000000000000"

// patience bounds waiting for what must happen.
const patience = 20 * time.Second

// fake is the writer, the reader and the rejecter.
type fake struct {
	mu       sync.Mutex
	calls    []string
	args     []any // of the last call
	batches  [][]memory.Capture
	rejected []memory.Rejected
	arrived  chan memory.Rejected
	counted  map[memory.Code]int // refusals that were not listed
	rejectOn chan struct{}       // holds up Reject until it is closed; nil does not

	capture func(ctx context.Context, ns string, items []memory.Capture) (memory.CaptureResponse, error)
	read    func(ctx context.Context) error
	change  func(ctx context.Context) error
}

// plainAccess is an access as calls are written down, namespace included.
type plainAccess struct {
	Namespace, As, AtLeast string
	Consistency            memory.Consistency
}

func (f *fake) called(method string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := method
	f.args = args
	for _, a := range args {
		if acc, ok := a.(memory.Access); ok {
			a = plainAccess(acc)
		}
		b, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		line += " " + string(b)
	}
	f.calls = append(f.calls, line)
}

func (f *fake) lastCall() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) == 0 {
		return ""
	}
	return f.calls[len(f.calls)-1]
}

func (f *fake) Capture(ctx context.Context, ns string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	f.called("Capture", ns, items, opt, wait)
	f.mu.Lock()
	f.batches = append(f.batches, items)
	capture := f.capture
	f.mu.Unlock()
	if capture != nil {
		return capture(ctx, ns, items)
	}
	return created(items), nil
}

func created(items []memory.Capture) memory.CaptureResponse {
	resp := memory.CaptureResponse{Position: "p0.1.42.0"}
	for i, item := range items {
		resp.Results = append(resp.Results, memory.CaptureResult{ID: item.ID, RecordID: recordID, Position: fmt.Sprintf("p0.1.42.%d", i), Status: memory.StatusCreated})
	}
	return resp
}

func (f *fake) Count(c memory.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counted == nil {
		f.counted = map[memory.Code]int{}
	}
	f.counted[c]++
}

func (f *fake) Reject(r memory.Rejected) {
	if f.rejectOn != nil {
		<-f.rejectOn
	}
	f.mu.Lock()
	f.rejected = append(f.rejected, r)
	f.mu.Unlock()
	select {
	case f.arrived <- r:
	default:
	}
}

func (f *fake) reading(ctx context.Context) error {
	f.mu.Lock()
	read := f.read
	f.mu.Unlock()
	if read != nil {
		return read(ctx)
	}
	return nil
}

// changed is what a revision and a forget end with.
func (f *fake) changed(ctx context.Context) error {
	f.mu.Lock()
	change := f.change
	f.mu.Unlock()
	if change != nil {
		return change(ctx)
	}
	return nil
}

func (f *fake) Revise(ctx context.Context, ns, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	f.called("Revise", ns, as, id, rev, ifMatch, clientID)
	return memory.RevisionResponse{RecordID: id, Version: 2, Position: "p0.1.43.0"}, f.changed(ctx)
}

func (f *fake) Forget(ctx context.Context, ns, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	f.called("Forget", ns, as, id, ifMatch)
	return memory.ForgetResponse{RecordID: id, Position: "p0.1.44.0"}, f.changed(ctx)
}

// onCapture replaces what captures answer.
func (f *fake) onCapture(do func(ctx context.Context, ns string, items []memory.Capture) (memory.CaptureResponse, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capture = do
}

// onChange replaces what revisions and forgets answer.
func (f *fake) onChange(do func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change = do
}

// onRead replaces what reads answer.
func (f *fake) onRead(do func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = do
}

func (f *fake) SearchNamespaces(ctx context.Context, acc memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error) {
	f.called("SearchNamespaces", acc, req)
	return memory.SearchResponse{Position: "p0.1.9.0", Mode: memory.ModeText}, f.reading(ctx)
}

func (f *fake) Search(ctx context.Context, acc memory.Access, req memory.SearchRequest) (memory.SearchResponse, error) {
	f.called("Search", acc, req)
	return memory.SearchResponse{Position: "p0.1.9.0", Mode: memory.ModeText}, f.reading(ctx)
}

func (f *fake) Get(ctx context.Context, acc memory.Access, id string, version int) (memory.Record, error) {
	f.called("Get", acc, id, version)
	return memory.Record{RecordID: recordID, Text: "hi"}, f.reading(ctx)
}

func (f *fake) Timeline(ctx context.Context, acc memory.Access, req memory.TimelineRequest) (memory.Timeline, error) {
	f.called("Timeline", acc, req)
	return memory.Timeline{Position: "p0.1.9.0"}, f.reading(ctx)
}

// bench is the surface on the embedded server, with the public's permissions
// for the agent.
type bench struct {
	f     *fake
	s     *Server
	node  *nats.Conn
	agent *nats.Conn
	log   *lockedLog
}

type lockedLog struct {
	mu sync.Mutex
	sb strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sb.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sb.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	srv, err := eventlog.StartServer(ctx, eventlog.ServerOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(t, err)
	t.Cleanup(func() { must(t, srv.Shutdown(context.Background())) })
	b := &bench{f: &fake{arrived: make(chan memory.Rejected, 16)}, log: &lockedLog{}}
	b.node, err = srv.NodeConn(ctx)
	must(t, err)
	t.Cleanup(b.node.Close)
	opt := Options{Conn: b.node, Writer: b.f, Reader: b.f, Rejecter: b.f, Version: "v1.2.3", Logger: slog.New(slog.NewTextHandler(b.log, nil))}
	if change != nil {
		change(&opt)
	}
	b.s, err = Start(opt)
	must(t, err)
	t.Cleanup(func() { must(t, b.s.Close(context.Background())) })
	b.agent, err = nats.Connect(srv.ClientURL())
	must(t, err)
	t.Cleanup(b.agent.Close)
	return b
}

// ask publishes a message and returns the answer.
func (b *bench) ask(t *testing.T, subject, body string, headers ...string) *nats.Msg {
	t.Helper()
	m := &nats.Msg{Subject: subject, Data: []byte(body)}
	for i := 0; i+1 < len(headers); i += 2 {
		if m.Header == nil {
			m.Header = nats.Header{}
		}
		m.Header[headers[i]] = append(m.Header[headers[i]], headers[i+1])
	}
	answer, err := b.agent.RequestMsg(m, patience)
	must(t, err)
	return answer
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	panic("not reached")
}
