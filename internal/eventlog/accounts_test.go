package eventlog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/eventlog"
)

// responder answers captures in the node's account and tells who published.
func responder(t *testing.T, node *nats.Conn) <-chan *nats.Msg {
	t.Helper()
	heard := make(chan *nats.Msg, 64)
	_, err := node.Subscribe("as.*.mem.in.>", func(m *nats.Msg) {
		heard <- m
		_ = m.Respond([]byte(`{"stream":"mem","seq":1}`))
	})
	must(t, err)
	must(t, node.Flush())
	return heard
}

// hear is the next message that a responder got.
func hear(t *testing.T, heard <-chan *nats.Msg) *nats.Msg {
	t.Helper()
	select {
	case m := <-heard:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("the responder heard nothing")
	}
	panic("not reached")
}

// foreignReplies are reply subjects by which a caller would make a responder
// publish where the caller itself may not.
var foreignReplies = []string{"mem.log.0", "$JS.API.STREAM.PURGE.mneme-0", "$JS.API.STREAM.DELETE.mneme-0", "mem.feed.team-a.team.captured",
	"mem.in.team-a.victim.capture", "as.public.mem.in.team-a.victim.capture", "_MNEME.x", "$SYS.REQ.SERVER.PING", "_INBOX.someone.else",
	"mem.in.*.victim.capture", "mem.log.*", ">"}

// TestReplySubjectWroteIntoTheLog: a responder in the node's account answers
// through the server, whatever reply subject a caller asked for, so the log gets
// nothing, no agent is spoken for, and no feed is forged. (Callers that share an
// account can still make an answer arrive where another of them listens.)
func TestReplySubjectWroteIntoTheLog(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{})
	k := write(t, st, 3)
	node, err := s.NodeConn(testContext(t))
	must(t, err)
	heard := responder(t, node)
	nc, _ := publicClient(t, s)
	feed, err := node.SubscribeSync("mem.feed.>")
	must(t, err)
	for _, reply := range foreignReplies {
		for _, subject := range []string{"mem.in.team-a.evil.capture", "$SRV.PING"} {
			must(t, nc.PublishRequest(subject, reply, []byte("x")))
		}
		m := hear(t, heard)
		if m.Subject != "as.public.mem.in.team-a.evil.capture" {
			t.Errorf("reply %s: the responder heard %s", reply, m.Subject)
		}
		if !strings.HasPrefix(m.Reply, "_R_.") {
			t.Errorf("reply %s reached the responder as %s", reply, m.Reply)
		}
	}
	must(t, nc.Flush())
	must(t, node.Flush())
	select {
	case m := <-heard:
		t.Errorf("the answer became a capture of somebody else: %s", m.Subject)
	case <-time.After(100 * time.Millisecond):
	}
	if m, err := feed.NextMsg(50 * time.Millisecond); err == nil {
		t.Errorf("a feed message was forged in the node's account, from where all callers import it: %s", m.Data)
	}
	must(t, eventlog.Check(testContext(t), st, k.expect(identityOf(t, st))))
	if i, err := st.Info(testContext(t)); err != nil || i.Last != 3 {
		t.Errorf("the log changed: %+v %v", i, err)
	}
}

// TestFloodOfForeignRepliesStoppedTheLog: 20,000 of them, and every append in
// between still succeeds at the predicted sequence.
func TestFloodOfForeignRepliesStoppedTheLog(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	st := openStream(t, s, eventlog.StreamConfig{})
	node, err := s.NodeConn(testContext(t))
	must(t, err)
	_, err = node.Subscribe("as.*.mem.in.>", func(m *nats.Msg) { _ = m.Respond([]byte("junk")) })
	must(t, err)
	must(t, node.Flush())
	nc, _ := publicClient(t, s)
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; n < 20_000; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			_ = nc.PublishRequest("mem.in.team-a.evil.capture", foreignReplies[n%len(foreignReplies)], []byte("x"))
		}
		_ = nc.Flush()
		done <- n
	}()
	k := newKnown(eventlog.Tail{})
	for i := range 50 {
		if err := k.append(t, st, capture(byte(i), 7)); err != nil {
			t.Errorf("append %d during the flood: %v", i, err)
			break
		}
	}
	close(stop)
	if n := <-done; n < 100 {
		t.Errorf("only %d messages: that was no flood", n)
	}
	if i, err := st.Info(testContext(t)); err != nil || i.Last != 50 {
		t.Errorf("the log has %d messages, %v, want 50", i.Last, err)
	}
}

// TestCallerForgedAnswers: callers share an account, and so see each other's
// inboxes and can have the node's answers sent there (docs/nats.md says so), but
// none can write an answer of its own.
func TestCallerForgedAnswers(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	bystander, denied := publicClient(t, s)
	for _, subject := range []string{"_INBOX.victim.1", "_R_.a.b"} {
		must(t, bystander.Publish(subject, []byte("forged")))
		must(t, bystander.Flush())
		expectDenied(t, denied, "publishing to "+subject)
	}
	_, err := bystander.Subscribe("mem.in.>", func(m *nats.Msg) { _ = m.Respond([]byte("forged")) })
	must(t, err)
	must(t, bystander.Flush())
	expectDenied(t, denied, "answering captures")
}

// TestClientsOfBothAPIsGetTheirAck: core request, the old and the new JetStream
// API, and a plain publish go through the import.
func TestClientsOfBothAPIsGetTheirAck(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	node, err := s.NodeConn(testContext(t))
	must(t, err)
	heard := responder(t, node)
	nc, _ := publicClient(t, s)
	const subject = "mem.in.team-a.agent-7.capture"
	_, err = nc.RequestWithContext(testContext(t), subject, []byte("core"))
	must(t, err)
	old, err := nc.JetStream()
	must(t, err)
	if ack, err := old.Publish(subject, []byte("old")); err != nil || ack.Stream != "mem" {
		t.Errorf("old API: %+v %v", ack, err)
	}
	fresh, err := jetstream.New(nc)
	must(t, err)
	if ack, err := fresh.Publish(testContext(t), subject, []byte("new")); err != nil || ack.Stream != "mem" {
		t.Errorf("new API: %+v %v", ack, err)
	}
	future, err := fresh.PublishAsync(subject, []byte("async"))
	must(t, err)
	select {
	case ack := <-future.Ok():
		if ack.Stream != "mem" {
			t.Errorf("async: %+v", ack)
		}
	case err := <-future.Err():
		t.Errorf("async: %v", err)
	}
	must(t, nc.Publish(subject, []byte("plain")))
	for _, want := range []string{"core", "old", "new", "async", "plain"} {
		if m := hear(t, heard); string(m.Data) != want {
			t.Errorf("heard %q, want %q", m.Data, want)
		}
	}
}

// TestExternalConfigGivesTheSameWall: the printed configuration starts a server
// on which the log can be opened and proven, agents reach the services, and
// neither reply subjects nor direct publishes reach the log.
func TestExternalConfigGivesTheSameWall(t *testing.T) {
	dir := t.TempDir()
	text := strings.NewReplacer("$MNEME_NATS_NODE_PASSWORD", "n", "$MNEME_NATS_AGENTS_PASSWORD", "a", "$MNEME_NATS_SYSTEM_PASSWORD", "s",
		"127.0.0.1:4222", "127.0.0.1:-1", "127.0.0.1:8222", "127.0.0.1:-1", "/var/lib/nats", dir).Replace(eventlog.ExternalConfig(eventlog.ExternalServer{}))
	path := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	o, err := server.ProcessConfigFile(path)
	must(t, err)
	o.NoLog, o.NoSigs = true, true
	ns, err := server.NewServer(o)
	must(t, err)
	go ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	r, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: ns.ClientURL(), Logger: logTo(t),
		Options: []nats.Option{nats.UserInfo("mneme-node", "n")}, System: []nats.Option{nats.UserInfo("mneme-system", "s")}})
	must(t, err)
	defer r.Close()
	if r.Account() != "NODE" || !r.SyncAlways() {
		t.Errorf("account %q, syncs %v", r.Account(), r.SyncAlways())
	}
	st, err := eventlog.OpenStream(testContext(t), r.Conn(), eventlog.StreamConfig{})
	must(t, err)
	write(t, st, 3)
	heard := responder(t, r.Conn())
	agent, err := nats.Connect(ns.ClientURL(), nats.UserInfo("mneme-agents", "a"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	must(t, err)
	defer agent.Close()
	if _, err := agent.RequestWithContext(testContext(t), "mem.in.team-a.agent-7.capture", []byte("x")); err != nil {
		t.Error(err)
	}
	if m := hear(t, heard); m.Subject != "as.public.mem.in.team-a.agent-7.capture" {
		t.Errorf("heard on %s", m.Subject)
	}
	for _, reply := range foreignReplies {
		must(t, agent.PublishRequest("mem.in.team-a.evil.capture", reply, []byte("x")))
		hear(t, heard)
	}
	_ = agent.Publish("mem.log.0", []byte("x"))
	must(t, agent.Flush())
	must(t, r.Conn().Flush())
	if i, err := st.Info(testContext(t)); err != nil || i.Last != 3 {
		t.Errorf("the log changed: %+v %v", i, err)
	}
}
