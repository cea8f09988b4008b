package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/ingest"
	"mneme/internal/query"
	"mneme/internal/query/views"
	"mneme/internal/replica"
	"mneme/internal/route"
	"mneme/memory"
)

// served is a shard of a node that runs: what reads it, writes to it, follows it and
// looks after it.
type served struct {
	*shard
	n         *Node
	views     *views.Views
	followers *followers
	reads     *reads
	writes    *writes
	changes   changes       // writes, wherever they are carried out
	router    *route.Router // nil for a node on its own
	scrub     *logScrub

	lag      lag             // among others
	counters ingest.Counters // of the writers that this node had

	owed    atomic.Pointer[owed]            // mostly nil
	copying atomic.Pointer[memory.Progress] // of the repair that is under way
	finding sync.Mutex                      // while a divergence is set, or ended by a repair
}

func newServed(n *Node, s *shard) *served {
	out := &served{shard: s, n: n}
	out.scrub = newLogScrub(out)
	return out
}

// open opens the shard; from then on it follows its Raft group.
func (s *served) open(ctx context.Context) error {
	opt := s.replicaOptions()
	opt.Refuse, opt.OpenGroup = s.refuse, s.cfg.Parts.Group
	opt.Counters, opt.Took, opt.QueueLimit = &s.counters, s.n.front.times.step(s.id), s.n.front.queueLimit
	if s.id != shard0 {
		opt.Directory = s.directory().state
	}
	if owed := s.owesRebuild(); owed != nil {
		opt.Damaged = owed
	}
	if err := s.share(&opt); err != nil {
		return err
	}
	if s.peers.server() != "" {
		s.stream.CopiesOfNew(replication{s}.newCopies)
	}
	r, err := replica.Open(ctx, opt)
	if err != nil {
		return startError("shard", err)
	}
	s.replica, s.state = r, r.State()
	s.onClose("shard", func(context.Context) error { return r.Close() })
	return s.rebuilt()
}

// openQuery opens the reading side of the shard, and what goes with its writing.
func (s *served) openQuery() error {
	n := s.n
	v, err := views.New(views.Options{State: s.state, Keys: s.keys, Settings: s.settings, Vector: vector.Options{Engine: vector.Engine(s.cfg.VectorEngine)},
		Linear: s.linear, Lacks: s.lacks, Logger: s.log, FS: s.files, GraphDir: s.dir.vectors(s.id), Shard: s.id})
	if err != nil {
		return err
	}
	s.views = v
	s.onClose("views", func(context.Context) error { return v.Close() })
	q, err := query.New(query.Options{Views: v, Keys: s.keys, Settings: s.settings, Embedders: n.embedders, Now: s.cfg.Now, Logger: s.log, Slow: &n.front.times.slow,
		About: func(ctx context.Context) []slog.Attr { return api.TraceOf(ctx).Attrs() }})
	if err != nil {
		return err
	}
	backfill := ingest.NewBackfill(n.embedders, v.CompareSpaces)
	s.followers = &followers{views: v, feed: newFeed(q, s.nats.Wanted), backfill: backfill, erased: n.eraser.Wake, log: s.log}
	s.reads = &reads{query: q, backfill: backfill, exports: &n.exports, times: n.front.times,
		note: func(ctx context.Context, namespace string, note events.ReadNote) (string, error) {
			return s.changes.NoteRead(ctx, namespace, note)
		}}
	s.writes = &writes{shard: s.replica, reads: s.reads, embedders: n.embedders, embedder: s.cfg.Embedder, draining: &n.draining, times: n.front.times, allow: levels{s}.allow}
	if s.id == shard0 && len(n.served) > 1 {
		s.writes.others, s.followers.listed = &others{n}, n.listed.ring
	}
	return nil
}

// linear waits until this node's state of the shard holds everything that was
// acknowledged before.
func (s *served) linear(ctx context.Context) error {
	if s.peers != nil {
		return s.router.Linear(ctx)
	}
	return s.replica.Linear(ctx)
}

// start lets the replica follow its leadership.
func (s *served) start(ctx context.Context) error {
	workers := []replica.Worker{s.followers.feed, s.followers.backfill, levels{s}}
	if s.peers != nil {
		workers = append(workers, s.peers.workers(s)...)
	}
	if s.id != shard0 {
		workers = append(workers, settler{s})
	}
	return s.replica.Start(ctx, s.followers, workers...)
}

// begin waits for the shard's first term, since this node is its only one. On a full
// disk the term may have to wait for room: then it is late, and the node serves reads
// until there is some, if the state holds all that it held before the start.
func (s *served) begin(ctx context.Context) (late bool, err error) {
	known, err := s.knownDivergence(ctx)
	if err != nil {
		return false, err
	}
	s.replica.SetDiverged(known)
	owed, err := s.found(ctx)
	if err != nil {
		return false, startError("event log", err)
	}
	if err := s.start(ctx); err != nil {
		return false, err
	}
	err = s.replica.WaitWriter(ctx)
	switch {
	case s.replica.Poison() != nil: // reads go on, and an operator decides
		s.log.Error("the shard has stopped, and takes no writes", "err", err, "hint", haltHint(err))
		return true, s.checkKeys(s.state)
	case errors.Is(err, replica.ErrFull):
		s.owed.Store(&owed)
		if lacks := s.lacks(); lacks != nil {
			err = lacks
		}
		s.log.Warn("writing begins when there is room on the disk", "err", err)
		return true, s.checkKeys(s.state)
	case err == nil:
		return false, s.firstTerm()
	}
	return false, startError("shard", err)
}

// firstTerm does what the start owes once the shard's first term has begun, so that the
// state has all of the log.
func (s *served) firstTerm() error {
	if err := s.checkKeys(s.state); err != nil {
		return err
	}
	w, err := s.replica.Writer()
	if err != nil {
		return nil
	}
	return w.Erasing().DestroyEnded()
}

// beginLate is begin once there is room on the disk, or the event is in quarantine at which
// the shard has stopped.
func (s *served) beginLate(ctx context.Context) error {
	err := error(replica.ErrFull)
	for errors.Is(err, replica.ErrFull) || s.replica.Poison() != nil {
		if err = s.replica.WaitRoom(ctx); err == nil {
			err = s.replica.AwaitPoisonGone(ctx)
		}
		if err == nil {
			err = s.replica.WaitWriter(ctx)
		} else if ctx.Err() != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	s.owed.Store(nil)
	return s.firstTerm()
}
