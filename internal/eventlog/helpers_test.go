package eventlog_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/eventlog"
	"mneme/internal/events"
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

// logTo sends a server's log to the test, where it shows only on failure.
func logTo(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
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

// next is the tail after a message.
func next(at eventlog.Tail, m eventlog.Message) eventlog.Tail {
	at.Seq, at.Chain = m.Seq, events.NextChain(at.Chain, m.Seq, m.Data)
	return at
}
