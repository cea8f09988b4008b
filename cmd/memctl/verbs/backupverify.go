package verbs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mneme/memory"
)

func backupVerifyCmd(a *app) *cobra.Command {
	var places placeFlags
	var newest bool
	cmd := &cobra.Command{
		Use:   "verify --from PLACE [--keys-from PLACE] [--newest]",
		Short: "Read all backups of a place, and say what is wrong",
		Long: placeHelp + `
Read everything: each file against its manifest, each range of the log against the one
before it, and all against one cluster and those that it was made of. What is truncated, changed, mixed up or of another
cluster is named, with the backups that cannot be restored for it. Nothing is opened: that
is what memctl backup drill does. Exit code 7 says that something is wrong.

With --newest only the newest backup is read, with all that it goes on from, and of the
others what a restore of it needs: their manifests and lists. So exit code 7 says that the
newest cannot be restored as it is.`,
		Example: "  memctl backup verify --from /backups/mneme --keys-from /safe/mneme\n  memctl backup verify --from /backups/mneme --keys-from /safe/mneme --newest",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if places.Log == "" {
				return usage(cmd, "say which place with --from, and that of the keys with --keys-from")
			}
			work, err := a.sys.work()
			if err != nil {
				return err
			}
			bar := a.progress("verify")
			report, err := work.VerifyBackups(cmd.Context(), places.Places, newest, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			if err := a.emit(report, nil, func() { printBackupVerify(a, report, places) }); err != nil || report.OK {
				return err
			}
			return notWhole(report, places)
		},
	}
	places.from(cmd)
	cmd.Flags().BoolVar(&newest, "newest", false, "read the newest backup alone, with all that it goes on from")
	return cmd
}

// notWhole says what is wrong with a place: with the newest backup, or with others only.
func notWhole(r memory.BackupVerifyReport, in placeFlags) error {
	problems, damaged := count(len(r.Problems), "problem", "problems"), fmt.Sprintf("memctl backup prune --damaged --from %s --keys-from %s", in.Log, first(in.Keys, "PLACE"))
	if r.NewestOK {
		return memory.Errorf(memory.CodeLogDiverged, "%s in %s; the newest backup, %s, can be restored", problems, r.Place, r.Newest).
			WithHint("put back from a copy what is named; or %s --dry-run shows what can be removed of it", damaged)
	}
	return memory.Errorf(memory.CodeLogDiverged, "%s in %s; the newest backup cannot be restored as it is", problems, r.Place).
		WithHint("put back from a copy what is named; where there is none, memctl backup --full makes a backup that needs none of it, and %s removes the bad one then", damaged)
}

func printBackupVerify(a *app, r memory.BackupVerifyReport, in placeFlags) {
	for _, p := range r.Problems {
		a.printf("%s  %s: %s\n", p.Backup, p.Kind, oneLine(p.Detail))
		if len(p.Also) > 0 {
			a.printf("  for it these cannot be restored either: %s\n", strings.Join(p.Also, " "))
		}
	}
	for _, name := range r.Leftovers {
		a.printf("%s belongs to no backup; the next run removes it once it is a day old\n", oneLine(name))
	}
	if !r.OK {
		if r.NewestIntact != "" && r.NewestIntact != r.Newest {
			a.printf("the newest backup that checks is %s\n", r.NewestIntact)
		}
		return
	}
	of := "of the cluster " + r.Cluster
	if n := len(r.Eras); n > 1 {
		of = fmt.Sprintf("of %d eras, the present one of the cluster %s", n, r.Cluster)
	}
	if r.NewestOnly {
		of += ", of which the newest and what it goes on from were read"
	}
	a.printf("%s %s, %s read in %s\n", count(r.Backups, "backup", "backups"), of, sizeOf(r.Bytes), took(r.TookMS))
	a.printf("the newest is %s of %s, up to %s\n", r.Newest, a.clock(*r.MadeAt), r.Position)
	if in.Keys == "" {
		a.println("the keys were not looked at: --keys-from PLACE names them")
		return
	}
	a.next("memctl backup drill --from %s --keys-from %s", in.Log, in.Keys)
}
