package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/eventlog"
)

func TestServerSaysWhatItIs(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	if !s.SyncAlways() {
		t.Error("does not sync always")
	}
	if host, port, err := net.SplitHostPort(s.Addr()); err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("address %q", s.Addr())
	}
	if s.ClientURL() != "nats://"+s.Addr() {
		t.Errorf("url %q", s.ClientURL())
	}
	if s.WriteFault() != nil {
		t.Error(s.WriteFault())
	}
}

func TestServerRefusesToStart(t *testing.T) {
	taken := startServer(t, eventlog.ServerOptions{}).Addr()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	for _, c := range []struct {
		name, dir, addr string
		is              error
	}{
		{"address taken", t.TempDir(), taken, eventlog.ErrAddressTaken},
		{"no port", t.TempDir(), "127.0.0.1", nil},
		{"bad port", t.TempDir(), "127.0.0.1:99999", nil},
		{"not our address", t.TempDir(), "192.0.2.1:0", nil},
		{"no directory", "", "127.0.0.1:0", nil},
		{"directory is a file", file, "127.0.0.1:0", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: c.dir, Addr: c.addr, Logger: logTo(t)})
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Fatal(err)
			}
			t.Log(err)
			var a *eventlog.AddressError
			if errors.As(err, &a) && a.Addr != c.addr {
				t.Errorf("names address %q", a.Addr)
			}
		})
	}
}

func TestServerCancelledStart(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := eventlog.StartServer(ctx, eventlog.ServerOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// publicClient connects as anybody does, and collects permission errors.
func publicClient(t *testing.T, s *eventlog.Server, opts ...nats.Option) (*nats.Conn, chan error) {
	t.Helper()
	denied := make(chan error, 16)
	nc, err := nats.Connect(s.ClientURL(), append(opts, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		denied <- err
	}))...)
	must(t, err)
	t.Cleanup(nc.Close)
	return nc, denied
}

func expectDenied(t *testing.T, denied chan error, what string) {
	t.Helper()
	select {
	case err := <-denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s was not refused", what)
	}
}

// TestPublicCannotReachTheLog: whoever is not the node may neither write nor
// read the log, nor see the system, nor the node's answers.
func TestPublicCannotReachTheLog(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{})
	k := write(t, st, 3)
	nc, denied := publicClient(t, s)
	for _, subject := range []string{
		"mem.log.0", "mem.log.1", "mem.feed.team-a.team.captured", "other",
		"$JS.API.INFO", "$JS.API.STREAM.INFO.mneme-0", "$JS.API.STREAM.PURGE.mneme-0", "$JS.API.STREAM.DELETE.mneme-0",
		"$JS.API.STREAM.MSG.DELETE.mneme-0", "$JS.API.STREAM.UPDATE.mneme-0", "$JS.API.DIRECT.GET.mneme-0",
		"$JS.API.CONSUMER.CREATE.mneme-0", "$JS.ACK.mneme-0.x", "$SYS.REQ.SERVER.PING", "_MNEME.x.y",
		"as.public.mem.in.team-a.agent-7.capture", "as.other.mem.in.team-a.agent-7.capture", "_INBOX.x", "_R_.x.y",
	} {
		must(t, nc.PublishRequest(subject, "_INBOX.x", []byte("{}")))
		must(t, nc.Flush())
		expectDenied(t, denied, "publishing to "+subject)
	}
	for _, subject := range []string{">", "mem.>", "mem.log.>", "mem.in.>", "mem.api.>", "$JS.>", "$SYS.>", "_MNEME.>", "$SRV.>", "*.>", "as.>", "_R_.>"} {
		_, err := nc.SubscribeSync(subject)
		must(t, err)
		must(t, nc.Flush())
		expectDenied(t, denied, "subscribing to "+subject)
	}
	js, err := jetstream.New(nc)
	must(t, err)
	ctx, cancel := context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	if err := js.DeleteStream(ctx, "mneme-0"); err == nil {
		t.Error("deleted the stream")
	}
	must(t, eventlog.Check(testContext(t), st, k.expect(identityOf(t, st))))
	if i, err := st.Info(testContext(t)); err != nil || i.Last != 3 {
		t.Errorf("the log changed: %+v %v", i, err)
	}
}

// TestPublicMayTalk: captures, questions and answers go through.
func TestPublicMayTalk(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	node, err := s.NodeConn(testContext(t))
	must(t, err)
	for _, subject := range []string{"as.public.mem.in.>", "as.public.mem.api.>", "$SRV.>"} {
		_, err := node.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte("answer")) })
		must(t, err)
	}
	must(t, node.Flush())
	nc, denied := publicClient(t, s)
	for _, subject := range []string{"mem.in.team-a.agent-7.capture", "mem.api.team-a.search", "$SRV.PING"} {
		var m *nats.Msg
		for range 10 { // an answer of discovery that comes late is dropped
			if m, err = nc.Request(subject, bytes.Repeat([]byte("x"), 1<<20+1<<19), 5*time.Second); err == nil {
				break
			}
		}
		must(t, err)
		if string(m.Data) != "answer" {
			t.Errorf("%s: %q", subject, m.Data)
		}
	}
	feed, err := nc.SubscribeSync("mem.feed.team-a.team.>")
	must(t, err)
	must(t, nc.Flush())
	must(t, node.Publish("mem.feed.team-a.team.captured", []byte("news")))
	m, err := feed.NextMsgWithContext(testContext(t))
	must(t, err)
	if string(m.Data) != "news" || len(denied) != 0 {
		t.Errorf("feed %q, %d refusals", m.Data, len(denied))
	}
}

func TestToken(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{Auth: func(_, password, token string) bool { return token == "secret" || password == "secret" }})
	for _, c := range []struct {
		name string
		opt  nats.Option
		ok   bool
	}{
		{"token", nats.Token("secret"), true},
		{"password", nats.UserInfo("anyone", "secret"), true},
		{"wrong token", nats.Token("other"), false},
		{"user alone", nats.UserInfo("secret", ""), false},
		{"nothing", nats.Name("x"), false},
		{"the node's name", nats.UserInfo("mneme-node", "secret"), false},
	} {
		nc, err := nats.Connect(s.ClientURL(), c.opt)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", c.name, err)
		}
		if nc != nil {
			nc.Close()
		}
	}
	openStream(t, s, eventlog.StreamConfig{})
}

// TestRestartKeepsEverything: what was acknowledged is there after a restart,
// under the same identity.
func TestRestartKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	var k *known
	var id string
	for round := range 3 {
		s := startServer(t, eventlog.ServerOptions{Dir: dir})
		st := openStream(t, s, eventlog.StreamConfig{MustExist: round > 0, ClusterID: "c"})
		if round == 0 {
			k, id = write(t, st, 50), identityOf(t, st)
		}
		must(t, eventlog.Check(testContext(t), st, k.expect(id)))
		r, err := eventlog.Scrub(testContext(t), st, k.tails[0], k.hashes, nil)
		must(t, err)
		if r.Tail != k.last() || r.ProblemCount != 0 {
			t.Errorf("round %d: %+v", round, r)
		}
		must(t, k.append(t, st, capture(byte(round), 7)))
		must(t, s.Shutdown(testContext(t)))
		if _, err := s.NodeConn(testContext(t)); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("connecting after shutdown: %v", err)
		}
		if err := st.Append(testContext(t), []byte("x"), k.last().Seq); !errors.Is(err, eventlog.ErrUnknown) {
			t.Errorf("append after shutdown: %v", err)
		}
	}
}

func TestOpenStreamConfig(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	nc, err := s.NodeConn(testContext(t))
	must(t, err)
	gone, err := eventlog.OpenStream(testContext(t), nc, eventlog.StreamConfig{MustExist: true})
	must(t, err)
	if info, err := gone.Info(testContext(t)); err != nil || info.Identity != "" || info.Last != 0 || info.First != 1 {
		t.Errorf("a stream that is not there says %+v, %v", info, err)
	}
	if err := gone.Append(testContext(t), []byte("x"), 0); !errors.Is(err, eventlog.ErrRefused) {
		t.Errorf("append to a stream that is not there: %v", err)
	}
	openStream(t, s, eventlog.StreamConfig{ClusterID: "a"})
	openStream(t, s, eventlog.StreamConfig{ClusterID: "a", MaxBytes: 1 << 20})
	var c *eventlog.ConfigError
	if _, err := eventlog.OpenStream(testContext(t), nc, eventlog.StreamConfig{ClusterID: "b"}); !errors.As(err, &c) || len(c.Differences) != 1 {
		t.Errorf("opening another cluster's stream: %v", err)
	}
	if _, err := eventlog.OpenStream(testContext(t), nc, eventlog.StreamConfig{ClusterID: "a", Replicas: 3}); !errors.As(err, &c) {
		t.Errorf("opening a stream with fewer replicas: %v", err)
	}
	openStream(t, s, eventlog.StreamConfig{ClusterID: "a", Replicas: 3, AnyReplicas: true, MaxBytes: 1 << 20})
	js, err := jetstream.New(nc)
	must(t, err)
	st, err := js.Stream(testContext(t), "mneme-0")
	must(t, err)
	if cfg := st.CachedInfo().Config; cfg.MaxBytes != 1<<20 || !cfg.DenyPurge || !cfg.DenyDelete {
		t.Errorf("config %+v", cfg)
	}
	if st.Purge(testContext(t)) == nil || st.DeleteMsg(testContext(t), 1) == nil {
		t.Error("even the node can purge")
	}
	_, err = js.CreateStream(testContext(t), jetstream.StreamConfig{
		Name: "mneme-1", Subjects: []string{"mem.log.1", "mem.log.x"}, Storage: jetstream.MemoryStorage, MaxAge: time.Hour, AllowRollup: true,
	})
	must(t, err)
	_, err = eventlog.OpenStream(testContext(t), nc, eventlog.StreamConfig{Shard: 1})
	if !errors.As(err, &c) {
		t.Fatal(err)
	}
	for _, field := range []string{"subjects", "storage", "discard", "max_age", "deny_delete", "deny_purge", "allow_direct", "allow_rollup"} {
		if !strings.Contains(c.Error(), field+" is") && !strings.Contains(c.Error(), field+"_hdrs is") {
			t.Errorf("%s is not mentioned: %v", field, c)
		}
	}
}

func TestFullStream(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{MaxBytes: 20_000})
	var err error
	n := uint64(0) // stored
	for ; n < 100; n++ {
		if err = st.Append(testContext(t), make([]byte, 1000), n); err != nil {
			break
		}
	}
	if !errors.Is(err, eventlog.ErrNoSpace) || errors.Is(err, eventlog.ErrUnknown) {
		t.Fatalf("after %d: %v", n, err)
	}
	// More room, and the log goes on where it stood.
	openStream(t, s, eventlog.StreamConfig{MaxBytes: 1 << 20})
	must(t, st.Append(testContext(t), make([]byte, 1000), n))
	if err := st.Append(testContext(t), make([]byte, 3<<20), n+1); !errors.Is(err, eventlog.ErrRefused) {
		t.Fatalf("oversized: %v", err)
	}
}

// TestStreamVanishes: the stream is deleted under its writer.
func TestStreamVanishes(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{})
	k := write(t, st, 3)
	id := identityOf(t, st)
	nc, err := s.NodeConn(testContext(t))
	must(t, err)
	js, err := jetstream.New(nc)
	must(t, err)
	must(t, js.DeleteStream(testContext(t), "mneme-0"))
	if err := k.append(t, st, capture(1, 1)); !errors.Is(err, eventlog.ErrRefused) {
		t.Errorf("append: %v", err)
	}
	if err := st.Read(testContext(t), 1, 3, func(eventlog.Message) error { return nil }); err == nil {
		t.Error("read went through")
	}
	if got := kindOf(t, eventlog.Check(testContext(t), st, k.expect(id))); got != eventlog.KindIdentity {
		t.Errorf("check found %q", got)
	}
}

// TestSealedStreamTakesNothing: somebody who does not know of a repair must not
// write into the stream that it replaces.
func TestSealedStreamTakesNothing(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{})
	k := write(t, st, 3)
	must(t, st.Seal(testContext(t)))
	must(t, st.Seal(testContext(t)))
	if err := st.Append(testContext(t), []byte("late"), 3); err == nil {
		t.Error("a sealed stream took a message")
	}
	again := openStream(t, s, eventlog.StreamConfig{MustExist: true})
	must(t, eventlog.Check(testContext(t), again, k.expect(identityOf(t, st))))
}

// TestSlowAck: an ack that does not come in time is an unknown outcome, and the
// message may stand in the log.
func TestSlowAck(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{AckTimeout: time.Nanosecond, Fault: s.WriteFault})
	unknown := 0
	for i := range 20 {
		info, err := st.Info(testContext(t))
		must(t, err)
		switch err := st.Append(testContext(t), fmt.Appendf(nil, "event %d", i), info.Last); {
		case errors.Is(err, eventlog.ErrUnknown):
			unknown++
		case err != nil && !errors.Is(err, eventlog.ErrRefused): // a late message came first
			t.Fatal(err)
		}
	}
	if unknown == 0 {
		t.Error("every ack came within a nanosecond")
	}
}
