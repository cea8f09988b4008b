package keygroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/keyring"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
)

// Service is the name under which nodes answer each other's calls, see [Group.Methods].
const Service = "keys"

// Call asks another node for a method of its Service. The one of *rpc.Client is one, and
// says what an error means.
type Call func(ctx context.Context, to rpc.Target, method string, in, out any) error

// Options of Open. All but those that say otherwise are required.
type Options struct {
	// Dir is the group's folder, FS where everything in it but raft.db lies, which
	// encrypts, and Sealer what encrypts the values of raft.db.
	Dir    string
	FS     vfs.FS
	Sealer raftfsm.Sealer
	// ID names this replica in the group, for ever.
	ID string
	// Keys is this node's keyring, opened for a group. The caller closes it afterwards.
	Keys *keyring.Keyring
	// Found begins the group with this node's keyring, as its only voter. It is for the
	// start that founds, or repeats a founding that was cut short: where the group's
	// files are lost, it makes a second group beside the one that the others are in.
	Found bool
	// TermFloor is raftfsm's, for a group that is begun.
	TermFloor uint64
	// Transport reaches the other replicas, and Call their nodes. The group closes the
	// transport.
	Transport raftfsm.Transport
	Call      Call
	Logger    *slog.Logger // nil: nothing is logged
	// HeartbeatTimeout and ElectionTimeout are raftfsm's; 0 is its default.
	HeartbeatTimeout, ElectionTimeout time.Duration
	// Patience bounds how long a command may take; 0 = ten seconds.
	Patience time.Duration

	step func(done string) // tests look at the files between steps
}

const defaultPatience = 10 * time.Second

func (o *Options) fill() error {
	switch {
	case o.FS == nil || o.Sealer == nil:
		return errors.New("keygroup options: FS and Sealer are required: keys are never written in clear")
	case o.Keys == nil || o.Transport == nil || o.Call == nil:
		return errors.New("keygroup options: Keys, Transport and Call are required")
	case o.Found && o.Keys.Machine().Blank():
		return fmt.Errorf("keygroup options: a group cannot be founded: %w", keyring.ErrBlank)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	return nil
}

// Group is this node's replica of the group. It is safe for concurrent use.
type Group struct {
	opt     Options
	log     *slog.Logger
	raft    *raftfsm.Group
	machine *machine
	renewal *renewal

	running context.Context // ends with Close
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when another replica leads
}

var _ keyring.Proposer = (*Group)(nil)

// Open opens the replica and makes the group the proposer of the keyring's commands.
// A replica that neither founds nor is in the group waits until it is added. Errors:
// raftfsm's, keyring.ErrNoGroup for a keyring that was not opened for a group.
func Open(opt Options) (*Group, error) {
	err := opt.fill()
	if err != nil {
		return nil, errors.Join(err, closeTransport(opt.Transport))
	}
	// A keyring that orders its own commands would go on doing so.
	if err := opt.Keys.Machine().SetProposer(nil); err != nil {
		return nil, errors.Join(fmt.Errorf("open the group of keys: %w", err), closeTransport(opt.Transport))
	}
	g := &Group{opt: opt, log: opt.Logger, changed: make(chan struct{})}
	g.running, g.stop = context.WithCancel(context.Background())
	g.machine = &machine{keys: opt.Keys.Machine(), fs: opt.FS, applied: make(chan struct{}, 1), closing: g.running, log: opt.Logger}
	if g.renewal, err = openRenewal(opt.FS, filepath.Join(opt.Dir, renewedName)); err == nil {
		g.raft, err = raftfsm.Open(raftfsm.Options{Dir: opt.Dir, FS: opt.FS, Sealer: opt.Sealer, ID: opt.ID, Machine: g.machine, Logger: opt.Logger,
			Transport: opt.Transport, Bootstrap: opt.Found, TermFloor: opt.TermFloor, TrailingLogs: noTrailingLogs,
			HeartbeatTimeout: opt.HeartbeatTimeout, ElectionTimeout: opt.ElectionTimeout})
	} else {
		err = errors.Join(err, closeTransport(opt.Transport))
	}
	if err != nil {
		g.stop()
		return nil, fmt.Errorf("open the group of keys: %w", err)
	}
	g.work.Go(g.followLeader)
	g.work.Go(g.renewWhenOwed)
	if err := opt.Keys.Machine().SetProposer(g); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// CatchUp brings the keyring of a stopped node whose group is lost to the end of what
// that node has of the group's log and snapshots. Of opt it takes Dir, FS, Sealer, ID, Keys
// and Logger.
func CatchUp(opt Options) error {
	ended, end := context.WithCancel(context.Background())
	end() // on a full disk it gives up
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	m := &machine{keys: opt.Keys.Machine(), fs: opt.FS, applied: make(chan struct{}, 1), closing: ended, log: opt.Logger}
	survivor := raftfsm.Survivor{Options: raftfsm.Options{Dir: opt.Dir, FS: opt.FS, Sealer: opt.Sealer, ID: opt.ID, Machine: m, Logger: opt.Logger}}
	if err := survivor.CatchUp(); err != nil {
		return fmt.Errorf("apply what the group of keys has agreed on: %w", err)
	}
	return nil
}

// noTrailingLogs: a snapshot leaves nothing of the log in front of it. A replica that
// lags gets the snapshot, which is small; and no entry waits in a log for a replica
// that has nothing yet.
const noTrailingLogs = -1

func closeTransport(t raftfsm.Transport) error {
	if c, ok := t.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// Close ends the replica. Commands of the keyring are refused from then on.
func (g *Group) Close() error {
	err := g.opt.Keys.Machine().SetProposer(nil)
	g.stop() // what waits, also in the machine, gives up
	err = errors.Join(err, g.raft.Close())
	g.work.Wait()
	return err
}

// followLeader wakes those that wait for a leader at each change of who leads. The
// group's end closes the channel.
func (g *Group) followLeader() {
	for range g.raft.Leadership() {
		g.mu.Lock()
		close(g.changed)
		g.changed = make(chan struct{})
		g.mu.Unlock()
	}
}

func (g *Group) leaderChanged() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

// Raft is the group as consensus sees it: for its members, its halting and its numbers.
// Its Leadership is taken.
func (g *Group) Raft() *raftfsm.Group { return g.raft }

// Leader is who leads, as far as it is known here, else empty strings: its id and its
// address in the group.
func (g *Group) Leader() (id, addr string) { return g.raft.Leader() }

// Stats returns the group's numbers.
func (g *Group) Stats() raftfsm.Stats { return g.raft.Stats() }

// Halted says that this replica applies nothing any more, and why; nil = it does.
func (g *Group) Halted() error { return g.raft.Halted() }
