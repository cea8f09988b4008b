// Package offline says what memctl's verbs ask of whoever can open a data directory or a place
// of backups.
//
// Invariant: it knows nothing of formats, so that memctl links neither log, state nor keys.
//
// Not its job: doing it, which is cmd/memctl/direct.
package offline

import (
	"context"
	"io"
	"time"

	"mneme/memory"
)

// Work opens data directories and places of backups. progress is never nil.
type Work interface {
	// Stopped does what needs a data directory. What is wrong with MNEME_MASTER_KEY is said
	// here, and concerns nobody else.
	Stopped() (Node, error)

	Restore(ctx context.Context, r Restore, progress func(memory.Progress)) (memory.RestoreReport, error)
	MakeBackup(ctx context.Context, b NewBackup, progress func(memory.Progress)) (memory.BackupMade, error)
	Backups(ctx context.Context, place string) (memory.BackupList, error)
	VerifyBackups(ctx context.Context, in Places, newest bool, progress func(memory.Progress)) (memory.BackupVerifyReport, error)
	DrillBackup(ctx context.Context, d Drill, progress func(memory.Progress)) (memory.BackupDrillReport, error)
	PruneBackups(ctx context.Context, p Prune, progress func(memory.Progress)) (memory.BackupPruneReport, error)

	// MasterKey gives the 64 hexadecimal digits of a key in a file as a data directory has it.
	MasterKey(ctx context.Context, path string) (string, error)
	// NATSConfig is the configuration that a server of an external NATS needs.
	NATSConfig(s NATSServer) string
}

// Node does on a stopped node's data directory what the node itself does while it runs.
type Node interface {
	Doctor(ctx context.Context, dir string) (memory.DoctorReport, error)
	VerifyLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.VerifyReport, error)
	RepairLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.RepairReport, error)
	Backup(ctx context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.BackupReport, error)
	Recover(ctx context.Context, dir, certs string, dryRun bool) (memory.RecoverReport, error)
	Init(ctx context.Context, dir, node, certs string, dryRun bool, progress func(memory.Progress)) (memory.InitReport, error)
	Aside(dir string) (memory.AsideList, error)
	RemoveAside(ctx context.Context, dir string, req memory.RemoveAside) (memory.AsideRemoval, error)
	// Reach tries peer addresses as a node that is not started yet.
	Reach(ctx context.Context, certs, node string, addrs []string) ([]error, error)
}

// Places name where backups are, as people do: a directory, or s3://….
type Places struct {
	Log  string // the backups
	Keys string // their keys; "" = not named
	// WithoutUnreadable goes on without what cannot be read: what that alone knows as
	// forgotten comes back.
	WithoutUnreadable bool
}

// Source is a running node that is backed up.
type Source interface {
	// Log writes what follows marks, one for each shard in order, separated by commas; ""
	// is all of the log.
	Log(ctx context.Context, w io.Writer, after string) (memory.BackupReport, error)
	// Keys writes the keyring, with its master key if asked.
	Keys(ctx context.Context, w io.Writer, withMaster bool) error
	Destroyed(ctx context.Context) (memory.DestroyedKeys, error)
}

// NewBackup is a backup to be made in places.
type NewBackup struct {
	To            Places
	DataDir       string // of the stopped node that is backed up; "" = Node
	Node          Source
	Full          bool // all of the log, though there is a backup to go on from
	WithoutMaster bool // the keys open beside their master key only
}

// Restore is a data directory to be made.
type Restore struct {
	DataDir   string
	From      Places    // From.Log "" = of the two files
	Backup    string    // of a place; "" = the newest
	Log, Keys string    // files; Keys also beside From.Log
	Position  string    // to end with, of several shards one for each; "" = the end
	Time      time.Time // the last moment to take; zero = the end
}

// Drill is a restore on trial.
type Drill struct {
	From    Places
	Backup  string // "" = the newest
	Scratch string // the directory in which one is made for it
}

// Prune says which backups stay.
type Prune struct {
	In     Places
	Newest int           // so many
	Within time.Duration // and those that were made since
	// Damaged keeps all that check, and lets the others go.
	Damaged bool
	DryRun  bool
	Confirm func(would memory.BackupPruneReport) error // an error ends it
}

// NATSServer is one server of an external NATS.
type NATSServer struct {
	Name        string
	Listen      string
	Monitor     string
	Store       string
	Cert, Key   string
	Routes      []string
	RouteListen string
	Certs       string
}
