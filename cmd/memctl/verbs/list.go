package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func listCmd(a *app) *cobra.Command {
	var opts client.ListOptions
	var filter filterFlags
	var fit fitFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List memories, newest first",
		Example: `  memctl list --limit 50
  memctl list --kind decision --since 2024-05-01
  memctl list --cursor CURSOR`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Limit < 1 || opts.Limit > memory.MaxLimit {
				return usage(cmd, "--limit must lie between 1 and %d", memory.MaxLimit)
			}
			opts.Filter = filter.filter()
			var err error
			if opts.Fit, err = fit.fit(a, cmd); err != nil {
				return err
			}
			if bad := opts.Validate(); bad != nil {
				return bad
			}
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			list, err := c.List(cmd.Context(), ns, opts)
			if err != nil {
				return err
			}
			var ids []string
			for _, r := range list.Records {
				ids = append(ids, r.RecordID)
			}
			return emitShown(a, list, opts.Fields, ids, func() {
				a.println(a.paint("2", fmt.Sprintf("%s: %s", ns, count(len(ids), "memory", "memories"))))
				printRecords(a, list.Records)
				printLeftOff(a, list.LeftOff)
				switch {
				case list.Cursor != "":
					a.next("memctl list -n %s --cursor %s", ns, list.Cursor)
				case len(ids) == 0:
					a.next("memctl capture -n %s \"…\"", ns)
				}
			})
		},
	}
	cmd.Flags().StringVar(&opts.Cursor, "cursor", "", "go on where the page before ended")
	cmd.Flags().IntVar(&opts.Limit, "limit", 20, "at most so many, 1 to 200")
	cmd.Flags().StringVar(&opts.AtLeast, "at-least", "", "wait until the node has reached this position")
	filter.register(a, cmd)
	fit.register(cmd)
	return cmd
}

// printRecords prints records as a table, without a heading if there are none.
func printRecords(a *app, recs []memory.Record) {
	if len(recs) == 0 {
		return
	}
	var rows [][]string
	for _, r := range recs {
		rows = append(rows, []string{a.age(r.OccurredAt), r.Agent, string(r.Kind), r.Text, r.RecordID})
	}
	a.table([]column{{name: "AGE", right: true}, {name: "AGENT", sgr: "36"}, {name: "KIND"},
		{name: "MEMORY", flex: true}, {name: "ID", sgr: "2"}}, rows)
}
