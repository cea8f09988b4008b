package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/node"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode is an instance that does what a test says.
type fakeNode struct {
	http, nats string
	done       chan struct{}
	why        error
	close      func(context.Context) error
	reload     func()
}

func (f *fakeNode) HTTPURL() string       { return f.http }
func (f *fakeNode) NATSURL() string       { return f.nats }
func (f *fakeNode) Done() <-chan struct{} { return f.done }
func (f *fakeNode) Err() error            { return f.why }
func (f *fakeNode) Reload(context.Context) (memory.ReloadReport, error) {
	if f.reload != nil {
		f.reload()
	}
	return memory.ReloadReport{}, nil
}
func (f *fakeNode) Close(ctx context.Context) error {
	if f.close != nil {
		return f.close(ctx)
	}
	return nil
}

func newFake() *fakeNode {
	return &fakeNode{http: "http://" + node.DefaultHTTPAddr, nats: "nats://127.0.0.1:4222", done: make(chan struct{})}
}

// world is a system whose parts a test looks at.
type world struct {
	system
	out, err *lockedBuffer
	dir      string
	signals  chan os.Signal
	hangups  chan os.Signal
	cfg      node.Config // what the node was opened with
	opens    int
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu     sync.Mutex
	b      bytes.Buffer
	writes chan struct{} // gets one for each write
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.writes <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T, open func(context.Context, node.Config) (instance, error)) *world {
	t.Helper()
	w := &world{
		dir:     t.TempDir(),
		out:     &lockedBuffer{writes: make(chan struct{}, 100)},
		err:     &lockedBuffer{writes: make(chan struct{}, 100)},
		signals: make(chan os.Signal, 2),
		hangups: make(chan os.Signal, 1),
	}
	w.system = system{
		out: w.out, err: w.err,
		home:    func() (string, error) { return w.dir, nil },
		program: "memnode", memctl: "memctl",
		signals: w.signals,
		hangups: w.hangups,
		now:     secondAfterSecond(),
		isFree:  func(string) bool { return true },
		version: memory.VersionInfo{Version: "v1.2.3", Commit: "0123456789abcdef", Go: "go1.26", OS: "linux", Arch: "amd64"},
	}
	w.system.open = func(ctx context.Context, cfg node.Config) (instance, error) {
		w.cfg = cfg
		w.opens++
		return open(ctx, cfg)
	}
	return w
}

// secondAfterSecond is a clock on which a second passes between two looks.
func secondAfterSecond() func() time.Time {
	var t time.Time
	return func() time.Time {
		t = t.Add(time.Second)
		return t
	}
}

// fails makes a world whose node does not start.
func fails(t *testing.T, err error) *world {
	return newWorld(t, func(context.Context, node.Config) (instance, error) { return nil, err })
}

// stopsWhenReady makes a world whose node starts and gets a signal at once.
func stopsWhenReady(t *testing.T, n *fakeNode) *world {
	var w *world
	w = newWorld(t, func(context.Context, node.Config) (instance, error) { return n, nil })
	w.system.out = writerFunc(func(p []byte) (int, error) {
		w.signals <- syscall.SIGTERM
		return w.out.Write(p)
	})
	return w
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (w *world) run(args ...string) int { return run(context.Background(), w.system, args) }

// file writes a file below the world's directory.
func (w *world) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantHas(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, got)
		}
	}
}
