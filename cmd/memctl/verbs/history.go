package verbs

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func historyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "history ID|URI",
		Short:   "Show every version of a memory, oldest first",
		Example: "  memctl history 01JC2Y3K5V8Q0T4W6X7Z9A1B2C",
		Args:    wantArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, t, err := a.connectTo(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			h, err := c.History(cmd.Context(), t.namespace, t.id, client.ReadOptions{})
			if err != nil {
				return err
			}
			return a.emit(h, []string{h.RecordID}, func() { printHistory(a, t.namespace, h) })
		},
	}
}

func printHistory(a *app, ns string, h memory.History) {
	a.println(a.paint("2", fmt.Sprintf("%s: %s of %s", ns, count(len(h.Versions), "version", "versions"), h.RecordID)))
	var rows [][]string
	for _, v := range h.Versions {
		text := v.Text
		if v.Forgotten {
			text = "(forgotten) " + text
		}
		rows = append(rows, []string{strconv.Itoa(v.Version), a.clock(v.CreatedAt), v.Agent, text})
	}
	a.table([]column{{name: "VERSION", right: true}, {name: "WHEN"}, {name: "AGENT", sgr: "36"}, {name: "MEMORY", flex: true}}, rows)
	for _, e := range h.Events {
		a.printf("%s  %s by %s  %s\n", a.clock(e.At), oneLine(e.Type), first(oneLine(e.Agent), "-"), a.paint("2", e.Position))
	}
}
