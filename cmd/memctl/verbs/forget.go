package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func forgetCmd(a *app) *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:     "forget ID|URI...",
		Aliases: []string{"rm"},
		Short:   "Forget memories",
		Long:    "Forget memories: they are gone from every answer and stay in the history and the\naudit log.",
		Example: `  memctl forget 01JC2Y3K5V8Q0T4W6X7Z9A1B2C
  memctl search -q --tag obsolete old | xargs memctl forget --yes`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dial()
			if err != nil {
				return err
			}
			targets, recs, err := forgetTargets(cmd.Context(), a, c, args)
			if err != nil {
				return err
			}
			if dryRun {
				return a.emit(map[string]any{"would_forget": recs}, recordIDs(recs), func() {
					a.printf("%s: would forget %s\n", targets[0].namespace, count(len(recs), "memory", "memories"))
					printRecords(a, recs)
				})
			}
			if !yes && a.sys.isTerminal(a.sys.in) {
				for _, r := range recs {
					a.note("  %s  %s", r.RecordID, cut(oneLine(r.Text), 80))
				}
			}
			question := fmt.Sprintf("Forget %s in %s? [y/N]", count(len(recs), "memory", "memories"), targets[0].namespace)
			if err := a.confirm(yes, question, ""); err != nil {
				return err
			}
			return forget(a, cmd, c, targets)
		},
	}
	destructiveFlags(cmd, &yes, &dryRun)
	return cmd
}

// forgetTargets looks at every memory before the first one is forgotten.
func forgetTargets(ctx context.Context, a *app, c *client.Client, args []string) ([]target, []memory.Record, error) {
	var targets []target
	var recs []memory.Record
	seen := map[string]bool{}
	for _, arg := range args {
		t, err := a.target(arg)
		if err != nil {
			return nil, nil, err
		}
		rec, err := fetch(ctx, c, t, 0)
		if err != nil {
			return nil, nil, fmt.Errorf("forget %s: %w", arg, err)
		}
		t.id = rec.RecordID
		if key := t.namespace + "/" + t.id; !seen[key] {
			seen[key] = true
			targets = append(targets, t)
			recs = append(recs, rec)
		}
		if t.namespace != targets[0].namespace {
			return nil, nil, memory.Errorf(memory.CodeInvalid, "%s and %s are different namespaces", targets[0].namespace, t.namespace).
				WithHint("forget in one namespace at a time")
		}
	}
	return targets, recs, nil
}

func forget(a *app, cmd *cobra.Command, c *client.Client, targets []target) error {
	author, err := a.author()
	if err != nil {
		return err
	}
	done := []memory.ForgetResponse{}
	var ids []string
	for _, t := range targets {
		resp, ferr := c.Forget(cmd.Context(), t.namespace, t.id, client.WriteOptions{As: author})
		if ferr != nil {
			err = fmt.Errorf("forget %s: %w", t.id, ferr)
			break
		}
		if resp.RecordID == "" {
			resp.RecordID = t.id
		}
		done = append(done, resp)
		ids = append(ids, resp.RecordID)
	}
	if err != nil && len(done) == 0 {
		return err
	}
	if perr := a.emit(map[string]any{"forgotten": done}, ids, func() {
		a.printf("forgot %s in %s\n", count(len(done), "memory", "memories"), targets[0].namespace)
	}); perr != nil {
		return perr
	}
	return err
}

func recordIDs(recs []memory.Record) []string {
	var ids []string
	for _, r := range recs {
		ids = append(ids, r.RecordID)
	}
	return ids
}
