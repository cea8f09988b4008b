package main

import (
	"context"

	"mneme/internal/node"
	"mneme/memory"
)

// offlineNode is Offline on the real thing.
type offlineNode struct{ node.Offline }

// newOfflineNode finds the master key where memnode's setting of the same name
// says, for data directories that have none of their own.
func newOfflineNode(getenv func(string) string) (off offlineNode, err error) {
	off.Config.MasterKey, err = node.MasterKeySource(getenv("MNEME_MASTER_KEY"), getenv)
	return off, err
}

func steps(progress func(memory.Progress), unit string) func(done, total uint64) {
	return func(done, total uint64) {
		if progress != nil {
			progress(memory.Progress{Done: done, Total: total, Unit: unit})
		}
	}
}

func (o offlineNode) VerifyLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.VerifyReport, error) {
	return o.Offline.VerifyLog(ctx, dir, steps(progress, "frames"))
}

func (o offlineNode) RepairLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.RepairReport, error) {
	return o.Offline.RepairLog(ctx, dir, steps(progress, "frames"))
}

func (o offlineNode) Backup(ctx context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.BackupReport, error) {
	return o.Offline.Backup(ctx, dir, logPath, keysPath, steps(progress, "frames"))
}

func (o offlineNode) Restore(ctx context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.RebuildReport, error) {
	return o.Offline.Restore(ctx, dir, logPath, keysPath, steps(progress, "frames"))
}

func (o offlineNode) Recover(ctx context.Context, dir, certs string, dryRun bool) (memory.RecoverReport, error) {
	return o.Offline.Recover(ctx, dir, node.RecoverOptions{Certs: certs, DryRun: dryRun})
}

func (o offlineNode) Init(ctx context.Context, dir, id, certs string, dryRun bool, progress func(memory.Progress)) (memory.InitReport, error) {
	return o.Offline.Init(ctx, dir, node.InitOptions{NodeID: id, Certs: certs, DryRun: dryRun}, steps(progress, "frames"))
}
