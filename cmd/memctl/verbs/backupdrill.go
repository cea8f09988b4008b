package verbs

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

func backupDrillCmd(a *app) *cobra.Command {
	var places placeFlags
	var id, scratch string
	cmd := &cobra.Command{
		Use:   "drill --from PLACE --keys-from PLACE",
		Short: "Restore a backup on trial, and compare what comes of it",
		Long: placeHelp + `
Restore the newest backup, or the one that --backup names, into a directory that is made
and removed again, open it, read its log against its state, and compare the state hash with
the one that the node had. No running node is touched, and none is needed. A master key
that is in the backup of the keys is not written. Exit code 7 says that it is no good.

` + masterKeyHelp,
		Example: "  memctl backup drill --from /backups/mneme --keys-from /safe/mneme --json",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if places.Log == "" || places.Keys == "" {
				return usage(cmd, "a drill needs --from and --keys-from")
			}
			work, err := a.sys.work()
			if err != nil {
				return err
			}
			if scratch, err = filepath.Abs(first(scratch, os.TempDir())); err != nil {
				return err
			}
			bar := a.progress("drill")
			report, err := work.DrillBackup(cmd.Context(), offline.Drill{From: places.Places, Backup: id, Scratch: scratch}, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			if err := a.emit(report, nil, func() { printDrill(a, report) }); err != nil || report.OK {
				return err
			}
			return memory.Errorf(memory.CodeLogDiverged, "the backup %s does not give the state that was backed up", report.Backup).
				WithHint("memctl backup verify looks for damage; memctl log verify looks at the node; then make a backup with --full")
		},
	}
	places.from(cmd)
	places.passOver(cmd)
	cmd.Flags().StringVar(&id, "backup", "", "the `id` of the backup (default: the newest)")
	cmd.Flags().StringVar(&scratch, "scratch", "", "make the directory in this one (default: the system's for temporary files)")
	_ = cmd.MarkFlagDirname("scratch")
	return cmd
}

func printDrill(a *app, r memory.BackupDrillReport) {
	for _, s := range r.Shards {
		hash := "not compared"
		switch {
		case s.Want != "" && s.Same:
			hash = "the same as was backed up"
		case s.Want != "":
			hash = "NOT the one that was backed up, " + s.Want
		}
		log := "log and state agree"
		if !s.LogOK {
			log = "log and state DISAGREE"
		}
		a.printf("shard %d: %d events, state %s, %s; %s\n", s.ID, s.Events, s.StateHash, hash, log)
	}
	if r.NotCompared != "" {
		a.printf("not compared: %s\n", oneLine(r.NotCompared))
	}
	if r.Destroyed > 0 {
		a.printf("destroyed before the log was opened: %s, of which %d lived in the keys\n", count(r.Destroyed, "key", "keys"), r.DestroyedLiving)
	}
	printEraOf(a, r.BackupErasOf, "backup drill")
	verdict := "can be restored"
	if !r.OK {
		verdict = "is no good"
	}
	a.printf("the backup %s of %s %s: %s in %s\n", r.Backup, a.clock(r.MadeAt), verdict, count(int(r.Records), "memory", "memories"), took(r.TookMS))
}
