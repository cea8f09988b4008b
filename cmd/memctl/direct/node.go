package direct

import (
	"context"

	"mneme/internal/backup"
	"mneme/internal/node"
	"mneme/memory"
)

// StoppedNode is Node on the real thing.
type StoppedNode struct{ node.Offline }

// OpenNode returns one that finds the master key where memnode's setting of the same name says,
// for data directories that have none of their own.
func OpenNode(getenv func(string) string) (Node, error) {
	var n StoppedNode
	var err error
	if n.Config.MasterKey, err = node.MasterKeySource(getenv("MNEME_MASTER_KEY"), getenv); err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "MNEME_MASTER_KEY: %w", err)
	}
	return n, nil
}

func steps(progress func(memory.Progress), unit string) func(done, total uint64) {
	return func(done, total uint64) {
		if progress != nil {
			progress(memory.Progress{Done: done, Total: total, Unit: unit})
		}
	}
}

// VerifyLog implements Node.
func (o StoppedNode) VerifyLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.VerifyReport, error) {
	return o.Offline.VerifyLog(ctx, dir, steps(progress, "frames"))
}

// RepairLog implements Node.
func (o StoppedNode) RepairLog(ctx context.Context, dir string, progress func(memory.Progress)) (memory.RepairReport, error) {
	return o.Offline.RepairLog(ctx, dir, steps(progress, "frames"))
}

// Backup implements Node.
func (o StoppedNode) Backup(ctx context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.BackupReport, error) {
	return o.Offline.Backup(ctx, dir, logPath, keysPath, steps(progress, "frames"))
}

// RestoreFiles implements Node.
func (o StoppedNode) RestoreFiles(ctx context.Context, dir, logPath, keysPath string, until node.Until, progress func(memory.Progress)) (memory.RebuildReport, error) {
	return o.Offline.RestoreFiles(ctx, dir, logPath, keysPath, until, steps(progress, "frames"))
}

// RestoreFrom implements Node.
func (o StoppedNode) RestoreFrom(ctx context.Context, dir string, src node.RestoreSource, progress func(memory.Progress)) (memory.RestoreReport, error) {
	return o.Offline.RestoreFrom(ctx, dir, src, steps(progress, "frames"))
}

// BackupSource implements Node.
func (o StoppedNode) BackupSource(ctx context.Context, dir string, progress func(memory.Progress), use func(backup.Source) error) error {
	return o.Offline.BackupSource(ctx, dir, steps(progress, "frames"), use)
}

// Drill implements Node.
func (o StoppedNode) Drill(ctx context.Context, scratch string, from backup.Chosen, progress func(memory.Progress)) (memory.BackupDrillReport, error) {
	return o.Offline.Drill(ctx, scratch, from, steps(progress, "frames"))
}

// Recover implements Node.
func (o StoppedNode) Recover(ctx context.Context, dir, certs string, dryRun bool) (memory.RecoverReport, error) {
	return o.Offline.Recover(ctx, dir, node.RecoverOptions{Certs: certs, DryRun: dryRun})
}

// Init implements Node.
func (o StoppedNode) Init(ctx context.Context, dir, id, certs string, dryRun bool, progress func(memory.Progress)) (memory.InitReport, error) {
	return o.Offline.Init(ctx, dir, node.InitOptions{NodeID: id, Certs: certs, DryRun: dryRun}, steps(progress, "frames"))
}
