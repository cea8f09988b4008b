package direct

import (
	"context"
	"encoding/hex"

	"mneme/cmd/memctl/offline"
	"mneme/internal/backup"
	"mneme/internal/node"
	"mneme/memory"
)

// MakeBackup implements offline.Work.
func (w Work) MakeBackup(ctx context.Context, b offline.NewBackup, progress func(memory.Progress)) (made memory.BackupMade, err error) {
	to, keysTo, err := w.open(b.To)
	if err != nil {
		return made, err
	}
	with := func(src backup.Source) error {
		made, err = backup.Make(ctx, src, to, keysTo, backup.Options{Full: b.Full, WithoutMaster: b.WithoutMaster, WithoutUnreadable: b.To.WithoutUnreadable, Now: w.env.Now, Version: w.env.Version})
		return err
	}
	if b.DataDir == "" {
		err = with(b.Node)
		return made, err
	}
	n, err := w.node()
	if err == nil {
		err = n.BackupSource(ctx, b.DataDir, progress, with)
	}
	return made, err
}

// Backups implements offline.Work.
func (w Work) Backups(ctx context.Context, place string) (memory.BackupList, error) {
	from, err := openPlace(place, w.env)
	if err != nil {
		return memory.BackupList{}, err
	}
	return backup.List(ctx, from)
}

// VerifyBackups implements offline.Work.
func (w Work) VerifyBackups(ctx context.Context, in offline.Places, newest bool, progress func(memory.Progress)) (memory.BackupVerifyReport, error) {
	from, keysFrom, err := w.open(in)
	if err != nil {
		return memory.BackupVerifyReport{}, err
	}
	verify := backup.Verify
	if newest {
		verify = backup.VerifyNewest
	}
	return verify(ctx, from, keysFrom, steps(progress, "bytes"))
}

// PruneBackups implements offline.Work.
func (w Work) PruneBackups(ctx context.Context, p offline.Prune, progress func(memory.Progress)) (memory.BackupPruneReport, error) {
	in, keysIn, err := w.open(p.In)
	if err != nil {
		return memory.BackupPruneReport{}, err
	}
	return backup.Prune(ctx, in, keysIn, backup.Keep{Newest: p.Newest, Within: p.Within, Damaged: p.Damaged, WithoutUnreadable: p.In.WithoutUnreadable,
		Now: w.env.Now, DryRun: p.DryRun, Progress: steps(progress, "bytes"), Confirm: p.Confirm})
}

// DrillBackup implements offline.Work.
func (w Work) DrillBackup(ctx context.Context, d offline.Drill, progress func(memory.Progress)) (memory.BackupDrillReport, error) {
	n, err := w.node()
	if err != nil {
		return memory.BackupDrillReport{}, err
	}
	c, err := w.choose(ctx, d.From, d.Backup)
	defer clear(c.Keys)
	if err != nil {
		return memory.BackupDrillReport{}, err
	}
	return n.Drill(ctx, d.Scratch, c, progress)
}

// Restore implements offline.Work.
func (w Work) Restore(ctx context.Context, r offline.Restore, progress func(memory.Progress)) (memory.RestoreReport, error) {
	n, err := w.node()
	if err != nil {
		return memory.RestoreReport{}, err
	}
	until := node.Until{Positions: r.Position, Time: r.Time}
	if r.From.Log == "" {
		report, err := n.RestoreFiles(ctx, r.DataDir, r.Log, r.Keys, until, progress)
		return memory.RestoreReport{RebuildReport: report}, err
	}
	c, err := w.choose(ctx, r.From, r.Backup)
	defer clear(c.Keys)
	if err != nil {
		return memory.RestoreReport{}, err
	}
	report, err := n.RestoreFrom(ctx, r.DataDir, node.RestoreSource{Log: c.Log, Keys: c.Keys, KeysFile: r.Keys, Until: until, Destroyed: c.Destroyed, Place: &c}, progress)
	report.Backup = c.Manifest.ID
	return report, err
}

// choose finds a backup. Its keys are to be cleared, also after an error.
func (w Work) choose(ctx context.Context, in offline.Places, id string) (backup.Chosen, error) {
	from, keysFrom, err := w.open(in)
	if err != nil {
		return backup.Chosen{}, err
	}
	return backup.Choose(ctx, from, keysFrom, backup.Which{ID: id, WithoutUnreadable: in.WithoutUnreadable})
}

// MasterKey implements offline.Work.
func (w Work) MasterKey(ctx context.Context, path string) (string, error) {
	source, err := node.MasterKeySource("file:"+path, w.env.Getenv)
	if err != nil {
		return "", err
	}
	key, err := source.MasterKey(ctx)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(key[:]), nil
}

// NATSConfig implements offline.Work.
func (w Work) NATSConfig(s offline.NATSServer) string {
	return node.ExternalNATSConfig(node.ExternalNATSServer(s))
}
