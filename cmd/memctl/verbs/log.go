package verbs

import (
	"github.com/spf13/cobra"

	"mneme/memory"
)

func logCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "log",
		Short: "Verify and repair the event log",
		Example: `  memctl log verify
  memctl log repair`,
	})
	cmd.AddCommand(logVerifyCmd(a), logRepairCmd(a))
	return cmd
}

func logVerifyCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the whole log against its hash chain",
		Long: "Check the whole log against its hash chain, and on a node of several the files of its own copy.\n" +
			"The exit code is 7 if one of them is damaged.",
		Example: `  memctl log verify
  memctl log verify --data-dir ~/.mneme`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bar := a.progress("verify")
			report, err := verifyLog(a, cmd, a.flags.dataDir, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			bad := 0
			for _, s := range report.Shards {
				if !s.OK {
					bad++
				}
			}
			if err := a.emit(report, nil, func() { printVerify(a, report, bad) }); err != nil {
				return err
			}
			if c := report.Copy; c != nil && !c.OK {
				return memory.Errorf(memory.CodeLogDiverged, "the copy of the log at %s is damaged: %s", c.Node, c.Problem).WithHint("%s", c.Hint)
			}
			if bad > 0 {
				return memory.Errorf(memory.CodeLogDiverged, "the log of %s is damaged", count(bad, "shard", "shards")).
					WithHint("`memctl log repair` writes it again from the state")
			}
			return nil
		},
	}
	dataDirFlag(a, cmd)
	return cmd
}

func verifyLog(a *app, cmd *cobra.Command, dir string, report func(memory.Progress)) (memory.VerifyReport, error) {
	if dir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.VerifyReport{}, err
		}
		found, err := off.VerifyLog(cmd.Context(), dir, report)
		for i := range found.Shards {
			found.Shards[i].Hint = a.here(found.Shards[i].Hint)
		}
		return found, err
	}
	c, err := a.dialOperator(cmd.Context())
	if err != nil {
		return memory.VerifyReport{}, err
	}
	return c.VerifyLog(cmd.Context(), report)
}

func printVerify(a *app, report memory.VerifyReport, bad int) {
	for _, s := range report.Shards {
		state := a.paint("32", "ok")
		if !s.OK {
			state = a.paint("31", "damaged")
		}
		a.printf("shard %d: %s, log %d to %d, %d frames, %d events\n", s.ID, state, s.First, s.Last, s.Frames, s.Events)
		for _, p := range s.Problems {
			a.printf("  %s\n", oneLine(p))
		}
		if s.Hint != "" {
			a.printf("  %s\n", oneLine(s.Hint))
		}
	}
	if c := report.Copy; c != nil {
		state := a.paint("32", "ok")
		if !c.OK {
			state = a.paint("31", "damaged")
		}
		a.printf("copy at %s: %s, %s, %d bytes\n", oneLine(c.Node), state, count(c.Files, "file", "files"), c.Bytes)
		if !c.OK {
			a.printf("  %s\n  %s\n", oneLine(c.Problem), oneLine(c.Hint))
		}
	}
	if bad > 0 && (report.Copy == nil || report.Copy.OK) { // else another node leads soon, whose copy is read then
		a.next("memctl log repair")
	}
}

func logRepairCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Write lost or damaged parts of the log again from the state",
		Long: "Write lost or damaged parts of the log again from the state, at the same sequences. It reads the\n" +
			"whole log first and leaves a sound one alone. With --data-dir it works on a stopped node.",
		Example: `  memctl log repair
  memctl log repair --data-dir ~/.mneme`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bar := a.progress("repair")
			report, err := repairLog(a, cmd, a.flags.dataDir, bar.report)
			bar.finish()
			if err != nil {
				return err
			}
			return a.emit(report, nil, func() { printRepair(a, report) })
		},
	}
	dataDirFlag(a, cmd)
	return cmd
}

func repairLog(a *app, cmd *cobra.Command, dir string, report func(memory.Progress)) (memory.RepairReport, error) {
	if dir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.RepairReport{}, err
		}
		return off.RepairLog(cmd.Context(), dir, report)
	}
	c, err := a.dialOperator(cmd.Context())
	if err != nil {
		return memory.RepairReport{}, err
	}
	return c.RepairLog(cmd.Context(), report)
}

func printRepair(a *app, report memory.RepairReport) {
	for _, s := range report.Shards {
		a.printf("shard %d: %d frames with %d events written again, now epoch %d at %s\n", s.ID, s.Restored, s.Events, s.Epoch, first(s.Position, "-"))
		if s.Detail != "" {
			a.printf("  %s\n", oneLine(s.Detail))
		}
	}
	a.next("memctl log verify")
}
