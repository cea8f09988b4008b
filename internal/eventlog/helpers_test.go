package eventlog_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logTo logs to the test while it runs; it shows only on failure. A connection's callbacks come on a
// goroutine of its library, which nobody can wait for: what comes late is
// dropped.
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

func startServer(t testing.TB, opt eventlog.ServerOptions) *eventlog.Server {
	t.Helper()
	if opt.Addr == "" {
		opt.Addr = "127.0.0.1:0"
	}
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	opt.Logger = logTo(t)
	s, err := eventlog.StartServer(testContext(t), opt)
	must(t, err)
	t.Cleanup(func() { must(t, s.Shutdown(context.Background())) })
	return s
}

func openStream(t testing.TB, s *eventlog.Server, cfg eventlog.StreamConfig) *eventlog.JetStream {
	t.Helper()
	nc, err := s.NodeConn(testContext(t))
	must(t, err)
	st, err := eventlog.OpenStream(testContext(t), nc, cfg)
	must(t, err)
	return st
}
