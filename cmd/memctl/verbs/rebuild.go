package verbs

import (
	"github.com/spf13/cobra"

	"mneme/memory"
)

func rebuildCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rebuild",
		Short:   "Build the state again from the log",
		Long:    "Build the state again from the log, beside the old one, which answers reads until\nthe new one takes its place. The state hash is the same as before.",
		Example: "  memctl rebuild --json",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			bar := a.progress("rebuild")
			report, err := c.Rebuild(cmd.Context(), bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			return printRebuild(a, "rebuilt", "memctl status", report)
		},
	}
}

// printRebuild prints a report and the next step, and fails if a hash is not
// what it was.
func printRebuild(a *app, verb, next string, report memory.RebuildReport) error {
	var hashes []string
	changed := 0
	for _, s := range report.Shards {
		hashes = append(hashes, s.StateHash)
		if s.Before != "" && s.Before != s.StateHash {
			changed++
		}
	}
	if err := a.emit(report, hashes, func() {
		for _, s := range report.Shards {
			a.printf("%s shard %d: %d events to %s in %.1f s, state %s\n", verb, s.ID, s.Events, first(s.Position, "-"), float64(s.TookMS)/1000, s.StateHash)
			if s.Before != "" && s.Before != s.StateHash {
				a.printf("before it was %s\n", s.Before)
			}
		}
		if changed == 0 {
			a.next("%s", next)
		}
	}); err != nil {
		return err
	}
	if changed > 0 {
		return memory.Errorf(memory.CodeLogDiverged, "the state of %s differs from before", count(changed, "shard", "shards")).
			WithHint("run `memctl log verify`")
	}
	return nil
}
