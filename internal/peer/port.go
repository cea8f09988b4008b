package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// Options of Listen.
type Options struct {
	Addr         string // host and port to listen on
	Certificates *Certificates
	// Self says who this node is, at each connection: a node that joins learns its
	// cluster's id later.
	Self func() Identity
	// Admit, if not nil, refuses connections by who opens them and what for.
	Admit func(from Identity, service string) error
	// Replaces, if not nil, reports whether this node's cluster took the place of another
	// one: nodes of that one are told so.
	Replaces func(cluster string) bool
	// Greeting bounds how long two nodes take to greet each other. 0: five seconds.
	Greeting time.Duration
	// Connect opens the connections under TLS; nil is TCP.
	Connect func(ctx context.Context, addr string) (net.Conn, error)
	Logger  *slog.Logger // nil: nothing is logged
}

// Port is one node's end of every connection to its peers. It may be used
// concurrently.
type Port struct {
	opt    Options
	listen net.Listener
	done   chan struct{} // closed by Close

	mu        sync.Mutex
	closed    bool
	services  map[string]*service
	strangers map[string]bool // services for nodes without a cluster, too
	greetings greetings
	refusals  refused
	work      sync.WaitGroup
}

// Listen opens the port.
func Listen(opt Options) (*Port, error) {
	if opt.Greeting == 0 {
		opt.Greeting = 5 * time.Second
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Connect == nil {
		opt.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	l, err := net.Listen("tcp", opt.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for peers: %w", err)
	}
	p := &Port{opt: opt, listen: l, done: make(chan struct{}), services: map[string]*service{},
		strangers: map[string]bool{}}
	p.work.Go(p.accept)
	return p, nil
}

// Addr returns the address that the port listens on.
func (p *Port) Addr() net.Addr { return p.listen.Addr() }

// Close stops listening, closes connections that have not greeted and every service's
// listener. Connections that a service has belong to it.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.done)
	err := p.listen.Close()
	for c := range p.greetings.of {
		_ = c.Close()
	}
	services := p.services
	p.services = map[string]*service{}
	p.mu.Unlock()
	for _, s := range services {
		s.end()
	}
	p.work.Wait()
	return err
}

// Service returns the connections that peers open for a service. A name can be taken
// again once its listener is closed.
func (p *Port) Service(name string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if _, ok := p.services[name]; ok {
		return nil, fmt.Errorf("peer service %q is taken", name)
	}
	s := &service{port: p, name: name, conns: make(chan net.Conn), done: make(chan struct{})}
	p.services[name] = s
	return s, nil
}

// AdmitStrangers opens a service, of this node and of others, to nodes that have no
// cluster yet. Every other service is between nodes that both say the same cluster.
func (p *Port) AdmitStrangers(service string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strangers[service] = true
}

// Dial opens a connection for a service of the node at addr, whose name is resolved
// now. node is who must be there; empty means whoever is. Errors beside those of the
// network and of TLS: ErrOtherCluster, ErrNoCluster, ErrOtherNode, ErrOtherName,
// ErrNotAdmitted, ErrNoService, ErrBusy, ErrProtocol; each is ErrListens too where what
// listens at addr may well be the node.
func (p *Port) Dial(ctx context.Context, addr, node, service string) (net.Conn, error) {
	c, err := p.dial(ctx, addr, node, service)
	if err != nil {
		return nil, fmt.Errorf("connect to peer %s: %w", named(addr, node), err)
	}
	return c, nil
}

func named(addr, node string) string {
	if node == "" {
		return addr
	}
	return node + " at " + addr
}

func (p *Port) dial(ctx context.Context, addr, node, service string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.opt.Greeting)
	defer cancel()
	raw, err := p.opt.Connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, p.opt.Certificates.Client(host))
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = p.greet(ctx, c, node, service)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		if listens(err, c, node) {
			err = listening{err}
		}
		return nil, err
	}
	return c, nil
}

// greet is the side that connects.
func (p *Port) greet(ctx context.Context, c *tls.Conn, node, service string) error {
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	self := p.opt.Self()
	if err := writeMessage(c, hello{Version: version, Cluster: self.Cluster, From: self.Node, To: node, Service: service}); err != nil {
		return err
	}
	var a answer
	if err := readMessage(c, &a); err != nil {
		return err
	}
	switch refused, known := refusals[a.Code]; {
	case known:
		return fmt.Errorf("%w: %s", refused, strings.TrimPrefix(a.Detail, refused.Error()+": "))
	case a.Code != "":
		return fmt.Errorf("%w: %s: %s", ErrNotAdmitted, a.Code, a.Detail)
	case a.Version != version:
		return fmt.Errorf("%w: version %d", ErrProtocol, a.Version)
	}
	other := Identity{a.Cluster, a.Node}
	if err := p.matches(self, other, leaf(c), service); err != nil {
		return err
	}
	if node != "" && other.Node != node {
		return fmt.Errorf("%w: %s, not %s", ErrOtherNode, other.Node, node)
	}
	return nil
}

func leaf(c *tls.Conn) *x509.Certificate { return c.ConnectionState().PeerCertificates[0] }

// matches checks who says to be at the other end, for either side.
func (p *Port) matches(self, other Identity, cert *x509.Certificate, service string) error {
	if len(other.Node) > maxName || len(other.Cluster) > maxName {
		return fmt.Errorf("%w: a name or a cluster id of more than %d bytes", ErrProtocol, maxName)
	}
	p.mu.Lock()
	strangers := p.strangers[service]
	p.mu.Unlock()
	switch {
	case !isFor(cert, IDOf(other.Node)):
		return fmt.Errorf("%w: it calls itself %q, its certificate is for %.100q", ErrOtherName, other.Node, certified(cert))
	case self.Cluster == "" || other.Cluster == "":
		if strangers {
			return nil
		}
		return fmt.Errorf("%w: the service %.100q is for nodes of one cluster, %s is of %q, %s of %q", ErrNoCluster, service, self.Node, self.Cluster, other.Node, other.Cluster)
	case self.Cluster != other.Cluster:
		return fmt.Errorf("%w: this one is of %s, %s is of %s", ErrOtherCluster, self.Cluster, other.Node, other.Cluster)
	}
	return nil
}

func (p *Port) accept() {
	for {
		raw, err := p.listen.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			p.opt.Logger.Warn("a peer's connection was not accepted", "err", err)
			select {
			case <-p.done:
				return
			case <-time.After(50 * time.Millisecond): // out of files, most likely
			}
			continue
		}
		if !p.begin(raw) {
			_ = raw.Close()
			continue
		}
		p.work.Go(func() { p.welcome(raw) })
	}
}

// begin counts a connection that has not greeted; false: the port is closed.
func (p *Port) begin(raw net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if drop := p.greetings.add(raw); drop != nil {
		_ = drop.Close()
	}
	return true
}

// welcome is the side that is connected to.
func (p *Port) welcome(raw net.Conn) {
	c, s, who, err := p.welcomed(raw)
	p.mu.Lock()
	p.greetings.done(raw)
	p.mu.Unlock()
	if err == nil {
		s.give(c)
		return
	}
	_ = raw.Close()
	level := slog.LevelDebug // anybody can connect and say nothing, or nonsense
	if isRefusal(err) {
		p.mu.Lock()
		ok, leftOut := p.refusals.next(who+" "+codeOf(err), time.Now())
		p.mu.Unlock()
		if leftOut > 0 {
			p.opt.Logger.Warn("lines about refused connections of peers were left out", "lines", leftOut)
		}
		if ok {
			level = slog.LevelWarn
		}
	}
	p.opt.Logger.Log(context.Background(), level, "a peer's connection was refused", "node", who, "from", raw.RemoteAddr().String(), "err", err)
}

// refusalLines are warned of in a minute.
const refusalLines = 20

// refused passes the first line of each node and reason in a minute, for not too many of
// them: a node that starts is asked for what it does not have yet again and again.
type refused struct {
	since   time.Time
	said    map[string]bool
	leftOut int
}

// next reports whether a line is passed, and, once a minute, how many were left out in the
// one before.
func (r *refused) next(reason string, now time.Time) (ok bool, leftOut int) {
	if now.Sub(r.since) >= time.Minute {
		leftOut = r.leftOut
		*r = refused{since: now, said: map[string]bool{}}
	}
	if r.said[reason] || len(r.said) >= refusalLines {
		r.leftOut++
		return false, leftOut
	}
	r.said[reason] = true
	return true, leftOut
}

// welcomed also tells who the other side says to be, where it has come to that.
func (p *Port) welcomed(raw net.Conn) (_ net.Conn, _ *service, who string, _ error) {
	began := time.Now()
	if err := raw.SetDeadline(began.Add(min(firstWords, p.opt.Greeting))); err != nil {
		return nil, nil, "", err
	}
	config := p.opt.Certificates.Server()
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) { // the first words have come
		if err := raw.SetDeadline(began.Add(p.opt.Greeting)); err != nil {
			return nil, err
		}
		return choose(h)
	}
	c := tls.Server(raw, config)
	if err := c.Handshake(); err != nil {
		return nil, nil, who, err
	}
	var h hello
	if err := readMessage(c, &h); err != nil {
		return nil, nil, who, err
	}
	if who = h.From; len(who) > maxName {
		who = ""
	}
	self := p.opt.Self()
	s, refused := p.consider(self, &h, leaf(c))
	a := answer{Version: version, Cluster: self.Cluster, Node: self.Node}
	if refused != nil {
		a.Code, a.Detail = codeOf(refused), refused.Error()
	}
	err := writeMessage(c, a)
	if refused != nil {
		return nil, nil, who, errors.Join(refused, err)
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		s.left()
		return nil, nil, who, err
	}
	return &conn{Conn: c, from: Identity{h.Cluster, h.From}}, s, who, nil
}

// consider decides what a connection gets. It waits for its service from then on, until
// service.give or service.left.
func (p *Port) consider(self Identity, h *hello, cert *x509.Certificate) (*service, error) {
	if h.Version != version {
		return nil, fmt.Errorf("%w: version %d, here is %d", ErrProtocol, h.Version, version)
	}
	if len(h.To) > maxName || len(h.Service) > maxName {
		return nil, fmt.Errorf("%w: a name of more than %d bytes", ErrProtocol, maxName)
	}
	from := Identity{h.Cluster, h.From}
	if err := p.matches(self, from, cert, h.Service); err != nil {
		if errors.Is(err, ErrOtherCluster) && p.opt.Replaces != nil && p.opt.Replaces(from.Cluster) {
			return nil, fmt.Errorf("%w: it was %.100s, and is %s now", ErrReplaced, from.Cluster, self.Cluster)
		}
		return nil, err
	}
	if h.To != "" && h.To != self.Node {
		return nil, fmt.Errorf("%w: %s, not %s", ErrOtherNode, self.Node, h.To)
	}
	if p.opt.Admit != nil {
		if err := p.opt.Admit(from, h.Service); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotAdmitted, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.services[h.Service]
	if s == nil {
		return nil, fmt.Errorf("%w: %q", ErrNoService, h.Service)
	}
	if s.waiting >= maxWaiting {
		return nil, fmt.Errorf("%w: its service %q has %d connections that it has not taken", ErrBusy, h.Service, s.waiting)
	}
	s.waiting++
	return s, nil
}

// conn is a connection that was opened to this node.
type conn struct {
	net.Conn
	from Identity
}

// From returns who opened a connection that a service's listener gave.
func From(c net.Conn) (Identity, bool) {
	if c, ok := c.(*conn); ok {
		return c.from, true
	}
	return Identity{}, false
}

// maxWaiting is how many connections a service may leave waiting: it takes them at
// once, unless it hangs.
const maxWaiting = 128

// service is the listener of one service.
type service struct {
	port  *Port
	name  string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}

	waiting int // connections that have greeted and were not taken; port.mu guards it
}

// left takes a connection away from those that wait.
func (s *service) left() {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	s.waiting--
}

// give hands a connection over, or closes it when the service has ended.
func (s *service) give(c net.Conn) {
	defer s.left()
	select {
	case s.conns <- c:
	case <-s.done:
		_ = c.Close()
	}
}

func (s *service) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *service) Addr() net.Addr { return s.port.Addr() }

func (s *service) Close() error {
	s.port.mu.Lock()
	if s.port.services[s.name] == s {
		delete(s.port.services, s.name)
	}
	s.port.mu.Unlock()
	s.end()
	return nil
}

func (s *service) end() { s.once.Do(func() { close(s.done) }) }
