package raftfsm

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Entry is one committed command.
type Entry struct {
	Index, Term uint64
	// Data is what was proposed. It is read-only and may be kept.
	Data []byte
}

// Machine is the state under agreement. The group calls Apply, Checkpoint and
// Restore one at a time; Flush and AppliedIndex may be called while Apply runs.
//
// Apply never fails for valid input. An error or a panic halts the group.
type Machine interface {
	// Apply applies committed commands in order, all in one atomic batch with
	// the cursor (the last entry's index and term). Entries at or below
	// AppliedIndex must be skipped. It returns one result for each entry, in the
	// same order; afterwards AppliedIndex is the last entry's index. The slice
	// entries belongs to the group.
	Apply(entries []Entry) ([]any, error)
	// AppliedIndex returns the cursor; zeroes for an empty state.
	AppliedIndex() (index, term uint64)
	// Flush returns once everything that was applied before the call is on
	// stable storage.
	Flush() error
	// Checkpoint writes a consistent copy of the state to dir on Options.FS, which
	// does not exist yet (its parent does and lies beside the group's directory). It runs between two calls of Apply, so it should only make
	// hard links. Files are never changed afterwards. Empty folders are not kept.
	// mark is a number of the machine's own that tells how far the copy goes. The
	// snapshot's manifest keeps it, see Inspection.
	Checkpoint(dir string) (mark uint64, err error)
	// Restore replaces the state by the checkpoint in dir on Options.FS,
	// atomically, as its last step: after an error the old state stands. It may move files out of
	// dir; the group removes what is left.
	Restore(dir string) error
}

// Options configures a group. Dir, ID and Machine are required.
type Options struct {
	// Dir holds raft.db, membership, snapshots/ and restore/. Owned by the group.
	Dir string
	// FS is where everything in Dir but raft.db and its lock lies; nil is the
	// operating system's. Checksums are over what it gives back in clear, so that
	// files may be encrypted anew below it.
	FS vfs.FS
	// Sealer encrypts each value of raft.db; with nil, which is for tests, values
	// only carry a checksum. A value that it cannot open is damage.
	Sealer Sealer
	// ID names this replica within the group, for ever.
	ID string
	// Machine is the state. The caller opens it before and closes it after.
	Machine Machine
	// Logger takes the group's and the raft library's lines; nil is silent.
	Logger *slog.Logger
	// Transport reaches the peers; nil is in-memory, for a node on its own. The
	// group closes it.
	Transport Transport
	// Bootstrap starts a new group with this replica as its only voter when
	// there is no state at all. It is ignored otherwise. Whoever knows that the
	// replica has had peers must not set it: when everything is lost but the
	// machine's state, it decides whether the replica counts as alone.
	Bootstrap bool
	// TermFloor is the highest term that the owner knows from elsewhere (the end
	// of the event log). A group of this replica alone uses only terms above it.
	TermFloor uint64

	// SnapshotThreshold is the number of log entries after which a snapshot is
	// taken (default 4096); SnapshotBytes is the same in bytes (default 64 MiB).
	SnapshotThreshold uint64
	SnapshotBytes     int64
	// TrailingLogs is how many entries a snapshot leaves in the log for peers
	// that lag (default: 0 in memory; with a transport 1024, and up to 8192 as long as
	// they have no more than 64 MiB, see trail). Negative: none.
	TrailingLogs int
	// NoSync leaves fsync of log entries to the operating system. Only for a
	// single voter whose commands have another durable copy. Terms and votes
	// are synced all the same.
	NoSync bool
	// MaxCommandBytes bounds one command (default 8 MiB).
	MaxCommandBytes int
	// HeartbeatTimeout and ElectionTimeout govern elections between peers
	// (default 1 s each). A single voter elects itself at once.
	HeartbeatTimeout, ElectionTimeout time.Duration
	// Clock measures how long writes take (default time.Now). It never reaches
	// the state.
	Clock func() time.Time

	trails bool // TrailingLogs is the default

	testHooks
}

// testHooks are options of tests.
type testHooks struct {
	// Faults between the group and bolt, what happens to raft.db's name, and a look at the
	// files between the steps of Renew.
	wrapKV func(boltKV) boltKV
	dbFS   vfs.FS
	step   func(done string)
	// commitTimeout is how long raft sends a replica nothing before it tells it again what
	// is committed (default 1 s), and looks whether entries wait for it.
	commitTimeout time.Duration
}

const (
	defaultSnapshotThreshold = 4096
	defaultSnapshotBytes     = 64 << 20
	defaultTrailingLogs      = 1024
	mostTrailingLogs         = 8192
	mostTrailingBytes        = 64 << 20
	defaultMaxCommandBytes   = 8 << 20
	defaultElectionTimeout   = time.Second
	defaultCommitTimeout     = time.Second // what was committed is told, and what failed sent again, at once: see announcer
)

// Validate reports what is missing or contradictory.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return errors.New("raftfsm options: Dir is required")
	case o.ID == "":
		return errors.New("raftfsm options: ID is required")
	case o.Machine == nil:
		return errors.New("raftfsm options: Machine is required")
	case o.MaxCommandBytes < 0 || o.MaxCommandBytes > maxFrameBytes:
		return fmt.Errorf("raftfsm options: MaxCommandBytes must be within 0..%d", maxFrameBytes)
	case o.SnapshotBytes < 0:
		return errors.New("raftfsm options: SnapshotBytes must not be negative")
	}
	return nil
}

// withDefaults fills the zero values.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.dbFS == nil {
		o.dbFS = vfs.Default
	}
	if o.step == nil {
		o.step = func(string) {}
	}
	if o.TrailingLogs == 0 && o.Transport != nil {
		o.TrailingLogs, o.trails = defaultTrailingLogs, true
	}
	o.TrailingLogs = max(o.TrailingLogs, 0)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.SnapshotThreshold = orDefault(o.SnapshotThreshold, defaultSnapshotThreshold)
	o.SnapshotBytes = orDefault(o.SnapshotBytes, defaultSnapshotBytes)
	o.MaxCommandBytes = orDefault(o.MaxCommandBytes, defaultMaxCommandBytes)
	o.HeartbeatTimeout = orDefault(o.HeartbeatTimeout, defaultElectionTimeout)
	o.ElectionTimeout = max(orDefault(o.ElectionTimeout, defaultElectionTimeout), o.HeartbeatTimeout)
	o.commitTimeout = orDefault(o.commitTimeout, defaultCommitTimeout)
	return o
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (o Options) dbPath() string       { return filepath.Join(o.Dir, "raft.db") }
func (o Options) snapshotsDir() string { return filepath.Join(o.Dir, "snapshots") }
func (o Options) restoreDir() string   { return filepath.Join(o.Dir, "restore") }
func (o Options) memberPath() string   { return filepath.Join(o.Dir, "membership") }
func (o Options) lockPath() string     { return filepath.Join(o.Dir, "raft.lock") }
