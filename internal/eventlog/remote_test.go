package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mneme/internal/eventlog"
)

// external starts a plain nats-server with a system account, as a team runs it.
func external(t *testing.T, sync bool) *server.Server {
	t.Helper()
	return externalAt(t, sync, t.TempDir(), server.RANDOM_PORT)
}

func externalAt(t *testing.T, sync bool, dir string, port int) *server.Server {
	t.Helper()
	sys, app := server.NewAccount("SYS"), server.NewAccount("APP")
	s, err := server.NewServer(&server.Options{
		ServerName: "external", Host: "127.0.0.1", Port: port, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		JetStream: true, StoreDir: dir, SyncAlways: sync, NoSigs: true, NoLog: true,
		Accounts: []*server.Account{sys, app}, SystemAccount: "SYS",
		Users: []*server.User{{Username: "sys", Password: "s", Account: sys}, {Username: "app", Password: "a", Account: app}},
	})
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("external server is not ready")
	}
	account, err := s.LookupAccount("APP")
	must(t, err)
	must(t, account.EnableJetStream(nil, nil))
	return s
}

func TestOpenExternal(t *testing.T) {
	lazy, eager := external(t, false), external(t, true)
	app := []nats.Option{nats.UserInfo("app", "a")}
	sys := []nats.Option{nats.UserInfo("sys", "s")}
	monitor := func(s *server.Server) []string { return []string{"http://" + s.MonitorAddr().String() + "/"} }
	for _, c := range []struct {
		name string
		opt  eventlog.RemoteOptions
		is   error
	}{
		{"system account", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app, System: sys}, nil},
		{"monitor", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app, MonitorURLs: monitor(eager)}, nil},
		{"no way to ask", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app}, eventlog.ErrNoSyncProof},
		{"nobody to ask", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app}, eventlog.ErrNobodyToAsk},
		{"lazy, by system account", eventlog.RemoteOptions{URL: lazy.ClientURL(), Options: app, System: sys}, eventlog.ErrNoSyncProof},
		{"lazy, by monitor", eventlog.RemoteOptions{URL: lazy.ClientURL(), Options: app, MonitorURLs: monitor(lazy)}, eventlog.ErrNoSyncProof},
		{"one of two lazy", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app, MonitorURLs: append(monitor(lazy), monitor(eager)...)}, eventlog.ErrNoSyncProof},
		{"not permitted", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app, System: app}, eventlog.ErrNoSyncProof},
		{"wrong system password", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app, System: []nats.Option{nats.UserInfo("sys", "bad")}}, eventlog.ErrNoSyncProof},
		{"no monitor there", eventlog.RemoteOptions{URL: eager.ClientURL(), Options: app, MonitorURLs: []string{eager.ClientURL()}}, eventlog.ErrNoSyncProof},
		{"wrong password", eventlog.RemoteOptions{URL: eager.ClientURL(), System: sys}, eventlog.ErrUnreachable},
		{"nobody there", eventlog.RemoteOptions{URL: "nats://127.0.0.1:1"}, eventlog.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Logger = logTo(t)
			r, err := eventlog.OpenExternal(testContext(t), c.opt)
			if c.is != nil {
				if !errors.Is(err, c.is) {
					t.Fatal(err)
				}
				return
			}
			must(t, err)
			defer r.Close()
			if !r.SyncAlways() || len(r.Servers()) != 1 || r.Servers()[0] != "external" {
				t.Errorf("proof about %v", r.Servers())
			}
			st, err := eventlog.OpenStream(testContext(t), r.Conn(), eventlog.StreamConfig{})
			must(t, err)
			if i, err := st.Info(testContext(t)); err != nil || i.Last == 0 {
				write(t, st, 3)
			}
		})
	}
	r, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: lazy.ClientURL(), Options: app, Dev: true})
	must(t, err)
	defer r.Close()
	if r.SyncAlways() {
		t.Error("claims a proof")
	}
	// While the server is away publishes fail at once and are not sent later.
	st, err := eventlog.OpenStream(testContext(t), r.Conn(), eventlog.StreamConfig{AckTimeout: 30 * time.Second})
	must(t, err)
	lazy.Shutdown()
	lazy.WaitForShutdown()
	for start := time.Now(); r.Conn().IsConnected() && time.Since(start) < 10*time.Second; {
		_ = r.Conn().FlushTimeout(50 * time.Millisecond)
	}
	if err := st.Append(testContext(t), []byte("x"), 0); !errors.Is(err, eventlog.ErrRefused) {
		t.Errorf("append without a server: %v", err)
	}
}

// TestProofIsTakenAtEveryReconnect: a server that came back without
// sync_interval: always was trusted because the one before it synced.
func TestProofIsTakenAtEveryReconnect(t *testing.T) {
	dir := t.TempDir()
	s := externalAt(t, true, dir, server.RANDOM_PORT)
	port := s.Addr().(*net.TCPAddr).Port
	r, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: s.ClientURL(), Logger: logTo(t),
		Options: []nats.Option{nats.UserInfo("app", "a")}, System: []nats.Option{nats.UserInfo("sys", "s")}})
	must(t, err)
	defer r.Close()
	st, err := eventlog.OpenStream(testContext(t), r.Conn(), eventlog.StreamConfig{Guard: r.Vouch})
	must(t, err)
	must(t, st.Append(testContext(t), []byte("one"), 0))
	restart := func(sync bool) {
		reconnects := r.Conn().Stats().Reconnects
		s.Shutdown()
		s.WaitForShutdown()
		s = externalAt(t, sync, dir, port)
		wait(t, "the reconnect", func() bool { return r.Conn().Stats().Reconnects > reconnects && r.Conn().IsConnected() })
	}
	restart(false)
	for range 3 {
		if err := st.Append(testContext(t), []byte("two"), 1); !errors.Is(err, eventlog.ErrRefused) || !errors.Is(err, eventlog.ErrNoSyncProof) {
			t.Fatalf("append to a server that does not sync: %v", err)
		}
	}
	if _, err := st.Info(testContext(t)); !errors.Is(err, eventlog.ErrNoSyncProof) || r.SyncAlways() {
		t.Errorf("what is found there counts as stored: %v", err)
	}
	if err := r.Prove(testContext(t)); !errors.Is(err, eventlog.ErrNoSyncProof) {
		t.Errorf("proof: %v", err)
	}
	restart(true)
	wait(t, "the proof", r.SyncAlways)
	must(t, st.Append(testContext(t), []byte("two"), 1))
}

// TestPasswordOfTheNodeWasPrinted: the whole URL of an external NATS stood in the
// error of a start that could not reach it, or got no proof from it.
func TestPasswordOfTheNodeWasPrinted(t *testing.T) {
	lazy := external(t, false)
	addr := lazy.Addr().String()
	for _, opt := range []eventlog.RemoteOptions{
		{URL: "nats://mneme-node:hush@127.0.0.1:1"},
		{URL: "mneme-node:hush@127.0.0.1:1"},
		{URL: "nats://mneme-node:hush@127.0.0.1:1,nats://mneme-node:hush@127.0.0.1:2"},
		{URL: "nats://mneme-node:hush/hush@127.0.0.1:1"},
		{URL: "nats://mneme-node:hush?a#hush@hush@127.0.0.1:1"},
		{URL: "nats://mneme-node:%zzhush@127.0.0.1:1"},
		{URL: "nats://app:hush@" + addr},
		{URL: "nats://app:a@" + addr},
		{URL: "nats://app:a@" + addr, MonitorURLs: []string{"http://u:hush@127.0.0.1:1"}},
		{URL: "nats://app:a@" + addr, MonitorURLs: []string{"http://u:%zzhush@127.0.0.1:1"}},
		{URL: "nats://app:a@" + addr, MonitorURLs: []string{"http://u:hush@" + lazy.MonitorAddr().String() + "/nowhere"}},
	} {
		var printed bytes.Buffer
		opt.Logger = slog.New(slog.NewTextHandler(&printed, nil))
		_, err := eventlog.OpenExternal(testContext(t), opt)
		if err == nil {
			t.Errorf("%s: opened", opt.URL)
			continue
		}
		fmt.Fprint(&printed, err)
		if s := printed.String(); strings.Contains(s, "hush") || strings.Contains(s, "app:a@") {
			t.Errorf("%s %s: %s", opt.URL, opt.MonitorURLs, s)
		}
		if !strings.Contains(err.Error(), "[redacted]@127.0.0.1:") {
			t.Errorf("%s: the error does not say where: %v", opt.URL, err)
		}
	}
}

func wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	ctx := testContext(t)
	for !cond() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
