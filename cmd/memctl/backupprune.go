package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"mneme/internal/backup"
	"mneme/memory"
)

func backupPruneCmd(a *app) *cobra.Command {
	var places placeFlags
	var keep backup.Keep
	var yes bool
	within := timeFlag{now: a.sys.now}
	cmd := &cobra.Command{
		Use:   "prune --from PLACE --keys-from PLACE (--keep N | --keep-since TIME)",
		Short: "Remove backups that are no longer wanted, and all keys that the newest supersede",
		Long: placeHelp + `
Keep the newest N backups, of several eras those of later ones first, and those that were
made since a time; remove the others. The newest backup stays, and the newest that is whole. What
a kept backup goes on from is kept with it, so a chain leaves as a whole, once a later
one, begun with memctl backup --full, holds what is to be kept. Of the keys the newest
stay, and older ones that hold what the newest do not, as after a backup of a node that
came back from an older copy of itself.`,
		Example: `  memctl backup prune --from /backups/mneme --keys-from /safe/mneme --keep-since 30d --dry-run
  memctl backup prune --from /backups/mneme --keys-from /safe/mneme --keep 8 --yes`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if places.log == "" || places.keys == "" {
				return usage(cmd, "prune needs --from and --keys-from")
			}
			if keep.Newest < 0 || keep.Newest == 0 && within.t.IsZero() {
				return usage(cmd, "say what stays with --keep N or --keep-since TIME")
			}
			in, keysIn, err := places.open(a)
			if err != nil {
				return err
			}
			keep.Now = a.sys.now
			if !within.t.IsZero() {
				keep.Within = a.sys.now().Sub(within.t)
			}
			wanted := keep.DryRun
			keep.DryRun = true
			report, err := backup.Prune(cmd.Context(), in, keysIn, keep)
			if err == nil && !wanted && len(report.Removed) > 0 {
				if err = a.confirm(yes, "Remove "+count(len(report.Pruned), "backup", "backups")+" with "+filesOf(report)+", "+sizeOf(report.Bytes)+"? [y/N]", ""); err == nil {
					keep.DryRun = false
					report, err = backup.Prune(cmd.Context(), in, keysIn, keep)
				}
			}
			if err != nil {
				return err
			}
			report.DryRun = wanted
			return a.emit(report, report.Pruned, func() { printPrune(a, report) })
		},
	}
	places.from(cmd)
	cmd.Flags().IntVar(&keep.Newest, "keep", 0, "keep so many of the newest backups")
	cmd.Flags().Var(&within, "keep-since", "keep what was made since this `time`")
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
	a.printf("%s %s, %s, %s; kept %s\n", verb, count(len(r.Pruned), "backup", "backups"), filesOf(r), sizeOf(r.Bytes), count(len(r.Kept), "backup", "backups"))
}

func filesOf(r memory.BackupPruneReport) string {
	files := count(r.Files, "file", "files")
	if r.Keys > 0 {
		files += " (" + strconv.Itoa(r.Keys) + " of keys)"
	}
	return files
}
