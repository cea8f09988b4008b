package node

import (
	"context"
	"io"
	"slices"

	"mneme/internal/backup"
	"mneme/memory"
)

// BackupSource opens a stopped node that is on its own, as what a backup into places is made
// from. The files of a node of a cluster may lack what the others have, so no backup goes on
// from them.
func (o Offline) BackupSource(ctx context.Context, dir string, progress func(done, total uint64), use func(backup.Source) error) error {
	cfg := o.Config
	if cfg.setDefaults(); memberOf(cfg.FS, dir) != "" {
		return memory.Errorf(memory.CodeInvalid, "%s is a stopped node of a cluster, which may lack what the others have", dir).
			WithHint("back up a node that runs; where none can, memctl backup --data-dir %s --log FILE --keys FILE takes what this one has", dir)
	}
	return o.with(ctx, dir, func(c *core) error { return use(&stoppedSource{c, progress}) })
}

// stoppedSource is a stopped node that is backed up.
type stoppedSource struct {
	*core
	progress func(done, total uint64)
}

// Log implements backup.Source.
func (c *stoppedSource) Log(ctx context.Context, w io.Writer, after string) (out memory.BackupReport, err error) {
	marks, err := c.marks(after)
	if err != nil {
		return out, err
	}
	for i, s := range slices.Backward(c.shards) {
		one, err := stopped{s}.backup(ctx, w, marks[i], c.progress)
		if err != nil {
			return memory.BackupReport{}, s.metDamage(err)
		}
		out = together(one, out)
	}
	return out, nil
}

// Keys implements backup.Source.
func (c *stoppedSource) Keys(_ context.Context, w io.Writer, withMaster bool) error {
	if !withMaster {
		return c.keys.Export(w)
	}
	return c.keys.ExportWithMaster(w)
}

// Destroyed implements backup.Source.
func (c *stoppedSource) Destroyed(context.Context) (memory.DestroyedKeys, error) {
	return c.destroyedKeys()
}
