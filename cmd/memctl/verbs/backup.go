package verbs

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"mneme/memory"
)

func backupCmd(a *app) *cobra.Command {
	var logPath, keysPath string
	var into backupInto
	cmd := &cobra.Command{
		Use:   "backup --to PLACE --keys-to PLACE | --log FILE --keys FILE",
		Short: "Write a backup: the log, which is sealed, and the keys that open it",
		Long: placeHelp + `
--to and --keys-to make a backup in places. It holds what the log has got since the
newest one there and goes on from it; the first one, and one with --full, holds all
of it. So does the first one of a cluster that memctl cluster init or recover has made
of the one whose backups are there: it begins an era. Each file is read back before the backup counts. A run that is cut short
leaves nothing that counts. Keys that were written before the last erasure are
removed: the newest open every backup.

--log and --keys write all of it as two files. Files that are there are replaced, as
a whole and once both new ones are written. After something was erased, the keys must
be written again: --keys alone does that.

--data-dir is for a stopped node. Of one of a cluster a backup, in two files, holds what
that node has, and nothing of what the others acknowledged or erased without it: back up a
node that runs, or, where none can, each that is left, and keep the one with the last
position. restore makes a node on its own of it. The files of the node stay as they are.`,
		Example: `  memctl backup --to /backups/mneme --keys-to /safe/mneme
  memctl backup --log mneme.log.bak --keys /safe/mneme.keys.bak
  memctl backup --keys /safe/mneme.keys.bak
  memctl backup --data-dir ~/.mneme --log log.bak --keys keys.bak
  memctl backup --data-dir n1 --log n1.log.bak --keys n1.keys.bak`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if into.given() {
				if logPath != "" || keysPath != "" {
					return usage(cmd, "--to and --keys-to make a backup in places, --log and --keys one in files")
				}
				return into.run(a, cmd)
			}
			if logPath == "" && keysPath == "" {
				return usage(cmd, "say where to write with --to PLACE and --keys-to PLACE, or with --log FILE and --keys FILE")
			}
			if sameFile(logPath, keysPath) {
				return usage(cmd, "--log and --keys are the same file")
			}
			bar := a.progress("backup")
			report, err := backupFiles(a, cmd.Context(), a.flags.dataDir, logPath, keysPath, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			return a.emit(report, nil, func() { printBackup(a, report) })
		},
	}
	cmd.Flags().StringVar(&logPath, "log", "", "write the log to this file")
	cmd.Flags().StringVar(&keysPath, "keys", "", "write the keys to this file")
	into.flags(cmd)
	dataDirFlag(a, cmd)
	cmd.AddCommand(backupListCmd(a), backupVerifyCmd(a), backupDrillCmd(a), backupPruneCmd(a))
	return cmd
}

func sameFile(a, b string) bool {
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return a != "" && b != "" && err1 == nil && err2 == nil && x == y
}

func backupFiles(a *app, ctx context.Context, dir, logPath, keysPath string, progress func(memory.Progress)) (memory.BackupReport, error) {
	if dir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.BackupReport{}, err
		}
		return off.Backup(ctx, dir, logPath, keysPath, progress)
	}
	c, err := a.dialOperator(ctx)
	if err != nil {
		return memory.BackupReport{}, err
	}
	part := func(path string, get func(io.Writer) error) error {
		if path == "" {
			return get(nil)
		}
		return replaceFile(path, 0o600, func(f *os.File) error { return get(f) })
	}
	// The log first: keys are durable before their first use in the log, so
	// keys copied after the log open everything in it. It takes its place last: if
	// that fails, the older log has newer keys, which open it.
	var report, keys memory.BackupReport
	err = part(logPath, func(w io.Writer) (err error) {
		if w != nil {
			if report, err = c.Backups().Log(ctx, w, "", progress); err != nil {
				return err
			}
		}
		return part(keysPath, func(w io.Writer) (err error) {
			if w != nil {
				keys, err = c.Backups().Keys(ctx, w, true, progress)
			}
			return err
		})
	})
	if err != nil {
		return report, err
	}
	report.Log, report.Keys = logPath, keysPath
	report.Bytes += keys.Bytes
	report.Position = first(report.Position, keys.Position)
	return report, nil
}

func printBackup(a *app, r memory.BackupReport) {
	if r.Log != "" {
		a.printf("log   %s", r.Log)
		if r.Position != "" {
			a.printf(" up to %s, %d events", r.Position, r.Events)
		}
		a.println("")
	}
	if r.Keys != "" {
		a.printf("keys  %s\n", r.Keys)
	}
	if r.Stopped != nil {
		a.printf("node  %s of a cluster, which was stopped: what the others acknowledged or erased without it is not in it\n", oneLine(r.Stopped.Node))
		for _, what := range r.Stopped.Lacks {
			a.printf("lacks %s\n", oneLine(what))
		}
	}
	switch {
	case r.Log == "" || r.Keys == "":
		a.println("a backup needs both files")
	default:
		a.println("keep the keys apart from the log: together they hold every memory")
		a.next("memctl restore --data-dir NEW --log %s --keys %s", r.Log, r.Keys)
	}
}
