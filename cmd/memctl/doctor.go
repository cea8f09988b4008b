package main

import (
	"github.com/spf13/cobra"

	"mneme/memory"
)

// dataDirFlag adds --data-dir to a verb that also works on a stopped node.
func dataDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "data-dir", "", "work on the data directory of a stopped node")
	_ = cmd.MarkFlagDirname("data-dir")
}

// offline returns what works on data directories.
func (a *app) offline() (Offline, error) {
	if a.sys.offline == nil {
		return nil, memory.Errorf(memory.CodeInternal, "work on a data directory is not available in this build").
			WithHint("start the node and leave out --data-dir")
	}
	return a.sys.offline, nil
}

func doctorCmd(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the node and say what to do",
		Long:  "Check the node and say what to do. The exit code is 7 if a check failed.",
		Example: `  memctl doctor
  memctl doctor --data-dir ~/.mneme`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := doctor(a, cmd, dir)
			if err != nil {
				return err
			}
			if err := a.emit(report, nil, func() { printDoctor(a, report) }); err != nil {
				return err
			}
			failed := 0
			for _, c := range report.Checks {
				if c.State == "fail" {
					failed++
				}
			}
			if failed > 0 || !report.OK {
				return memory.Errorf(memory.CodeLogDiverged, "doctor: %s failed", count(failed, "check", "checks")).
					WithHint("the report names what to do for each")
			}
			return nil
		},
	}
	dataDirFlag(cmd, &dir)
	return cmd
}

func doctor(a *app, cmd *cobra.Command, dir string) (memory.DoctorReport, error) {
	if dir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.DoctorReport{}, err
		}
		return off.Doctor(cmd.Context(), dir)
	}
	c, err := a.dialOperator(cmd.Context())
	if err != nil {
		return memory.DoctorReport{}, err
	}
	return c.Doctor(cmd.Context())
}

func printDoctor(a *app, report memory.DoctorReport) {
	colours := map[string]string{"ok": "32", "warn": "33", "fail": "31"}
	for _, c := range report.Checks {
		state := oneLine(c.State)
		a.printf("%s %s: %s\n", a.paint(colours[state], padRight(state, 4)), oneLine(c.Name), oneLine(c.Detail))
		if c.Hint != "" {
			a.printf("     %s\n", oneLine(c.Hint))
		}
	}
	if report.OK {
		a.println("all is well")
	}
}

func padRight(s string, n int) string {
	for len(s) < n {
		s += " "
	}
	return s
}
