package verbs

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func tailCmd(a *app) *cobra.Command {
	var from string
	var limit int
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print events as they are applied",
		Long:  "Print events as they are applied, from now on or after a position. A connection\nthat breaks is opened again without losing or repeating events. Where that does not\nsucceed at once, it says so on standard error, once, and goes on trying for a while.",
		Example: `  memctl tail
  memctl tail --from p0.1.42.3 --json`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			n := 0
			away := func(err error) {
				a.note("memctl: events stopped, trying again: %s%s", oneLine(err.Error()), remedy(err))
			}
			for ev, err := range c.Events(cmd.Context(), ns, client.EventsOptions{From: from, Away: away}) {
				if err != nil {
					return stopped(cmd.Context(), err)
				}
				if err := printEvent(a, ns, ev); err != nil {
					return err
				}
				if n++; n == limit {
					break
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "begin after this position")
	cmd.Flags().IntVar(&limit, "limit", 0, "stop after so many events (0: never)")
	return cmd
}

// printEvent prints one line and shows it at once.
func printEvent(a *app, ns string, ev memory.Event) error {
	if a.flags.json {
		if err := a.document(ev, false); err != nil {
			return err
		}
		return a.flush()
	}
	if a.flags.quiet {
		a.println(first(ev.Subject, ev.ID))
		return a.flush()
	}
	var data struct {
		Agent string `json:"agent"`
		Text  string `json:"text"`
	}
	_ = json.Unmarshal(ev.Data, &data) // data of other shapes has no text to show
	if strings.HasPrefix(ev.Type, "io.mneme.graph.") {
		var change memory.GraphEvent
		_ = json.Unmarshal(ev.Data, &change)
		data.Text = change.String()
	}
	when := "-"
	if ev.Time != nil {
		when = a.clock(*ev.Time)
	}
	kind := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(ev.Type, "io.mneme."), "memory."), ".v1")
	a.printf("%s  %s  %s %s  %s  %s\n", ns, when, first(oneLine(data.Agent), "-"), oneLine(kind),
		first(oneLine(ev.Subject), ev.ID), a.cut(oneLine(data.Text), 80))
	return a.flush()
}
