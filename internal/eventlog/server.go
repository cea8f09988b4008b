package eventlog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ServerOptions configure the embedded server. Dir and Addr are required.
type ServerOptions struct {
	Dir    string       // JetStream keeps its files below it
	Addr   string       // host:port for clients; port 0 picks one
	Name   string       // server name, fixed for the life of the directory; "" means "mneme"
	Auth   ClientAuth   // nil admits everyone as the public user
	TLS    *tls.Config  // for clients; nil is in clear. The node's own connections are in the process
	Logger *slog.Logger // nil discards
	// MaxPayload is the largest message in bytes; 0 means DefaultMaxPayload.
	MaxPayload int32
	// MaxCallers bounds the connections of others than the node; 0 means 2,048, or a
	// quarter of the files that the process may open if that is less.
	MaxCallers int
	MaxStore   int64     // bytes JetStream may use on disk; 0 means unlimited
	Rand       io.Reader // for the node's password; nil means crypto/rand
	// Cluster, if not nil, makes the server one of several. A directory that was used
	// without must never be opened with it, nor the reverse: nats-server deletes the
	// streams.
	Cluster *ClusterOptions
}

// ClusterOptions say how a server reaches the others of its cluster. Name, Addr and
// Peers are required, and ServerOptions.Name, which must differ between the servers.
type ClusterOptions struct {
	Name string // of the cluster, the same for all
	Addr string // host:port to listen on for the others; port 0 picks one
	// Advertise is where the others reach it, if that is not Addr: servers tell each
	// other of a third one.
	Advertise string
	Peers     []string    // host:port of all, this one may be among them
	TLS       *tls.Config // for both sides of each connection; nil is for tests
}

// shared is the server's name among several, "" if it is alone.
func (o *ServerOptions) shared() string {
	if o.Cluster == nil {
		return ""
	}
	return o.Name
}

// DefaultMaxPayload is 2 MiB. The log needs a frame: 512 KiB, or one larger
// event (a text of 256 KiB with its attributes and seal stays far below 1 MiB).
// Clients need more: JSON may escape each byte of a text of 256 KiB to six, and
// such a capture shall get our typed answer instead of a broken connection.
const DefaultMaxPayload = 2 << 20

// clientTLSLimit bounds, in seconds, how long a client may take to begin TLS.
const clientTLSLimit = 5.0

// memoryStore bounds memory streams, of which there are none of ours.
const memoryStore = 8 << 20

// Server is the embedded nats-server.
type Server struct {
	ns   *server.Server
	log  *serverLog
	auth *authenticator
	dir  string

	mu     sync.Mutex
	conns  []*nats.Conn
	closed bool
}

// StartServer starts the embedded server and returns when JetStream answers.
// Its errors wrap ErrAddressTaken or ErrStoreDamaged where that is the cause.
// The caller must hold the directory for itself: nats-server does not lock it.
func StartServer(ctx context.Context, opt ServerOptions) (*Server, error) {
	auth, err := newAuthenticator(opt.Auth, opt.Rand)
	if err != nil {
		return nil, fmt.Errorf("start log server: %w", err)
	}
	so, err := serverOptions(opt, auth)
	if err != nil {
		return nil, fmt.Errorf("start log server: %w", err)
	}
	log := newServerLog(opt.Logger)
	damaged, err := preflight(vfs.Default, opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("start log server: %w", err)
	}
	logDamaged(log.log, damaged)
	ns, err := server.NewServer(so)
	if err != nil {
		return nil, fmt.Errorf("start log server: %w", err)
	}
	auth.account = ns.LookupAccount // before Start, which admits clients
	s := &Server{ns: ns, log: log, auth: auth, dir: opt.Dir}
	ns.SetLogger(s.log, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		ns.Start()
	}()
	err = s.waitReady(ctx, started, opt.fatal)
	if err == nil {
		err = s.checkStreams(ctx)
	}
	if err != nil {
		<-started
		_ = s.Shutdown(context.WithoutCancel(ctx)) // the first error says more
		return nil, fmt.Errorf("start log server: %w", err)
	}
	return s, nil
}

func serverOptions(opt ServerOptions, auth *authenticator) (*server.Options, error) {
	host, port, err := hostPort(opt.Addr)
	if err != nil {
		return nil, err
	}
	if opt.Dir == "" {
		return nil, errors.New("a directory is needed")
	}
	o := &server.Options{
		ServerName: opt.Name, Host: host, Port: port,
		JetStream: true, StoreDir: opt.Dir, SyncAlways: true,
		JetStreamMaxMemory: memoryStore, JetStreamMaxStore: opt.MaxStore,
		DisableJetStreamBanner: true, NoSigs: true, NoLog: true,
		MaxPayload:                 opt.MaxPayload,
		CustomClientAuthentication: auth,
	}
	callers := opt.MaxCallers
	if callers <= 0 {
		callers = callersWithin(openFiles())
	}
	o.MaxConn = callers + reservedConns
	// The options are never reloaded: a reload deletes accounts that were made
	// at run time.
	if err := o.ProcessConfigString(accountsConfig(opt.shared(), nil, callers)); err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	if opt.TLS != nil {
		o.TLSConfig, o.TLSTimeout = opt.TLS, clientTLSLimit
		o.TLSVerify = opt.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	}
	if err := opt.Cluster.apply(o); err != nil {
		return nil, err
	}
	if o.ServerName == "" {
		o.ServerName = "mneme"
	}
	if o.Host == "" {
		o.Host = "0.0.0.0"
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.JetStreamMaxStore <= 0 {
		o.JetStreamMaxStore = 1 << 62
	}
	return o, nil
}

// waitReady waits for the listener, and then until JetStream really answers:
// the server calls itself ready before that.
func (s *Server) waitReady(ctx context.Context, started <-chan struct{}, fatal func(msg string) error) error {
	select {
	case msg := <-s.log.fatal:
		return fatal(msg)
	case <-ctx.Done():
		return ctx.Err()
	case <-started:
	}
	select {
	case msg := <-s.log.fatal:
		return fatal(msg)
	default:
	}
	for !s.ns.ReadyForConnections(50 * time.Millisecond) {
		select {
		case msg := <-s.log.fatal:
			return fatal(msg)
		case <-ctx.Done():
			return fmt.Errorf("waiting for connections: %w", ctx.Err())
		default:
		}
	}
	nc, err := s.NodeConn(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.AccountInfo(try)
		cancel()
		if err == nil {
			return nil
		}
		if perr := pause(ctx, 10*time.Millisecond); perr != nil {
			return fmt.Errorf("waiting for JetStream: %w: %w", perr, err)
		}
	}
}

// fatal is the error of what the server says when it gives up.
func (o *ServerOptions) fatal(msg string) error {
	addr := o.Addr
	if o.Cluster != nil && strings.Contains(msg, "router port") {
		addr = o.Cluster.Addr
	}
	switch {
	case strings.Contains(msg, "address already in use"), strings.Contains(msg, "Only one usage of each socket address"):
		return &AddressError{Addr: addr, Err: errors.New("address already in use")}
	case strings.Contains(msg, "Error listening on"):
		return fmt.Errorf("listen on %s: %s", addr, msg)
	case strings.Contains(msg, "permission denied"), strings.Contains(msg, "read-only file system"):
		return fmt.Errorf("%s: %w: %s", o.Dir, os.ErrPermission, msg)
	case strings.Contains(msg, "JetStream"):
		return &DamageError{Dir: o.Dir, Detail: msg}
	}
	return errors.New(msg)
}

// checkStreams finds streams whose folders are there but which the server
// skipped: it only warns about them, and would let a new stream take their
// place.
func (s *Server) checkStreams(ctx context.Context) error {
	folders, err := filepath.Glob(filepath.Join(streamsDir(s.dir), "*"))
	if err != nil || len(folders) == 0 {
		return err
	}
	nc, err := s.NodeConn(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	loaded := make(map[string]bool)
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		loaded[name] = true
	}
	if err := names.Err(); err != nil {
		return fmt.Errorf("list streams: %w", err)
	}
	var missing []string
	for _, f := range folders {
		if name := filepath.Base(f); !loaded[name] && !strings.HasPrefix(name, ".") {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return &DamageError{Dir: s.dir, Streams: missing, Detail: s.log.lastWarning()}
	}
	return nil
}

// NodeConn returns an in-process connection of the node's user. The server
// closes it on shutdown, the caller may do so before.
func (s *Server) NodeConn(ctx context.Context) (*nats.Conn, error) { return s.connect(ctx, nodeUser) }

func (s *Server) connect(ctx context.Context, user string) (*nats.Conn, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("connect the node: %w", ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect the node: %w", err)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.ns), nats.Name("mneme node"),
		nats.UserInfo(user, s.auth.nodePassword), nats.CustomInboxPrefix(nodeInbox),
		// Buffered publishes would be sent after a reconnect, long after they
		// were reported as failed.
		nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.connectionFault(err) // a slow subscription says so again and again
		}))
	if err != nil {
		return nil, fmt.Errorf("connect the node: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		nc.Close()
		return nil, fmt.Errorf("connect the node: %w", ErrClosed)
	}
	s.conns = slices.DeleteFunc(s.conns, (*nats.Conn).IsClosed)
	s.conns = append(s.conns, nc)
	return nc, nil
}

// Addr is the address that clients connect to.
func (s *Server) Addr() string {
	if a := s.ns.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// ClientURL is the address as a NATS URL.
func (s *Server) ClientURL() string { return s.ns.ClientURL() }

// SyncAlways reports whether the running server syncs before it acknowledges:
// what it says itself, not what was asked for.
func (s *Server) SyncAlways() bool {
	v, err := s.ns.Varz(nil)
	return err == nil && v.JetStream.Config != nil && v.JetStream.Config.SyncAlways
}

// Wanted reports whether anybody subscribes to a feed. Subscriptions of other
// accounts count: an import puts a shadow of each into the node's account.
func (s *Server) Wanted(subject string) bool {
	acc, err := s.ns.LookupAccount(nodeAccount)
	return err == nil && acc.Interest(subject) > 0
}

// WriteFault is the first error that kept the server from storing, nil if there
// was none. Such a server does not write again before it is restarted.
func (s *Server) WriteFault() error { return s.log.fault() }

// HasCallers reports whether any client but the node's own is connected. If that cannot be
// known, one is.
func (s *Server) HasCallers() bool {
	conns, err := s.ns.Connz(&server.ConnzOptions{Username: true, Limit: math.MaxInt32})
	return err != nil || slices.ContainsFunc(conns.Conns, func(c *server.ConnInfo) bool {
		return c.Account != nodeAccount && c.Account != systemAccount
	})
}

// EndCallers ends the connections of all clients but the node's own, and says how many there
// were: who may still connect comes again, and is asked for what counts now.
func (s *Server) EndCallers() (int, error) {
	conns, err := s.ns.Connz(&server.ConnzOptions{Username: true, Limit: math.MaxInt32})
	if err != nil {
		return 0, fmt.Errorf("list connections: %w", err)
	}
	ended := 0
	for _, c := range conns.Conns {
		if c.Account == nodeAccount || c.Account == systemAccount {
			continue
		}
		if err := s.ns.DisconnectClientByID(c.Cid); err == nil { // an error: it has gone by itself
			ended++
		}
	}
	return ended, nil
}

// Shutdown closes the node's connections and stops the server. Everything that
// was acknowledged is on disk already. If ctx ends first the server goes on
// stopping behind.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	conns := s.conns
	s.conns, s.closed = nil, true
	s.mu.Unlock()
	for _, nc := range conns {
		nc.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop log server: %w", ctx.Err())
	}
}
