package replica

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/settings"
	"mneme/memory"
)

// Group is the Raft group of a shard. *raftfsm.Group is one, and says what each
// method promises.
type Group interface {
	ingest.Proposer
	Leadership() <-chan raftfsm.Leadership
	Leader() (id, addr string)
	Term() uint64
	LinearizableIndex(ctx context.Context) (uint64, error)
	WaitApplied(ctx context.Context, index uint64) error
	TransferLeadership(ctx context.Context) error
	Halted() error
	HaltedCh() <-chan struct{}
	Snapshot() error
	Renew(ctx context.Context) error
	Stats() raftfsm.Stats
	Close() error
}

// Views is what a node keeps in memory beside the state.
type Views interface {
	// OnApply takes over what a batch of commands changed. It is called by the
	// applying goroutine and must not wait. What Load has seen already may be
	// given once more.
	OnApply(a *projections.Applied)
	// Load builds everything anew from the present state.
	Load(ctx context.Context) error
}

// Worker is work that only the shard's leader does.
type Worker interface {
	// Work runs for one term: it is called when the term's writer is open and
	// returns when ctx ends. The next term begins after that.
	Work(ctx context.Context, w *ingest.Writer)
}

// Streams knows which stream keeps the shard's log: a repair puts another one in
// its place.
type Streams interface {
	// Choose opens the stream that goes on from where a state stands, before anything
	// is built from it. hashes may be nil. A *eventlog.GapError says that none of them
	// holds all of the log; the one that goes furthest is then open. With peers it must
	// not ask the log, which may have no leader: what the state says counts.
	Choose(ctx context.Context, at projections.Cursor, hashes func(uint64) (events.Hash, bool)) error
	// Ref names the stream that was chosen.
	Ref() events.StreamRef
	// Lead sees to it that the stream is there, and makes the first one, since this
	// replica leads and its state holds all that was agreed on.
	Lead(ctx context.Context) error
	// Unfinished says that a repair was interrupted: nothing may be written before it
	// is finished. It is asked when a term begins.
	Unfinished() *eventlog.DivergedError
	// Begun says that a term has begun on the stream that was chosen.
	Begun(ctx context.Context)
}

// Options of a replica. All but those that say otherwise are required.
type Options struct {
	ingest.Place
	// ID names this replica in its Raft group, for ever.
	ID string
	// Dir is the shard's folder, FS where everything in it but raft.db lies, and
	// Sealer encrypts the values of raft.db.
	Dir    string
	FS     vfs.FS
	Sealer raftfsm.Sealer

	Stream   eventlog.Stream
	Keys     *keyring.Keyring
	Settings *settings.Cache

	// Transport reaches the replicas on other nodes. With nil there are none: the
	// replica founds its group, and its Raft log need not be synced since the event
	// log is.
	Transport raftfsm.Transport
	// OpenGroup opens the Raft group; nil = raftfsm.Open. Of several replicas one founds
	// the group: there OpenGroup sets raftfsm.Options.Bootstrap.
	OpenGroup func(raftfsm.Options) (Group, error)
	// Begun says that events were written to this shard before. An empty log
	// without a state is a loss then, not a first start.
	Begun bool
	// Streams may be nil: Stream is then the only one.
	Streams Streams
	// Damaged is what an earlier attempt to open the replica found wrong with the state
	// after that was opened; it is then set aside like one that does not open. Mostly nil.
	Damaged error
	// Refuse says why writes must not be taken now; nil = they may.
	Refuse func() *memory.Error

	// Counters, Took and QueueLimit are of ingest.Options, for the writers of all terms.
	Counters   *ingest.Counters
	Took       func(ingest.Step, time.Duration, trace.Span)
	QueueLimit func() int

	CacheBytes, ReserveBytes int64
	SnapshotThreshold        uint64        // 0 = raftfsm's default
	Clock                    *ingest.Clock // of the process; nil = the system's, for each writer anew
	Logger                   *slog.Logger

	// OnApply hears of what is applied. Open sets it.
	OnApply func(*projections.Applied)
}

func (o *Options) setDefaults() {
	if o.OpenGroup == nil {
		o.OpenGroup = func(opt raftfsm.Options) (Group, error) {
			g, err := raftfsm.Open(opt)
			if err != nil {
				return nil, err
			}
			return g, nil
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
}

// alone: there is no other replica, as far as the configuration tells.
func (o Options) alone() bool { return o.Transport == nil }

// StateOptions say how the shard's state is opened.
func (o Options) StateOptions() projections.Options {
	o.setDefaults()
	return projections.Options{Dir: o.stateDir(), Shard: o.Shard, FS: o.FS, Logger: o.Logger,
		CacheBytes: o.CacheBytes, ReserveBytes: o.ReserveBytes, OnFault: logFault(o.Logger), OnApply: o.OnApply}
}

func (o Options) stateDir() string { return filepath.Join(o.Dir, "state") }

// groupOptions say where the Raft group lies and who it is. Only a replica that is
// alone founds it by itself, and may leave its entries unsynced.
func (o *Options) groupOptions() raftfsm.Options {
	return raftfsm.Options{Dir: o.Dir, ID: o.ID, FS: o.FS, Sealer: o.Sealer, Transport: o.Transport, Logger: o.Logger,
		SnapshotThreshold: o.SnapshotThreshold, Bootstrap: o.alone(), NoSync: o.alone()}
}

// DamagedError says that a replica cannot be opened with what lies on disk, and
// what to do about it.
type DamagedError struct {
	Message, Hint string
	Err           error
}

func (e *DamagedError) Error() string { return e.Message }
func (e *DamagedError) Unwrap() error { return e.Err }

// ErrPeers is wrapped by a DamagedError where what helps a replica that is alone
// must not be done because there are, or may be, others.
var ErrPeers = errors.New("the shard has replicas on other nodes")

const foreignHint = "put keys/ or shards/ back if one of them is another node's; else move shards/ out of the data directory, and the state is built again from the log"

const rejoinHint = "remove this node from the shard's group through another node, move the shard's folder away, and let the node join anew: a peer has everything"
