package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func timelineCmd(a *app) *cobra.Command {
	var before, after int
	var fit fitFlags
	cmd := &cobra.Command{
		Use:     "timeline ID|URI",
		Short:   "Show what surrounded a memory",
		Example: "  memctl timeline 01JC2Y3K5V8Q0T4W6X7Z9A1B2C -B 5 -A 5",
		Args:    wantArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if before < 0 || after < 0 || before > memory.MaxLimit || after > memory.MaxLimit {
				return usage(cmd, "-B and -A must lie between 0 and %d", memory.MaxLimit)
			}
			opts := client.TimelineOptions{Before: &before, After: &after}
			var err error
			if opts.Fit, err = fit.fit(a, cmd); err != nil {
				return err
			}
			c, t, err := a.connectTo(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			tl, err := c.Timeline(cmd.Context(), t.namespace, t.id, opts)
			if err != nil {
				return err
			}
			recs := append(append(append([]memory.Record(nil), tl.Before...), tl.Anchor), tl.After...)
			var ids []string
			for _, r := range recs {
				ids = append(ids, r.RecordID)
			}
			return emitShown(a, tl, opts.Fields, ids, func() {
				a.println(a.paint("2", fmt.Sprintf("%s: around %s", t.namespace, tl.Anchor.RecordID)))
				printTimeline(a, recs, tl.Anchor.RecordID)
				printLeftOff(a, tl.LeftOff)
			})
		},
	}
	cmd.Flags().IntVarP(&before, "before", "B", memory.DefaultSurroundings, "how many memories before it")
	cmd.Flags().IntVarP(&after, "after", "A", memory.DefaultSurroundings, "how many memories after it")
	fit.register(cmd)
	return cmd
}

func printTimeline(a *app, recs []memory.Record, anchor string) {
	var rows [][]string
	for _, r := range recs {
		mark := ""
		if r.RecordID == anchor {
			mark = ">"
		}
		rows = append(rows, []string{mark, a.clock(r.OccurredAt), r.Agent, r.Text, r.RecordID})
	}
	a.table([]column{{sgr: "1"}, {name: "WHEN"}, {name: "AGENT", sgr: "36"}, {name: "MEMORY", flex: true}, {name: "ID", sgr: "2"}}, rows)
}
