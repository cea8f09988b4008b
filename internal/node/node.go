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
	"mneme/internal/index/vector"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/query"
	"mneme/internal/query/views"
	"mneme/internal/replica"
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
	views      *views.Views
	followers  *followers
	reads      *reads
	writes     *writes
	changes    changes // writes, wherever they are carried out
	doctor     *doctor
	operator   *operator
	front      front
	started    time.Time

	owed     atomic.Pointer[owed] // mostly nil
	ready    atomic.Bool
	draining atomic.Bool
	wg       sync.WaitGroup
	ending   ending
}

// changes takes writes: it carries them out, or has the node do it that leads.
type changes interface {
	rest.Writer
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
	if damaged := (*damagedState)(nil); errors.As(err, &damaged) {
		n, err = start(ctx, cfg, damaged)
	}
	return n, startError("start", err)
}

// start is one attempt of Open. It fails with a *damagedState, and the next attempt is
// given that, where the state has to be built anew.
func start(ctx context.Context, cfg Config, damaged *damagedState) (*Node, error) {
	n := &Node{core: &core{cfg: cfg, damaged: damaged}, started: time.Now(), ending: ending{done: make(chan struct{})}}
	n.eraser = newEraser(n)
	n.upkeep = newUpkeep(n.core, n.eraser.holdsLock)
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
	if err := openHealth(n); err != nil {
		return err
	}
	if err := n.openPeers(ctx); err != nil {
		return err
	}
	if err := n.openKeys(false); err != nil {
		return err
	}
	if err := n.peers.mayTakePart(ctx); err != nil {
		return err
	}
	if err := n.openGate(); err != nil {
		return err
	}
	if err := n.openKeyGroup(ctx); err != nil {
		return err
	}
	if err := n.openLog(ctx, callers{n.natsAuth(), n.front.tls()}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{n.openReplica, n.openQuery, n.openRouter, n.openWriting, n.serve, n.finishRepair} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// operatorToken is the token that the operator gave, or that the node made; "" where
// nobody is asked for one.
func (n *Node) operatorToken() (string, error) {
	if n.cfg.Auth != "token" || n.cfg.AuthToken != "" {
		return n.cfg.AuthToken, nil
	}
	token, _, err := auth.LoadOrCreateToken(n.cfg.FS, n.dir.tokenFile(), nil)
	return token, err
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

// openReplica opens the shard; from then on it follows its Raft group.
func (n *Node) openReplica(ctx context.Context) error {
	opt := n.replicaOptions()
	opt.Refuse, opt.OpenGroup = n.refuse, n.cfg.Parts.Group
	if owed := n.owesRebuild(); owed != nil {
		opt.Damaged = owed
	}
	if err := n.peers.shareShard(&opt); err != nil {
		return err
	}
	r, err := replica.Open(ctx, opt)
	if err != nil {
		return startError("shard", err)
	}
	n.replica, n.state = r, r.State()
	n.onClose("shard", func(context.Context) error { return r.Close() })
	return n.rebuilt()
}

// openQuery opens the reading side.
func (n *Node) openQuery(context.Context) error {
	n.embedders = newEmbedders(n.cfg)
	n.onClose("embedders", func(context.Context) error { return n.embedders.close() })
	v, err := views.New(views.Options{State: n.state, Keys: n.keys, Settings: n.settings, Vector: vector.Options{Engine: vector.Engine(n.cfg.VectorEngine)},
		Linear: n.linear, Lacks: n.lacks, Logger: n.cfg.Logger, FS: n.files, GraphDir: n.dir.vectors(shard0), Shard: shard0})
	if err != nil {
		return err
	}
	n.views = v
	n.onClose("views", func(context.Context) error { return v.Close() })
	q, err := query.New(query.Options{Views: v, Keys: n.keys, Settings: n.settings, Embedders: n.embedders, Now: n.cfg.Now, Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	backfill := ingest.NewBackfill(n.embedders, v.CompareSpaces)
	n.followers = &followers{views: v, feed: newFeed(q, n.nats.Wanted), backfill: backfill, erased: n.eraser.Wake, log: n.cfg.Logger}
	n.reads = &reads{query: q, backfill: backfill}
	n.writes = &writes{shard: n.replica, reads: n.reads, embedders: n.embedders, embedder: n.cfg.Embedder, draining: &n.draining}
	return nil
}

// linear waits until this node's state holds everything that was acknowledged before.
func (n *Node) linear(ctx context.Context) error {
	if n.peers != nil {
		return n.peers.router.Linear(ctx)
	}
	return n.replica.Linear(ctx)
}

// openWriting lets the replica lead and waits for its first term, since this node
// is the shard's only one. On a full disk the term may have to wait for room: then
// the node serves reads until there is some, if the state holds all that it held before
// the start.
func (n *Node) openWriting(ctx context.Context) error {
	r, err := ingest.OpenRejections(n.files, filepath.Join(n.dir.logs(), "rejected"), n.keys, finder(n.state), n.cfg.Now)
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
	n.wg.Go(func() { n.upkeep.watchLog(run) })
	n.wg.Go(func() { n.upkeep.scrub.run(run) })
	n.eraser.Wake()
	n.wg.Go(func() { n.eraser.run(run) })
	return nil
}

// begin lets the replica follow its leadership. run ends with the node.
func (n *Node) begin(ctx, run context.Context) error {
	n.onClose("writing", func(ctx context.Context) error {
		n.replica.Stop(ctx)
		n.peers.handOver(ctx, n.replica.Group())
		return nil
	})
	workers := []replica.Worker{n.followers.feed, n.followers.backfill}
	if n.peers != nil {
		if err := n.replica.Start(ctx, n.followers, append(workers, duties{n})...); err != nil {
			return err
		}
		return n.followShard(ctx, run)
	}
	found, err := n.knownDivergence(ctx)
	if err != nil {
		return err
	}
	n.replica.SetDiverged(found)
	owed, err := n.found(ctx)
	if err != nil {
		return startError("event log", err)
	}
	if err := n.replica.Start(ctx, n.followers, workers...); err != nil {
		return err
	}
	err = n.replica.WaitWriter(ctx)
	switch {
	case errors.Is(err, replica.ErrFull):
		n.owed.Store(&owed)
		if lacks := n.lacks(); lacks != nil {
			err = lacks
		}
		n.cfg.Logger.Warn("writing begins when there is room on the disk", "err", err)
		n.wg.Go(func() { n.beginLate(run) })
		return n.checkKeys(n.state)
	case err == nil:
		return n.firstTerm(ctx)
	}
	return startError("shard", err)
}

// firstTerm does what the start owes once the first term has begun, so that the
// state has all of the log.
func (n *Node) firstTerm(ctx context.Context) error {
	if err := n.checkKeys(n.state); err != nil {
		return err
	}
	if w, err := n.replica.Writer(); err == nil {
		if err := w.Erasing().DestroyEnded(); err != nil {
			return err
		}
	}
	if err := n.firstNamespaces(ctx); err != nil {
		return err
	}
	return n.rememberLog()
}

// beginLate waits until a full disk has room, and then for the first term. What would
// have kept the node from starting ends it, but for a first namespace for which there
// is too little room.
func (n *Node) beginLate(ctx context.Context) {
	err := error(replica.ErrFull)
	for errors.Is(err, replica.ErrFull) {
		if err = n.replica.WaitRoom(ctx); err == nil {
			err = n.replica.WaitWriter(ctx)
		}
	}
	if err == nil {
		n.owed.Store(nil)
		err = n.firstTerm(ctx)
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
	if n.replica.Diverged() != nil {
		return nil
	}
	v := n.state.View()
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
	if n.replica.Diverged() != nil {
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
	leading{n}.retire(ctx)
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
