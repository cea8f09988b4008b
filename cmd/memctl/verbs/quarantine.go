package verbs

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// quarantineLong is the help of both verbs that put an event in quarantine.
const quarantineLong = `POSITION is that of an event which no node can apply, so that its shard has stopped on all
of them: reads go on, and nothing is written. memctl status and memctl doctor name it.

In quarantine the event changes nothing: what it would have done is not done, and what
follows from it is refused. Who sends it again under its id gets a conflict. Its bytes
stay in the log, and the audit log shows it as quarantined, and who did it. The nodes
agree on it: all go on, also those that are away and come back, and a state that is
built again from the log comes to the same. It cannot
be undone; where a newer version of memnode can apply the event, start that instead.

It is refused unless most nodes have stopped at this very event, and for events that are
not about memories. It may be asked for again.`

func quarantineCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine [POSITION]",
		Short: "List events that are left out, or leave out one that no node can apply",
		Long: `Without POSITION: list events that are in the log and change nothing, oldest first. They
could not be understood, or an operator put them in quarantine.

` + quarantineLong,
		Example: `  memctl quarantine
  memctl quarantine p0.1.42.3 --dry-run
  memctl quarantine p0.1.42.3 --reason "crashes the text index, ticket 812"`,
		Args: wantArgs(0, 1),
	}
	put := putInQuarantine(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.dialOperator(cmd.Context())
		if err != nil {
			return err
		}
		if len(args) > 0 {
			return put(cmd, c, args[0])
		}
		return listQuarantine(a, cmd, c)
	}
	return cmd
}

func clusterQuarantineCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine POSITION",
		Short: "Leave out an event that no node can apply, so that its shard goes on",
		Long:  quarantineLong,
		Example: `  memctl cluster quarantine p0.1.42.3 --dry-run
  memctl cluster quarantine p0.1.42.3 --reason "crashes the text index, ticket 812"`,
		Args: wantArgs(1, 1),
	}
	put := putInQuarantine(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.dialOperator(cmd.Context())
		if err != nil {
			return err
		}
		return put(cmd, c, args[0])
	}
	return cmd
}

func listQuarantine(a *app, cmd *cobra.Command, c *client.Client) error {
	list, err := c.Quarantine(cmd.Context())
	if err != nil {
		return err
	}
	var ids []string
	var rows [][]string
	for _, q := range list.Quarantined {
		ids = append(ids, q.Position)
		rows = append(rows, []string{q.Position, q.Code, quarantineDetail(q)})
	}
	return a.emit(list, ids, func() {
		if len(rows) == 0 {
			a.println("nothing is in quarantine")
			return
		}
		a.table([]column{{name: "POSITION"}, {name: "CODE", sgr: "31"}, {name: "DETAIL", flex: true}}, rows)
	})
}

// quarantineDetail says who put an event in quarantine, when and why, or why it is there.
func quarantineDetail(q memory.Quarantined) string {
	if q.By == "" {
		return q.Detail
	}
	out := "by " + q.By
	if q.At != nil {
		out += " at " + q.At.UTC().Format(time.RFC3339)
	}
	if q.Reason != "" {
		out += ": " + q.Reason
	}
	return out
}

// putInQuarantine adds the flags to a verb, and returns what it does.
func putInQuarantine(a *app, cmd *cobra.Command) func(cmd *cobra.Command, c *client.Client, position string) error {
	var reason string
	var yes, dryRun bool
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who ask later; it is kept sealed")
	destructiveFlags(cmd, &yes, &dryRun)
	cmd.ValidArgsFunction = completeFirst(completeStopped(a))
	return func(cmd *cobra.Command, c *client.Client, position string) error {
		by, err := a.author()
		if err != nil {
			return err
		}
		req := memory.PutInQuarantine{Position: position, Reason: reason, By: by, DryRun: true}
		would, err := c.Cluster().Quarantine(cmd.Context(), req)
		if err != nil || dryRun || would.Already {
			if err == nil {
				err = a.emit(would, []string{would.Position}, func() { printQuarantine(a, would) })
			}
			return err
		}
		if !yes && a.sys.isTerminal(a.sys.in) {
			a.note("  %s", oneLine(would.Why))
		}
		if err := a.confirm(yes, fmt.Sprintf("Leave out this %s for ever? [y/N]", oneLine(would.Type)), ""); err != nil {
			return err
		}
		req.DryRun = false
		done, err := c.Cluster().Quarantine(cmd.Context(), req)
		if err != nil {
			return err
		}
		return a.emit(done, []string{done.Position}, func() { printQuarantine(a, done) })
	}
}

func printQuarantine(a *app, q memory.InQuarantine) {
	at := oneLine(q.Position)
	switch {
	case q.Already:
		a.printf("%s is in quarantine already: %s\n", at, oneLine(quarantineDetail(q.Quarantined)))
	case q.DryRun:
		a.printf("would put %s in quarantine: %s\n", at, oneLine(q.Why))
	case q.Next != "":
		a.printf("%s is in quarantine; the shard has stopped again, at %s\n", at, oneLine(q.Next))
		a.next("memctl quarantine %s", oneLine(q.Next))
	default:
		a.printf("%s is in quarantine, and its shard goes on\n", at)
		a.next("memctl status")
	}
}
