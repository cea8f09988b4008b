package verbs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func auditReadsCmd(a *app) *cobra.Command {
	limit := 20
	var opts client.AuditedReadsOptions
	since, until := timeFlag{now: a.sys.now}, timeFlag{now: a.sys.now}
	cmd := &cobra.Command{
		Use:   "reads",
		Short: "Show who was given which memories for a prompt, newest first",
		Long: `Lists the reads that a namespace has audited: those by which blocks of memories go into
prompts, of hooks and of recalls. They are, once that is switched on:

  memctl namespace set NAMESPACE audit.injections=on

Of a query only a hash is kept, which is the same for the same query. What hooks of this
user looked for, with the words, is shown by memctl recalls.`,
		Example: `  memctl audit reads --agent claude-code --since 7d
  memctl audit reads --record 01JC2Y3K5V8Q0T4W6X7Z9A1B2C --limit 0`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage(cmd, "--limit must not be negative")
			}
			opts.Since, opts.Until = since.ptr(), until.ptr()
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			out := memory.AuditedReadPage{Reads: []memory.AuditedRead{}}
			for {
				opts.Limit = memory.MaxLimit
				if limit > 0 {
					opts.Limit = min(limit-len(out.Reads), memory.MaxLimit)
				}
				page, err := client.AuditedReads(cmd.Context(), c, ns, opts)
				if err != nil {
					return err
				}
				if page.Cursor != "" && page.Cursor == opts.Cursor {
					return memory.Errorf(memory.CodeInternal, "audit reads: the node gave the same cursor twice")
				}
				out.Reads = append(out.Reads, page.Reads...)
				out.Position, out.Cursor, opts.Cursor = page.Position, page.Cursor, page.Cursor
				if page.Cursor == "" || limit > 0 && len(out.Reads) >= limit {
					break
				}
			}
			return showReads(a, ns, &out)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.Agent, "agent", "", "only reads by this agent")
	fl.StringVar(&opts.Record, "record", "", "only reads that gave the record of this id")
	fl.Var(&since, "since", "only reads at this time or later")
	fl.Var(&until, "until", "only reads before this time")
	fl.StringVar(&opts.Cursor, "cursor", "", "go on behind an earlier answer")
	fl.IntVar(&limit, "limit", limit, "at most so many (0: all)")
	return cmd
}

func showReads(a *app, ns string, out *memory.AuditedReadPage) error {
	var ids []string
	var table [][]string
	for _, r := range out.Reads {
		ids = append(ids, r.EventID)
		var given []string
		for _, g := range r.Given {
			given = append(given, fmt.Sprintf("%s v%d", g.RecordID, g.Version))
		}
		table = append(table, []string{a.clock(r.At), first(r.Agent, "-"), string(r.Purpose), string(r.Scope), first(strings.Join(given, ", "), "nothing"), r.Position})
	}
	return a.emit(out, ids, func() {
		a.println(a.paint("2", ns+": "+count(len(table), "audited read", "audited reads")))
		if len(table) > 0 {
			a.table([]column{{name: "WHEN"}, {name: "AGENT", sgr: "36"}, {name: "FOR"}, {name: "OF"}, {name: "GIVEN", flex: true}, {name: "POSITION", sgr: "2"}}, table)
		}
		if out.Cursor != "" {
			a.next("memctl audit reads -n %s --cursor %s", ns, out.Cursor)
		}
	})
}
