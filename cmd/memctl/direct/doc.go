// Package direct does on data directories and places of backups what memctl's verbs ask for,
// with the node's own code. memnode links it, and memctl has memnode run such a verb.
//
// Invariants: nothing listens but to this process; a data directory is locked while it is
// open; credentials of buckets come from the environment and from files, never from a name.
//
// Not its job: flags, questions and answers (cmd/memctl/verbs).
package direct

import (
	"context"
	"time"

	"mneme/cmd/memctl/offline"
	"mneme/internal/backup"
	"mneme/internal/node"
	"mneme/memory"
)

// Work implements offline.Work.
type Work struct {
	node func() (Node, error)
	env  Env
}

// Env is the process around it.
type Env struct {
	Getenv  func(string) string
	Home    func() (string, error) // nil = there is none
	Now     func() time.Time
	Version string // of the program
}

// Node is what a stopped node does; a StoppedNode is one. progress is never nil.
type Node interface {
	offline.Node
	RestoreFiles(ctx context.Context, dir, logPath, keysPath string, until node.Until, progress func(memory.Progress)) (memory.RebuildReport, error)
	RestoreFrom(ctx context.Context, dir string, src node.RestoreSource, progress func(memory.Progress)) (memory.RestoreReport, error)
	Drill(ctx context.Context, scratch string, from backup.Chosen, progress func(memory.Progress)) (memory.BackupDrillReport, error)
	// BackupSource opens a stopped node as what a backup into places is made from.
	BackupSource(ctx context.Context, dir string, progress func(memory.Progress), use func(backup.Source) error) error
}

// New works in a process, on the nodes that open gives.
func New(open func() (Node, error), env Env) Work { return Work{open, env} }

// Stopped implements offline.Work.
func (w Work) Stopped() (offline.Node, error) { return w.node() }
