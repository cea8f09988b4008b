package verbs

import (
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

func rejectedCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rejected",
		Short:   "List messages that were refused before the log, newest first",
		Example: "  memctl rejected",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			list, err := c.Rejected(cmd.Context())
			if err != nil {
				return err
			}
			var ids []string
			var rows [][]string
			for _, r := range list.Rejected {
				ids = append(ids, r.ID)
				rows = append(rows, []string{a.age(r.At), first(r.Namespace, "-"), first(r.Agent, "-"), r.Via, strconv.Itoa(r.Size), string(r.Code), r.Reason, r.ID})
			}
			return a.emit(list, ids, func() {
				if len(rows) == 0 {
					a.println("nothing was rejected")
				} else {
					a.table([]column{{name: "AGE", right: true}, {name: "NAMESPACE"}, {name: "AGENT", sgr: "36"}, {name: "VIA"},
						{name: "BYTES", right: true}, {name: "CODE", sgr: "31"}, {name: "REASON", flex: true}, {name: "ID", sgr: "2"}}, rows)
				}
				for _, code := range slices.Sorted(maps.Keys(list.Counts)) {
					a.printf("%s: %d since the node started\n", oneLine(code), list.Counts[code])
				}
				if list.NotListed > 0 {
					a.printf("%d of them came too fast to be listed\n", list.NotListed)
				}
			})
		},
	}
}
