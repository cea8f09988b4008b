package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
)

// servers is a cluster of embedded servers in this process.
type servers struct {
	names   []string
	dirs    []string
	clients []string
	routes  []string
	certs   []*peer.Certificates
	up      []*eventlog.Server
}

func newServers(t *testing.T, n int) *servers {
	t.Helper()
	s := &servers{up: make([]*eventlog.Server, n)}
	dir := t.TempDir()
	for i := range n {
		s.names = append(s.names, fmt.Sprintf("n%d", i+1))
		s.dirs = append(s.dirs, t.TempDir())
	}
	_, err := devca.Make(devca.Options{Dir: dir, Nodes: s.names, Valid: time.Hour})
	must(t, err)
	for _, name := range s.names {
		c, err := peer.OpenCertificates(dir, name, nil)
		must(t, err)
		s.certs = append(s.certs, c)
	}
	s.clients, s.routes = testaddr.Reserve(t, n), testaddr.Reserve(t, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { s.start(t, i) })
	}
	wg.Wait()
	t.Cleanup(func() {
		for i := range s.up {
			s.stop(t, i)
		}
	})
	return s
}

func TestTakenRouteAddressIsTheOneThatIsNamed(t *testing.T) {
	certs, route := t.TempDir(), testaddr.Reserve(t, 1)[0]
	l, err := net.Listen("tcp", route)
	must(t, err)
	defer l.Close()
	_, err = devca.Make(devca.Options{Dir: certs, Nodes: []string{"n1"}, Valid: time.Hour})
	must(t, err)
	c, err := peer.OpenCertificates(certs, "n1", nil)
	must(t, err)
	_, err = eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0", Name: "n1", Logger: logTo(t),
		Cluster: &eventlog.ClusterOptions{Name: "test", Addr: route, Peers: []string{route}, TLS: c.Both()}})
	var taken *eventlog.AddressError
	if !errors.As(err, &taken) || taken.Addr != route {
		t.Errorf("%v", err)
	}
}

func (s *servers) start(t *testing.T, i int) {
	srv, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: s.dirs[i], Addr: s.clients[i], Name: s.names[i], Logger: logTo(t),
		Cluster: &eventlog.ClusterOptions{Name: "test", Addr: s.routes[i], Peers: s.routes, TLS: s.certs[i].Both()}})
	if err != nil {
		t.Errorf("start %s: %v", s.names[i], err)
		return
	}
	s.up[i] = srv
}

func (s *servers) stop(t *testing.T, i int) {
	t.Helper()
	if s.up[i] == nil {
		return
	}
	must(t, s.up[i].Shutdown(context.Background()))
	s.up[i] = nil
}

// stream opens the log on server i.
func (s *servers) stream(t *testing.T, i int) *eventlog.JetStream {
	t.Helper()
	return openStream(t, s.up[i], eventlog.StreamConfig{ClusterID: "c", Replicas: len(s.up), AckTimeout: time.Second,
		Ref: events.StreamRef{Epoch: 1, Identity: "first"}})
}

// info waits until the stream has a leader, as seen by a server.
func info(t *testing.T, st *eventlog.JetStream) eventlog.Info {
	t.Helper()
	for ctx := testContext(t); ; {
		in, err := st.Info(ctx)
		if err == nil && in.Leader != "" {
			return in
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// append sends the same bytes until they are acknowledged, as a writer does.
func appendSure(t *testing.T, st *eventlog.JetStream, data []byte, last uint64) (attempts int) {
	t.Helper()
	ctx := testContext(t)
	for {
		attempts++
		err := st.Append(ctx, data, last)
		if err == nil {
			return attempts
		}
		if m, gerr := st.Get(ctx, last+1); gerr == nil && string(m.Data) == string(data) {
			return attempts // an earlier attempt arrived
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The log is led by the server that is named, at once, and loses nothing by it; a server
// that is not there does not lead it.
func TestLogIsLedByTheServerThatIsNamed(t *testing.T) {
	s := newServers(t, 3)
	if t.Failed() {
		return
	}
	nc, err := s.up[0].NodeConn(testContext(t))
	must(t, err)
	log := eventlog.NewLog(nc, eventlog.StreamConfig{ClusterID: "c", Replicas: 3, AckTimeout: time.Second})
	st := s.stream(t, 0)
	log.Use(st)
	seq, again := uint64(0), 0
	for range 3 {
		for _, name := range s.names {
			appendSure(t, st, frame(seq+1), seq)
			seq++
			if err := log.LeadBy(testContext(t), name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if in := info(t, st); in.Leader != name || in.Last != seq {
				t.Errorf("%+v, want %d frames led by %s", in, seq, name)
			}
			if appendSure(t, st, frame(seq+1), seq) > 1 {
				again++
			}
			seq++
		}
	}
	if again > 4 { // one or the other may take its time on a busy machine
		t.Errorf("after %d of 9 moves the log took a frame at a second attempt only", again)
	}
	if err := log.LeadBy(testContext(t), "nobody"); err == nil {
		t.Error("a server that is not there leads")
	}
	checkLog(t, st, seq)
}

func frame(seq uint64) []byte { return fmt.Appendf(nil, "frame %d", seq) }

func checkLog(t *testing.T, st *eventlog.JetStream, last uint64) {
	t.Helper()
	want := uint64(1)
	err := st.Read(testContext(t), 1, last, func(m eventlog.Message) error {
		if m.Seq != want || string(m.Data) != string(frame(want)) {
			return fmt.Errorf("message %d is %q", m.Seq, m.Data)
		}
		want++
		return nil
	})
	if err != nil || want != last+1 {
		t.Errorf("read up to %d of %d: %v", want-1, last, err)
	}
}

// The log of three servers is one log: what one of them acknowledged all of them
// give back, and it goes on without the one that led it.
func TestLogOfThreeServers(t *testing.T) {
	s := newServers(t, 3)
	if t.Failed() {
		return
	}
	nc, _ := publicClient(t, s.up[0])
	must(t, nc.Flush())
	if others := nc.DiscoveredServers(); len(others) > 0 {
		t.Errorf("a client is told of %v", others)
	}
	first := s.stream(t, 0)
	seq := uint64(0)
	for ; seq < 100; seq++ {
		appendSure(t, first, frame(seq+1), seq)
	}
	for i := range s.up {
		st := s.stream(t, i)
		if in := info(t, st); in.Last != seq || in.Identity != "first" {
			t.Errorf("%s says %+v", s.names[i], in)
		}
		checkLog(t, st, seq)
	}
	if err := first.Append(testContext(t), frame(1), 5); !errors.Is(err, eventlog.ErrRefused) {
		t.Errorf("behind the tail: %v", err)
	}
	var gap *eventlog.GapError
	if err := first.Read(testContext(t), seq, seq+3, func(eventlog.Message) error { return nil }); !errors.As(err, &gap) || gap.Want != seq+1 {
		t.Errorf("past the end: %v", err)
	}

	// Without the leader of the stream.
	lead := info(t, first).Leader
	gone := -1
	for i, name := range s.names {
		if name == lead {
			gone = i
		}
	}
	s.stop(t, gone)
	left := s.stream(t, (gone+1)%3)
	began := time.Now()
	attempts := appendSure(t, left, frame(seq+1), seq)
	t.Logf("appended %v after %s, which led, had stopped, at attempt %d", time.Since(began), lead, attempts)
	for seq++; seq < 150; seq++ {
		appendSure(t, left, frame(seq+1), seq)
	}
	checkLog(t, left, seq)

	// It comes back and has all of it, also when another one is gone.
	s.start(t, gone)
	s.stop(t, (gone+2)%3)
	back := s.stream(t, gone)
	appendSure(t, back, frame(seq+1), seq)
	checkLog(t, back, seq+1)

	// Alone it says nothing about the end of the log.
	s.stop(t, (gone+1)%3)
	short, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for short.Err() == nil {
		if _, err := back.Info(short); errors.Is(err, eventlog.ErrNoLeader) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("one server of three did not say that there is no leader")
}

// A server that is gone for ever is removed, also when those that are left have not
// seen it since they started, and again when it is not there any more. The next one
// that comes gets the copies that it had, without being told.
func TestAServerThatIsGone(t *testing.T) {
	s := newServers(t, 3)
	if t.Failed() {
		return
	}
	const frames = 50
	st := s.stream(t, 0)
	for seq := uint64(0); seq < frames; seq++ {
		appendSure(t, st, frame(seq+1), seq)
	}
	for i := range s.up {
		s.stop(t, i)
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { s.start(t, i) })
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	must(t, s.up[0].RemoveServer(testContext(t), "n3"))
	must(t, s.up[1].RemoveServer(testContext(t), "n3"))
	must(t, s.up[0].RemoveServer(testContext(t), "never"))

	s.names[2], s.dirs[2] = "n3b", t.TempDir()
	s.start(t, 2)
	if t.Failed() {
		return
	}
	began := time.Now()
	for ctx := testContext(t); ; time.Sleep(20 * time.Millisecond) {
		if last, current := s.up[2].Holds(events.StreamName(0, 1)); current && last == frames {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the new server got no copy")
		}
	}
	t.Logf("the new server had its copy after %v", time.Since(began))
	// One of the old ones can be missed now, and the other alone decides nothing.
	s.stop(t, 1)
	st = s.stream(t, 2)
	appendSure(t, st, frame(frames+1), frames)
	checkLog(t, st, frames+1)
	s.stop(t, 0)
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := s.up[2].RemoveServer(short, "n1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a majority: %v", err)
	}
}
