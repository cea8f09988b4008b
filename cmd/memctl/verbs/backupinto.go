package verbs

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

// backupInto makes a backup in places.
type backupInto struct {
	places placeFlags
	full   bool
	alone  bool // the keys without their master key
}

func (b *backupInto) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.places.Log, "to", "", "the `place` for the backup")
	cmd.Flags().StringVar(&b.places.Keys, "keys-to", "", "the `place` for its keys")
	cmd.Flags().BoolVar(&b.alone, "without-master", false, "with --keys-to: leave the master key out, which must be kept elsewhere then")
	b.places.passOver(cmd)
	cmd.Flags().BoolVar(&b.full, "full", false, "with --to: write all of the log, though there is a backup to go on from")
}

func (b *backupInto) given() bool {
	return b.places.Log != "" || b.places.Keys != "" || b.full || b.alone || b.places.WithoutUnreadable
}

func (b *backupInto) run(a *app, cmd *cobra.Command) error {
	if b.places.Log == "" || b.places.Keys == "" {
		return usage(cmd, "a backup in places needs --to and --keys-to")
	}
	work, err := a.sys.work()
	if err != nil {
		return err
	}
	bar := a.progress("backup")
	made, err := b.make(a, cmd.Context(), work, bar.report)
	bar.finish()
	if err != nil {
		return err
	}
	return a.emit(made, []string{made.ID}, func() { printMade(a, made, b.places) })
}

func (b *backupInto) make(a *app, ctx context.Context, work offline.Work, progress func(memory.Progress)) (memory.BackupMade, error) {
	req := offline.NewBackup{To: b.places.Places, DataDir: a.flags.dataDir, Full: b.full, WithoutMaster: b.alone}
	if req.DataDir == "" {
		c, err := a.dialOperator(ctx)
		if err != nil {
			return memory.BackupMade{}, err
		}
		req.Node = runningNode{c.Backups(), progress}
	}
	return work.MakeBackup(ctx, req, progress)
}

// runningNode is what a backup of a running node is made from.
type runningNode struct {
	client.Backups
	progress func(memory.Progress)
}

// Log implements offline.Source.
func (r runningNode) Log(ctx context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	return r.Backups.Log(ctx, w, after, r.progress)
}

// Keys implements offline.Source.
func (r runningNode) Keys(ctx context.Context, w io.Writer, withMaster bool) error {
	_, err := r.Backups.Keys(ctx, w, withMaster, nil)
	return err
}

func printMade(a *app, made memory.BackupMade, in placeFlags) {
	if made.Begun != "" {
		a.printf("begun anew: %s\n", oneLine(made.Begun))
	}
	what := "all of the log"
	if made.Parent != "" {
		what = "what followed " + made.Parent
	}
	a.printf("backup %s: %s, up to %s, %d events, %s in %s\n", made.ID, what, made.Position, made.Events, sizeOf(made.Bytes), took(made.TookMS))
	for _, name := range made.Removed {
		a.printf("removed %s, which no backup needs\n", oneLine(name))
	}
	printKeysKept(a, made.KeysKept)
	if made.Unknown > 0 {
		a.printf("this node does not know that %s had been destroyed: it came back from an older copy of itself, and what they open may live in it; a restore of this backup destroys them\n", count(made.Unknown, "key", "keys"))
	}
	a.next("memctl backup verify --from %s --keys-from %s", in.Log, in.Keys)
}

// printKeysKept says which older keys stay, and what that means for what was forgotten.
func printKeysKept(a *app, names []string) {
	for _, name := range names {
		a.printf("kept %s: it holds keys, or the master key, that the newest lack, and with it what was destroyed since can be opened; once you do not need it, remove it\n", oneLine(name))
	}
}

func took(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
