package verbs

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

// masterKeyHelp says how a verb that opens a data directory gets the master key.
const masterKeyHelp = `MNEME_MASTER_KEY says where the master key of a data directory is, as --master-key
does for memnode: file (its keys/ folder, the default), file:/PATH, env:NAME or command:PROGRAM.`

func restoreCmd(a *app) *cobra.Command {
	f := restoreFlags{at: timeFlag{now: a.sys.now}}
	const long = `Make a data directory from a backup. No node may be running there.

` + placeHelp + `--from and --keys-from restore the newest backup of a place, or the one that --backup
names: of several eras, the newest of the last one. What was forgotten since stays forgotten: all keys that a backup there knows as
destroyed are destroyed before the log is opened, also where --keys names an older copy
of the keys. --log and --keys restore a backup that was written as two files.

--to-position and --to-time end earlier: with the event at a position, of several shards
one for each, separated by commas; or with the last one that was sealed by then. What was
written at once is not cut.

` + masterKeyHelp
	cmd := &cobra.Command{
		Use:   "restore --data-dir DIR (--from PLACE --keys-from PLACE | --log FILE --keys FILE)",
		Short: "Make a data directory from a backup",
		Long:  long,
		Example: `  memctl restore --data-dir ~/.mneme-restored --from /backups/mneme --keys-from /safe/mneme
  memctl restore --data-dir before --from /backups/mneme --keys-from /safe/mneme --to-time 2h
  memctl restore --data-dir ~/.mneme-restored --log mneme.log.bak --keys mneme.keys.bak`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			work, err := a.sys.work()
			if err != nil {
				return err
			}
			bar := a.progress("restore")
			report, err := f.run(cmd.Context(), work, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			if source := a.sys.getenv("MNEME_MASTER_KEY"); source == "" || source == "file" {
				a.note("the master key is in %s, in clear; MNEME_MASTER_KEY=env:NAME or command:PROGRAM keeps it elsewhere", filepath.Join(f.dir, "keys", "master.key"))
			}
			return printRestore(a, f.dir, report)
		},
	}
	cmd.Flags().StringVar(&f.log, "log", "", "the backup of the log")
	cmd.Flags().StringVar(&f.keys, "keys", "", "the backup of the keys")
	f.places.from(cmd)
	f.places.passOver(cmd)
	cmd.Flags().StringVar(&f.backup, "backup", "", "the `id` of the backup (default: the newest)")
	cmd.Flags().StringVar(&f.position, "to-position", "", "end with the event at this `position`")
	cmd.Flags().Var(&f.at, "to-time", "end with what was sealed by this `time`")
	cmd.Flags().StringVar(&f.dir, "data-dir", "", "the data directory to make")
	_ = cmd.MarkFlagDirname("data-dir")
	return cmd
}

// restoreFlags say what to restore.
type restoreFlags struct {
	dir, log, keys   string
	places           placeFlags
	backup, position string
	at               timeFlag
}

func (f *restoreFlags) check(cmd *cobra.Command) error {
	files, place := f.log != "" && f.keys != "", f.places.Log != "" && (f.places.Keys != "") != (f.keys != "")
	switch {
	case f.dir == "":
		return usage(cmd, "restore needs --data-dir")
	case f.places.Log == "" && !files:
		return usage(cmd, "restore needs --from and --keys-from, or --log and --keys")
	case f.places.Log != "" && (f.log != "" || !place):
		return usage(cmd, "--from goes with one of --keys-from and --keys")
	case f.places.Log == "" && (f.places.Keys != "" || f.backup != "" || f.places.WithoutUnreadable):
		return usage(cmd, "--keys-from, --backup and --without-unreadable go with --from")
	case f.position != "" && !f.at.t.IsZero():
		return usage(cmd, "--to-position and --to-time both say where to end: give one of them")
	}
	return nil
}

func (f *restoreFlags) run(ctx context.Context, work offline.Work, progress func(memory.Progress)) (memory.RestoreReport, error) {
	return work.Restore(ctx, offline.Restore{DataDir: f.dir, From: f.places.Places, Backup: f.backup, Log: f.log, Keys: f.keys, Position: f.position, Time: f.at.t}, progress)
}

func printRestore(a *app, dir string, report memory.RestoreReport) error {
	var hashes []string
	for _, s := range report.Shards {
		hashes = append(hashes, s.StateHash)
	}
	return a.emit(report, hashes, func() {
		for _, s := range report.Shards {
			a.printf("restored shard %d: %d events to %s in %.1f s, state %s\n", s.ID, s.Events, first(s.Position, "-"), float64(s.TookMS)/1000, s.StateHash)
			a.println("one of them is the start of the new term, which is not in the backup")
		}
		if report.Backup != "" {
			a.printf("of the backup %s\n", report.Backup)
			printEraOf(a, report.BackupErasOf, "restore")
			if n := len(report.Eras); report.Era < n {
				a.println("it is a cluster of its own now: the next backup in that place begins an era")
			}
		}
		if report.Destroyed > 0 {
			a.printf("destroyed again, before the log was opened, %s that the backups there know as destroyed; %d of them lived in the keys\n", count(report.Destroyed, "key", "keys"), report.DestroyedLiving)
		}
		a.next("memnode --data-dir %s", dir)
	})
}
