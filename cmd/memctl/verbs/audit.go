package verbs

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// followEvery is how often audit --follow asks for new rows. The audit log has
// rows that no event stream carries, so it is asked for itself.
const followEvery = time.Second

func auditCmd(a *app) *cobra.Command {
	var follow bool
	var limit int
	var opts client.AuditOptions
	since := timeFlag{now: a.sys.now}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what, oldest first",
		Example: `  memctl audit --since 7d --actor agent-7
  memctl audit --follow --json`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			opts.Since = since.ptr()
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			r := auditReader{c: c, ns: ns, opts: opts, left: limit, bounded: limit > 0}
			if follow {
				return followAudit(cmd.Context(), a, &r)
			}
			return showAudit(cmd.Context(), a, &r)
		},
	}
	fl := cmd.Flags()
	fl.Var(&since, "since", "only what was sealed at this time or later")
	fl.StringVar(&opts.Actor, "actor", "", "only what this agent did")
	fl.StringVar(&opts.Type, "type", "", "only this type of event, such as memory.forgotten")
	fl.StringVar(&opts.From, "from", "", "only what came after this position")
	fl.BoolVarP(&follow, "follow", "f", false, "go on as new rows appear")
	fl.IntVar(&limit, "limit", 0, "stop after so many rows (0: all)")
	cmd.AddCommand(auditReadsCmd(a))
	return cmd
}

// auditReader pages through audit rows.
type auditReader struct {
	c       *client.Client
	ns      string
	opts    client.AuditOptions
	left    int // rows still wanted, if bounded
	bounded bool
	last    string // position of the newest page
}

// all calls each with every page there is now.
func (r *auditReader) all(ctx context.Context, each func([]memory.AuditRow) error) error {
	r.opts.Cursor = ""
	for !r.bounded || r.left > 0 {
		if r.bounded {
			r.opts.Limit = min(r.left, memory.MaxLimit)
		}
		page, err := r.c.Audit(ctx, r.ns, r.opts)
		if err != nil {
			return err
		}
		rows := page.Rows
		if r.bounded {
			rows = rows[:min(len(rows), r.left)]
			r.left -= len(rows)
		}
		if len(rows) > 0 {
			r.last = rows[len(rows)-1].Position
		}
		if err := each(rows); err != nil {
			return err
		}
		if page.Cursor == "" {
			return nil
		}
		if page.Cursor == r.opts.Cursor {
			return memory.Errorf(memory.CodeInternal, "audit: the node gave the same cursor twice")
		}
		r.opts.Cursor = page.Cursor
	}
	return nil
}

func showAudit(ctx context.Context, a *app, r *auditReader) error {
	out := memory.AuditPage{Rows: []memory.AuditRow{}}
	if err := r.all(ctx, func(rows []memory.AuditRow) error {
		out.Rows = append(out.Rows, rows...)
		return nil
	}); err != nil {
		return err
	}
	out.Position = r.last
	var ids []string
	var table [][]string
	for _, row := range out.Rows {
		ids = append(ids, row.EventID)
		table = append(table, []string{a.clock(row.At), first(row.Agent, "-"), row.Type, row.Outcome, first(row.RecordID, "-"), row.Position})
	}
	return a.emit(out, ids, func() {
		a.println(a.paint("2", r.ns+": "+count(len(table), "audit row", "audit rows")))
		if len(table) > 0 {
			a.table([]column{{name: "WHEN"}, {name: "AGENT", sgr: "36"}, {name: "WHAT"}, {name: "OUTCOME"}, {name: "MEMORY"}, {name: "POSITION", sgr: "2"}}, table)
		}
	})
}

func followAudit(ctx context.Context, a *app, r *auditReader) error {
	for {
		err := r.all(ctx, func(rows []memory.AuditRow) error {
			for _, row := range rows {
				if err := a.emit(row, []string{row.EventID}, func() {
					a.printf("%s  %s  %s %s  %s  %s  %s\n", r.ns, a.clock(row.At), first(oneLine(row.Agent), "-"),
						oneLine(row.Type), oneLine(row.Outcome), first(row.RecordID, "-"), row.Position)
				}); err != nil {
					return err
				}
			}
			return a.flush()
		})
		if err != nil {
			return stopped(ctx, err)
		}
		if r.bounded && r.left == 0 {
			return nil
		}
		if r.last != "" {
			r.opts.From = r.last
		}
		if err := a.sys.sleep(ctx, followEvery); err != nil {
			return stopped(ctx, err)
		}
	}
}

// stopped turns the end of a stream by the user into success.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
