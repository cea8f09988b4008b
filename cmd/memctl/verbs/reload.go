package verbs

import (
	"github.com/spf13/cobra"

	"mneme/memory"
)

func reloadCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Have the node read its settings, certificates and token again",
		Long: `Have the node read its settings, certificates and token again, as SIGHUP does. What
counts at once and what needs a restart is said for each setting that has changed;
docs/operate/settings.md lists both. A configuration file that cannot be used changes
nothing. The exit code is 2 where the file, or one of the certificates or the token, cannot
be used.`,
		Example: "  memctl reload\n  memctl reload --json",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			report, err := c.Process().Reload(cmd.Context())
			if err != nil {
				return err
			}
			if err := a.emit(report, nil, func() { printReload(a, report) }); err != nil {
				return err
			}
			refused := 0
			for _, f := range report.Files {
				if f.State == memory.FileRefused {
					refused++
				}
			}
			if refused > 0 {
				return memory.Errorf(memory.CodeInvalid, "reload: %s cannot be used, and what counted before still does", count(refused, "file", "files")).
					WithHint("put right what the report names, and reload again")
			}
			return nil
		},
	}
}

func printReload(a *app, r memory.ReloadReport) {
	if len(r.Settings) == 0 {
		a.println("no setting has changed")
	}
	for _, s := range r.Settings {
		when := a.paint("32", "counts now")
		if !s.Applied {
			when = a.paint("33", "counts from the next start on")
		}
		a.printf("%s: %s, was %s (%s)\n", oneLine(s.Name), setting(s.To), setting(s.From), when)
	}
	colours := map[string]string{memory.FileSame: "2", memory.FileRead: "32", memory.FileRefused: "31"}
	for _, f := range r.Files {
		a.printf("%s: %s", oneLine(f.Name), a.paint(colours[f.State], oneLine(f.State)))
		if f.Detail != "" {
			a.printf(", %s", oneLine(f.Detail))
		}
		a.println("")
	}
}

// setting is a value for people.
func setting(v string) string {
	return first(oneLine(v), "nothing")
}
