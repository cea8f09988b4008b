package main

import (
	"context"

	"mneme/internal/backup"
	"mneme/internal/node"
	"mneme/memory"
)

// offlineNode is Offline on the real thing.
type offlineNode struct{ node.Offline }

// newOfflineNode finds the master key where memnode's setting of the same name
// says, for data directories that have none of their own. What is wrong with that setting
// concerns who opens one, and nobody else.
func newOfflineNode(getenv func(string) string) func() (Offline, error) {
	return func() (Offline, error) {
		var off offlineNode
		var err error
		if off.Config.MasterKey, err = node.MasterKeySource(getenv("MNEME_MASTER_KEY"), getenv); err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "MNEME_MASTER_KEY: %w", err)
		}
		return off, nil
	}
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

func (o offlineNode) Restore(ctx context.Context, dir, logPath, keysPath string, until node.Until, progress func(memory.Progress)) (memory.RebuildReport, error) {
	return o.RestoreFiles(ctx, dir, logPath, keysPath, until, steps(progress, "frames"))
}

func (o offlineNode) RestoreFrom(ctx context.Context, dir string, src node.RestoreSource, progress func(memory.Progress)) (memory.RestoreReport, error) {
	return o.Offline.RestoreFrom(ctx, dir, src, steps(progress, "frames"))
}

func (o offlineNode) BackupSource(ctx context.Context, dir string, progress func(memory.Progress), use func(backup.Source) error) error {
	return o.Offline.BackupSource(ctx, dir, steps(progress, "frames"), use)
}

func (o offlineNode) Drill(ctx context.Context, scratch string, from backup.Chosen, progress func(memory.Progress)) (memory.BackupDrillReport, error) {
	return o.Offline.Drill(ctx, scratch, from, steps(progress, "frames"))
}

func (o offlineNode) Recover(ctx context.Context, dir, certs string, dryRun bool) (memory.RecoverReport, error) {
	return o.Offline.Recover(ctx, dir, node.RecoverOptions{Certs: certs, DryRun: dryRun})
}

func (o offlineNode) Init(ctx context.Context, dir, id, certs string, dryRun bool, progress func(memory.Progress)) (memory.InitReport, error) {
	return o.Offline.Init(ctx, dir, node.InitOptions{NodeID: id, Certs: certs, DryRun: dryRun}, steps(progress, "frames"))
}
