package verbs

import (
	"strconv"

	"github.com/spf13/cobra"

	"mneme/memory"
)

func backupListCmd(a *app) *cobra.Command {
	var places placeFlags
	cmd := &cobra.Command{
		Use:     "list --from PLACE",
		Short:   "List the backups of a place",
		Long:    placeHelp + "\nList its backups, oldest first, of several eras by era. What can be seen without reading them is looked at;\n`memctl backup verify` reads everything.",
		Example: "  memctl backup list --from /backups/mneme",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if places.Log == "" {
				return usage(cmd, "say which place with --from")
			}
			work, err := a.sys.work()
			if err != nil {
				return err
			}
			list, err := work.Backups(cmd.Context(), places.Log)
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
	cmd.Flags().StringVar(&places.Log, "from", "", "the `place` of the backups")
	return cmd
}

func printBackupList(a *app, list memory.BackupList) {
	if len(list.Backups) == 0 {
		a.printf("there is no backup in %s\n", oneLine(list.Place))
		return
	}
	columns := []column{{name: "BACKUP"}, {name: "MADE"}, {name: "EVENTS", right: true}, {name: "SIZE", right: true}, {name: "UP TO"}}
	eras := len(list.Eras) > 1
	if eras {
		columns = append(columns, column{name: "ERA", right: true})
	}
	rows := make([][]string, len(list.Backups))
	for i, b := range list.Backups {
		kind := "full"
		if b.Parent != "" {
			kind = "after " + b.Parent
		}
		rows[i] = []string{b.ID, a.clock(b.MadeAt), strconv.FormatUint(b.Events, 10), sizeOf(b.Bytes), b.Position}
		if eras {
			rows[i] = append(rows[i], eraOf(b.Era))
		}
		rows[i] = append(rows[i], first(b.Problem, kind))
	}
	a.table(append(columns, column{name: "WHAT", flex: true}), rows)
	if eras {
		printEras(a, list.Eras)
	}
}

// eraOf prints the number of an era; foreign clusters have none.
func eraOf(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// printEras says what a place holds of clusters that were made of each other.
func printEras(a *app, eras []memory.BackupEra) {
	for i, e := range eras {
		present := ""
		if i == len(eras)-1 {
			present = "; restore and drill take it unless --backup names another"
		}
		a.printf("era %d is of the cluster %s: %s, the newest %s of %s%s\n", i+1, e.Cluster, count(e.Backups, "backup", "backups"), e.Newest, a.clock(e.MadeAt), present)
	}
}

// printEraOf says from which era a backup is, and how to take another one.
func printEraOf(a *app, of memory.BackupErasOf, verb string) {
	if of.Era == 0 {
		return
	}
	last := len(of.Eras)
	a.printf("it is of era %d of %d, of the cluster %s\n", of.Era, last, of.Eras[of.Era-1].Cluster)
	for i, e := range of.Eras {
		if i+1 != of.Era {
			a.printf("the newest of era %d, of %s: memctl %s … --backup %s\n", i+1, a.clock(e.MadeAt), verb, e.Newest)
		}
	}
}
