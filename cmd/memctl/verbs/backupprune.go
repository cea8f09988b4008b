package verbs

import (
	"strconv"

	"github.com/spf13/cobra"

	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

func backupPruneCmd(a *app) *cobra.Command {
	var places placeFlags
	var keep offline.Prune
	var yes bool
	within := timeFlag{now: a.sys.now}
	cmd := &cobra.Command{
		Use:   "prune --from PLACE --keys-from PLACE (--keep N | --keep-since TIME | --damaged)",
		Short: "Remove backups that are no longer wanted, or that are damaged",
		Long: placeHelp + `
Keep the newest N backups, of several eras those of later ones first, and those that were
made since a time; remove the others. The newest backup stays. What a kept backup goes on
from is kept with it, so a chain leaves as a whole, once a later one, begun with memctl
backup --full, holds what is to be kept. Of the keys the newest stay, and older ones that
hold what the newest do not, as after a backup of a node that came back from an older copy
of itself.

Before anything is removed the newest backup is read, with all that it goes on from: as
much as the log once. If it does not check, nothing is removed, and the exit code is 7.

With --damaged everything is read, and what does not check is removed, with what goes on
from it, and nothing else but keys that the newest supersede. The last good backup stays,
and so does what alone knows, or may know, that something was forgotten.`,
		Example: `  memctl backup prune --from /backups/mneme --keys-from /safe/mneme --keep-since 30d --dry-run
  memctl backup prune --from /backups/mneme --keys-from /safe/mneme --keep 8 --yes
  memctl backup prune --from /backups/mneme --keys-from /safe/mneme --damaged --dry-run`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if places.Log == "" || places.Keys == "" {
				return usage(cmd, "prune needs --from and --keys-from")
			}
			if byAge := keep.Newest != 0 || !within.t.IsZero(); keep.Newest < 0 || byAge == keep.Damaged {
				return usage(cmd, "say what stays with --keep N or --keep-since TIME, or, without them, that what is damaged goes with --damaged")
			}
			if places.WithoutUnreadable && !keep.Damaged {
				return usage(cmd, "--without-unreadable is for --damaged")
			}
			work, err := a.sys.work()
			if err != nil {
				return err
			}
			keep.In = places.Places
			if !within.t.IsZero() {
				keep.Within = a.sys.now().Sub(within.t)
			}
			bar := a.progress("read")
			keep.Confirm = func(would memory.BackupPruneReport) error {
				bar.finish()
				return a.confirm(yes, "Remove "+count(len(would.Pruned), "backup", "backups")+" with "+filesOf(would)+", "+sizeOf(would.Bytes)+"? [y/N]", "")
			}
			report, err := work.PruneBackups(cmd.Context(), keep, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			return a.emit(report, report.Pruned, func() { printPrune(a, report) })
		},
	}
	places.from(cmd)
	places.passOver(cmd)
	cmd.Flags().IntVar(&keep.Newest, "keep", 0, "keep so many of the newest backups")
	cmd.Flags().Var(&within, "keep-since", "keep what was made since this `time`")
	cmd.Flags().BoolVar(&keep.Damaged, "damaged", false, "remove the backups that do not check, and what goes on from them")
	cmd.Flags().BoolVar(&keep.DryRun, "dry-run", false, "say what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func printPrune(a *app, r memory.BackupPruneReport) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, name := range r.Removed {
		a.printf("%s %s\n", verb, oneLine(name))
	}
	printKeysKept(a, r.KeysKept)
	a.printf("%s was read and checks\n", r.Checked)
	a.printf("%s %s, %s, %s; kept %s\n", verb, count(len(r.Pruned), "backup", "backups"), filesOf(r), sizeOf(r.Bytes), count(len(r.Kept), "backup", "backups"))
}

func filesOf(r memory.BackupPruneReport) string {
	files := count(r.Files, "file", "files")
	if r.Keys > 0 {
		files += " (" + strconv.Itoa(r.Keys) + " of keys)"
	}
	return files
}
