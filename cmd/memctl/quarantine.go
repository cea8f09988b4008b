package main

import (
	"github.com/spf13/cobra"
)

func quarantineCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "quarantine",
		Short:   "List events in the log that could not be understood, oldest first",
		Example: "  memctl quarantine",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			list, err := c.Quarantine(cmd.Context())
			if err != nil {
				return err
			}
			var ids []string
			var rows [][]string
			for _, q := range list.Quarantined {
				ids = append(ids, q.Position)
				rows = append(rows, []string{q.Position, q.Code, q.Detail})
			}
			return a.emit(list, ids, func() {
				if len(rows) == 0 {
					a.println("nothing is in quarantine")
					return
				}
				a.table([]column{{name: "POSITION"}, {name: "CODE", sgr: "31"}, {name: "DETAIL", flex: true}}, rows)
			})
		},
	}
}
