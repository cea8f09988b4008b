package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"mneme/internal/backup"
	"mneme/memory"
)

func backupListCmd(a *app) *cobra.Command {
	var places placeFlags
	cmd := &cobra.Command{
		Use:     "list --from PLACE",
		Short:   "List the backups of a place",
		Long:    placeHelp + "\nList its backups, oldest first. What can be seen without reading them is looked at;\n`memctl backup verify` reads everything.",
		Example: "  memctl backup list --from /backups/mneme",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if places.log == "" {
				return usage(cmd, "say which place with --from")
			}
			from, err := openPlace(places.log, a.sys)
			if err != nil {
				return err
			}
			list, err := backup.List(cmd.Context(), from)
			if err != nil {
				return err
			}
			ids := make([]string, len(list.Backups))
			for i, b := range list.Backups {
				ids[i] = b.ID
			}
			return a.emit(list, ids, func() { printBackupList(a, list) })
		},
	}
	cmd.Flags().StringVar(&places.log, "from", "", "the `place` of the backups")
	return cmd
}

func printBackupList(a *app, list memory.BackupList) {
	if len(list.Backups) == 0 {
		a.printf("there is no backup in %s\n", oneLine(list.Place))
		return
	}
	rows := make([][]string, len(list.Backups))
	for i, b := range list.Backups {
		kind := "full"
		if b.Parent != "" {
			kind = "after " + b.Parent
		}
		rows[i] = []string{b.ID, a.clock(b.MadeAt), strconv.FormatUint(b.Events, 10), sizeOf(b.Bytes), b.Position, first(b.Problem, kind)}
	}
	a.table([]column{{name: "BACKUP"}, {name: "MADE"}, {name: "EVENTS", right: true}, {name: "SIZE", right: true}, {name: "UP TO"}, {name: "WHAT", flex: true}}, rows)
}
