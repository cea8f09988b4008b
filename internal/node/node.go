package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mneme/internal/api/rest"
	"mneme/internal/auth"
	"mneme/internal/cluster"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

// Node is a running node: it builds itself from parts, says when it is ready, and
// drains. What it does for callers is done by reads, writes and operator.
type Node struct {
	*core
	gate       *auth.Gate
	embedders  *embedders
	rejections *ingest.Rejections
	upkeep     *upkeep
	eraser     *eraser
	served     []*served // its shards
	exports    exports
	listed     bell // the directory has changed
	reads      rest.Reader
	writes     *writes // to the first shard
	changes    changes // writes, wherever they are carried out
	doctor     *doctor
	operator   *operator
	front      front
	started    time.Time

	ready    atomic.Bool
	draining atomic.Bool
	wg       sync.WaitGroup
	ending   ending
}

// changes takes writes: it carries them out, or has the node do it that leads.
type changes interface {
	rest.Writer
	NoteRead(ctx context.Context, namespace string, note events.ReadNote) (position string, err error)
	AcceptClock(ctx context.Context) (memory.ClockReport, error)
}

// ending is the end of a node, by itself or by Close.
type ending struct {
	done chan struct{}
	once sync.Once
	err  error
}

// Open starts a node and returns when it is ready. Errors are *StartError.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	cfg.setDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.warnListening()
	n, err := start(ctx, cfg, nil)
	if again := (*cluster.RejoinError)(nil); errors.As(err, &again) { // it is noted, and happens once
		n, err = start(ctx, cfg, nil)
	}
	if errors.Is(err, ErrRestart) { // why is noted, and happens once
		cfg.Logger.Warn("this node starts again", "why", err)
		n, err = start(ctx, cfg, nil)
	}
	var found []*damagedState
	for damaged := (*damagedState)(nil); errors.As(err, &damaged); { // at most once for each shard
		found = append(found, damaged)
		n, err = start(ctx, cfg, found)
	}
	return n, cfg.ofSeveral(startError("start", err))
}

// start is one attempt of Open. It fails with a *damagedState, and the next attempt is
// given that, where the state of a shard has to be built anew.
func start(ctx context.Context, cfg Config, damaged []*damagedState) (*Node, error) {
	n := &Node{core: &core{cfg: cfg, clock: ingest.NewClock(cfg.Now, cfg.Parts.SinceBoot), damaged: damaged}, started: time.Now(), ending: ending{done: make(chan struct{})}}
	n.front.times = newTimes()
	n.front.times.slow.Set(cfg.SlowSearch, cfg.SlowSearchText)
	n.front.setLimits(cfg.Limits)
	n.eraser = newEraser(n)
	n.upkeep = newUpkeep(n)
	n.doctor = &doctor{n}
	n.operator = &operator{upkeep: n.upkeep, doctor: n.doctor, n: n}
	if err := n.open(ctx); err != nil {
		err = n.peers.rejoin(n.stateDamage(ctx, err))
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if cerr := n.close(closing); cerr != nil {
			cfg.Logger.Warn("taking the half-started node apart", "err", cerr)
		}
		return nil, err
	}
	n.ready.Store(true)
	return n, nil
}

func (n *Node) open(ctx context.Context) error {
	if err := n.front.openCertificates(n.cfg.TLS, n.cfg.Logger); err != nil {
		return err
	}
	if err := n.openFolder(false); err != nil {
		return err
	}
	if err := n.checkStartSpace(); err != nil {
		return err
	}
	// The HTTP port is taken first: a second node fails before it touches anything.
	if err := n.listen(); err != nil {
		return err
	}
	if err := openWaiting(n); err != nil {
		return err
	}
	if err := openHealth(n); err != nil {
		return err
	}
	if err := n.openPeers(ctx); err != nil {
		return err
	}
	if err := n.makeShards(); err != nil {
		return err
	}
	for _, s := range n.shards {
		n.served = append(n.served, newServed(n, s))
	}
	if err := n.openKeys(false); err != nil {
		return err
	}
	if err := n.peers.mayTakePart(ctx); err != nil {
		return err
	}
	n.upkeep.copy.wasRead()
	if err := n.openGate(); err != nil {
		return err
	}
	if err := n.openKeyGroup(ctx); err != nil {
		return err
	}
	if err := n.openLog(ctx, callers{n.natsAuth(), n.front.tls()}); err != nil {
		return err
	}
	n.front.waiting.say(starts, "", startsHint) // whatever it waited for before
	for _, step := range []func(context.Context) error{n.openReplicas, n.openQuery, n.openRouters, n.openWriting, n.serve, n.finishRepair} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// operatorToken is the token that the operator gave, or that the node made; "" where
// nobody is asked for one.
func (c *core) operatorToken() (string, error) {
	if c.cfg.Auth != "token" || c.cfg.AuthToken != "" {
		return c.cfg.AuthToken, nil
	}
	token, _, err := auth.LoadOrCreateToken(c.cfg.FS, c.dir.tokenFile(), nil)
	return token, err
}

// changedToken is what is in the file of a token that counts already: one that is not there
// is being written, and none is made.
func (c *core) changedToken() (string, error) {
	if c.cfg.Auth != "token" {
		return "", nil
	}
	return auth.LoadToken(c.cfg.FS, c.dir.tokenFile())
}

func (n *Node) openGate() error {
	token, err := n.operatorToken()
	if err != nil {
		return tokenError(err)
	}
	gate, err := auth.NewGate(auth.Mode(n.cfg.Auth), token)
	if err != nil {
		return usage(err.Error(), "")
	}
	n.gate = gate
	return nil
}

// tokenError says what to do about an operator token that cannot be used.
func tokenError(err error) error {
	e := &StartError{Kind: StartDamaged, Message: err.Error(), Err: err, Hint: memory.AsError(err).Hint}
	if e.Hint == "" {
		e.Hint = "remove the file, and the next start makes a new token; or give one in MNEME_AUTH_TOKEN"
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) || memory.CodeOf(err) == memory.CodeForbidden {
		e.Kind = StartUsage
	}
	return e
}

func (n *Node) natsAuth() eventlog.ClientAuth {
	if n.cfg.Auth == "off" {
		return nil
	}
	return n.gate.Credentials
}

func (n *Node) listen() error {
	l, err := net.Listen("tcp", n.cfg.HTTPAddr)
	if err != nil {
		return addressError(n.cfg.HTTPAddr, err)
	}
	n.front.listener = l
	n.onClose("HTTP listener", func(context.Context) error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

// addressError says why nobody can listen on an address.
func addressError(addr string, err error) error {
	e := &StartError{Kind: StartAddress, Addr: addr, Message: fmt.Sprintf("address %s is taken", addr), Err: err}
	if !errors.Is(err, syscall.EADDRINUSE) {
		e.Message = fmt.Sprintf("cannot listen on %s: %v", addr, err)
	}
	return e
}

// openReplicas opens the shards; from then on they follow their Raft groups.
func (n *Node) openReplicas(ctx context.Context) error {
	for _, s := range n.served {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openQuery opens the reading side.
func (n *Node) openQuery(context.Context) error {
	n.embedders = newEmbedders(n.cfg)
	n.onClose("embedders", func(context.Context) error { return n.embedders.close() })
	for _, s := range n.served {
		if err := s.openQuery(); err != nil {
			return err
		}
	}
	n.reads, n.writes = n.served[shard0].reads, n.served[shard0].writes
	if len(n.served) > 1 {
		n.reads = gather{n}
	}
	return nil
}

// openWriting lets the shards lead and does what the node does beside requests.
func (n *Node) openWriting(ctx context.Context) error {
	r, err := ingest.OpenRejections(n.files, filepath.Join(n.dir.logs(), "rejected"), n.keys, finder(n.directory().state), n.cfg.Now)
	if err != nil {
		return err
	}
	n.rejections = r
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.onClose("background work", func(context.Context) error {
		stop()
		n.wg.Wait()
		return nil
	})
	n.upkeep.background = func(work func(context.Context)) { n.wg.Go(func() { work(run) }) }
	if err := n.begin(ctx, run); err != nil {
		return err
	}
	for _, s := range n.served {
		n.wg.Go(func() { s.watchLog(run) })
		n.wg.Go(func() { s.scrub.run(run) })
	}
	if n.upkeep.copy != nil {
		n.wg.Go(func() { n.upkeep.copy.run(run) })
	}
	n.eraser.Wake()
	n.wg.Go(func() { n.eraser.run(run) })
	return nil
}

// begin lets the shards follow their leadership. run ends with the node.
func (n *Node) begin(ctx, run context.Context) error {
	n.onClose("writing", func(ctx context.Context) error {
		for _, s := range n.served {
			s.replica.Stop(ctx)
			n.peers.handOver(ctx, s.replica.Group())
		}
		return nil
	})
	if n.peers != nil {
		if err := n.beginAmong(ctx, run); err != nil || n.cfg.NATSURL == "" {
			return err
		}
		return n.rememberLog()
	}
	var late []*served
	for _, s := range n.served {
		waits, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if waits {
			late = append(late, s)
		}
	}
	if late != nil {
		n.wg.Go(func() { n.beginLate(run, late) })
		return nil
	}
	return n.begun(ctx)
}

// begun does what the start owes once the first term of each shard has begun.
func (n *Node) begun(ctx context.Context) error {
	if err := n.firstNamespaces(ctx); err != nil {
		return err
	}
	return n.rememberLog()
}

// beginLate waits until a full disk has room, and then for the first terms. What would
// have kept the node from starting ends it, but for a first namespace for which there
// is too little room.
func (n *Node) beginLate(ctx context.Context, late []*served) {
	var err error
	for _, s := range late {
		if err == nil {
			err = s.beginLate(ctx)
		}
	}
	if err == nil {
		err = n.begun(ctx)
	}
	switch {
	case err == nil:
		n.eraser.Wake()
	case ctx.Err() != nil:
	case memory.CodeOf(err) == memory.CodeNoSpace:
		n.cfg.Logger.Error("a namespace of the configuration was not made; free some space and restart the node", "err", err)
	default:
		n.end(startError("shard", err))
	}
}

// diverged reports whether the log of any shard disagrees with its state.
func (n *Node) diverged() bool {
	return slices.ContainsFunc(n.served, func(s *served) bool { return s.replica.Diverged() != nil })
}

// finder finds living namespaces by their names.
func finder(s *projections.State) func(name string) (events.ID, bool) {
	return func(name string) (events.ID, bool) {
		v := s.View()
		defer v.Close()
		ns, ok := v.Namespace(name)
		return ns.ID, ok
	}
}

// firstNamespaces makes the namespaces of the configuration, and "default" where
// there has never been one.
func (n *Node) firstNamespaces(ctx context.Context) error {
	names := n.cfg.Namespaces
	if n.diverged() {
		return nil
	}
	v := n.directory().state.View()
	have, deleted := v.Namespaces(), v.DeletedNamespaces()
	if err := v.Close(); err != nil {
		return err
	}
	// A first start that failed, say at a taken port, leaves a directory that is
	// not fresh but has never had a namespace.
	if len(names) == 0 && len(have) == 0 && len(deleted) == 0 {
		names = []string{"default"}
	}
	for _, name := range names {
		if slices.ContainsFunc(have, func(ns projections.NamespaceInfo) bool { return ns.Name == name }) {
			continue
		}
		_, err := n.changes.CreateNamespace(ctx, memory.CreateNamespace{Name: name})
		if code := memory.CodeOf(err); err != nil && code != memory.CodeConflict {
			if code == memory.CodeInvalid {
				return usage(err.Error(), memory.AsError(err).Hint)
			}
			if errors.Is(err, errEmbedder) {
				return &StartError{Kind: StartOther, Message: fmt.Sprintf("namespace %s: %v", name, err), Err: err,
					Hint: "see to what the embedder asks for and start again, or begin with --embedder builtin and switch later"}
			}
			return err
		}
	}
	return nil
}

// rememberLog notes where the log is that goes on with the state.
func (n *Node) rememberLog() error {
	if n.diverged() {
		return nil
	}
	return n.dir.rememberLog(n.cfg.NATSURL)
}

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.ending.done }

// Err says why the node ended by itself; nil after Close.
func (n *Node) Err() error { return n.ending.err }

// HTTPAddr is the address that HTTP listens on.
func (n *Node) HTTPAddr() string { return n.front.listener.Addr().String() }

// HTTPURL is the same as a URL.
func (n *Node) HTTPURL() string {
	if n.front.certs != nil {
		return "https://" + n.HTTPAddr()
	}
	return "http://" + n.HTTPAddr()
}

// NATSURL is where agents publish.
func (n *Node) NATSURL() string {
	return n.nats.ClientURL()
}

// Close drains and stops the node: nothing more is admitted, what was admitted
// is written, then everything stops. Past ctx what still waits is refused.
func (n *Node) Close(ctx context.Context) error {
	n.draining.Store(true)
	n.retire(ctx)
	err := n.close(ctx)
	n.end(nil)
	return err
}

func (n *Node) end(err error) {
	n.ending.once.Do(func() {
		n.ending.err = err
		close(n.ending.done)
	})
}
