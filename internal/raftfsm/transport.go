package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Transport reaches the other replicas of a group.
type Transport = raft.Transport

// newLocalTransport is the transport of a node on its own: it has an address,
// reaches nobody and needs no port.
func newLocalTransport(id string) raft.Transport {
	_, t := raft.NewInmemTransport(raft.ServerAddress(id))
	return t
}

// Address is a replica's address in the membership of a group: who it is, and where
// it is reached. A connection to where another one stands by now must fail.
func Address(id, hostport string) string { return id + "@" + hostport }

// Network is what a transport over connections needs.
type Network struct {
	ID   string // of this replica
	Addr string // where peers reach it, as host and port
	// Listener gives the connections that peers open to this replica. The transport
	// closes it.
	Listener net.Listener
	// Dial opens a connection to replica id at a host and port.
	Dial func(ctx context.Context, addr, id string) (net.Conn, error)
	// Timeout bounds opening a connection and one exchange over it (0: 10 s).
	Timeout time.Duration
	Logger  *slog.Logger // nil is silent
	// Saw is told what other replicas promise this one, before it counts. nil is not
	// told. It must not block.
	Saw func(replica string, p Promise)
}

const (
	defaultNetworkTimeout = 10 * time.Second
	connectionsPerPeer    = 3
	redialEvery           = 100 * time.Millisecond

	// oneAtATime has raft wait for the answer to what it sends a replica before it sends
	// more. Otherwise a replica that refuses entries once, say on a full disk, may get
	// heartbeats for ever and entries never again: the leader then waits for an answer that
	// nobody takes (github.com/hashicorp/raft/issues/612, grafana/pyroscope#5518).
	oneAtATime = 1
)

// NewTransport returns a transport over connections.
func NewTransport(n Network) Transport {
	if n.Timeout == 0 {
		n.Timeout = defaultNetworkTimeout
	}
	if n.Logger == nil {
		n.Logger = slog.New(slog.DiscardHandler)
	}
	s := &streams{n: n, open: map[*stream]struct{}{}}
	s.dialing, s.hangUp = context.WithCancel(context.Background())
	t := &netTransport{s, raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: connectionsPerPeer, MaxRPCsInFlight: oneAtATime, Timeout: n.Timeout,
		Logger: newHclogBridge(n.Logger, "transport"), MsgpackUseNewTimeFormat: true,
	})}
	if n.Saw == nil {
		return t
	}
	return watch(t, n.Saw)
}

// netTransport is raft's transport over streams.
type netTransport struct {
	streams *streams
	*raft.NetworkTransport
}

func (t *netTransport) hangUp() { t.streams.hangUp() }

// whenConnected has f told of each replica that this one has connected to.
func (t *netTransport) whenConnected(f func(raft.ServerID)) { t.streams.connected.Store(&f) }

// hangUp ends what waits for a connection, and all waiting to come: raft waits for it
// before it closes the transport.
func hangUp(t Transport) {
	if n, ok := t.(interface{ hangUp() }); ok {
		n.hangUp()
	}
}

// streams opens and takes a transport's connections, and closes all of them with
// itself: raft's transport leaves those that it has open.
type streams struct {
	n       Network
	dialing context.Context // ends when nobody is to wait for a connection any more
	hangUp  context.CancelFunc

	connected atomic.Pointer[func(raft.ServerID)] // see whenConnected

	mu    sync.Mutex
	open  map[*stream]struct{}
	ended bool
}

// stream is one connection.
type stream struct {
	net.Conn
	of *streams
}

func (s *streams) Addr() net.Addr { return address(Address(s.n.ID, s.n.Addr)) }

func (s *streams) Accept() (net.Conn, error) {
	c, err := s.n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.add(c)
}

// Dial tries again until it has a connection or timeout is over. Raft would wait twice as
// long after each failure, up to ten seconds: a replica that was away for a minute would
// be sent nothing for as long when it is back (raft, replication.go: backoff).
func (s *streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, addr, ok := strings.Cut(string(to), "@")
	if !ok {
		return nil, fmt.Errorf("replica address %q does not say which replica it is", to)
	}
	ctx, cancel := context.WithTimeout(s.dialing, timeout)
	defer cancel()
	for {
		c, err := s.n.Dial(ctx, addr, id)
		if err == nil {
			if f := s.connected.Load(); f != nil {
				(*f)(raft.ServerID(id))
			}
			return s.add(c)
		}
		select {
		case <-time.After(redialEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (s *streams) add(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	st := &stream{c, s}
	s.open[st] = struct{}{}
	return st, nil
}

func (s *streams) Close() error {
	s.mu.Lock()
	s.ended = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	err := s.n.Listener.Close()
	for st := range open {
		_ = st.Conn.Close() // the other end may have closed it first
	}
	return err
}

func (st *stream) Close() error {
	st.of.mu.Lock()
	delete(st.of.open, st)
	st.of.mu.Unlock()
	return st.Conn.Close()
}

// address is a replica's address as the raft library asks for it.
type address string

func (address) Network() string  { return "peer" }
func (a address) String() string { return string(a) }
