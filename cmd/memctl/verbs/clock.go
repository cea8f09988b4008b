package verbs

import (
	"github.com/spf13/cobra"
)

func clockCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "clock",
		Short:   "Vouch for a clock that the node refuses",
		Example: `  memctl clock accept`,
	})
	cmd.AddCommand(clockAcceptCmd(a))
	return cmd
}

func clockAcceptCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "accept",
		Short: "Go on writing with the node's clock as it stands",
		Long: `Go on writing with the node's clock as it stands. A node refuses writes when its
clock went forward further than real time, or stands far past the last event:
times in the log never go back. Make sure that the clock is right. A clock that is
behind the last event cannot be accepted: set it right, or wait until it is there.`,
		Example: "  memctl clock accept",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			report, err := c.Process().AcceptClock(cmd.Context())
			if err != nil {
				return err
			}
			return a.emit(report, nil, func() {
				a.printf("writing goes on at %s\n", report.Now.UTC().Format("2006-01-02 15:04:05 UTC"))
			})
		},
	}
}
