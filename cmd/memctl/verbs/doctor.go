package verbs

import (
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"mneme/cmd/memctl/offline"
	"mneme/memory"
)

// dataDirFlag adds --data-dir to a verb that also works on a stopped node.
func dataDirFlag(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.flags.dataDir, "data-dir", "", "work on the data directory of a stopped node")
	_ = cmd.MarkFlagDirname("data-dir")
}

// offlineVerbs are the verbs that a remedy may name and that take --data-dir.
var offlineVerbs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`memctl (?:doctor|log verify|log repair|aside remove)(?: --data-dir DIR)?`)
})

// here makes a remedy for a stopped node name its data directory: without it the
// verb asks a node that does not run, or another one.
func (a *app) here(remedy string) string {
	if a.flags.dataDir == "" {
		return remedy
	}
	dir := a.flags.dataDir
	if strings.ContainsAny(dir, " \t\"'\\$`&;()<>|*?#~") {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return offlineVerbs().ReplaceAllStringFunc(remedy, func(verb string) string {
		return strings.TrimSuffix(verb, " --data-dir DIR") + " --data-dir " + dir
	})
}

// offline returns who works on data directories.
func (a *app) offline() (offline.Node, error) {
	work, err := a.sys.work()
	if err != nil {
		return nil, err
	}
	return work.Stopped()
}

func doctorCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the node and say what to do",
		Long: `Check the node and say what to do. The exit code is 7 if a check failed.
` + masterKeyHelp,
		Example: `  memctl doctor
  memctl doctor --data-dir ~/.mneme`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := doctor(a, cmd, a.flags.dataDir)
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
	dataDirFlag(a, cmd)
	return cmd
}

func doctor(a *app, cmd *cobra.Command, dir string) (memory.DoctorReport, error) {
	if dir != "" {
		off, err := a.offline()
		if err != nil {
			return memory.DoctorReport{}, err
		}
		report, err := off.Doctor(cmd.Context(), dir)
		for i := range report.Checks {
			report.Checks[i].Hint = a.here(report.Checks[i].Hint)
		}
		return report, err
	}
	c, err := a.dialOperator(cmd.Context())
	if err != nil {
		return memory.DoctorReport{}, err
	}
	return c.Doctor(cmd.Context())
}

func printDoctor(a *app, report memory.DoctorReport) {
	colours := map[string]string{"ok": "32", "warn": "33", "fail": "31"}
	warned := 0
	for _, c := range report.Checks {
		if c.State == "warn" {
			warned++
		}
		state := oneLine(c.State)
		a.printf("%s %s: %s\n", a.paint(colours[state], padRight(state, 4)), oneLine(c.Name), oneLine(c.Detail))
		if c.Hint != "" {
			a.printf("     %s\n", oneLine(c.Hint))
		}
	}
	switch {
	case report.OK && warned == 0:
		a.println("all is well")
	case report.OK:
		a.printf("nothing is broken; %s above\n", count(warned, "warning", "warnings"))
	}
}

func padRight(s string, n int) string {
	for len(s) < n {
		s += " "
	}
	return s
}
