package verbs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mneme/internal/hooks"
	"mneme/memory"
)

// recallsAnswer is the document of `memctl recalls`.
type recallsAnswer struct {
	Recalls []hooks.Recalled `json:"recalls"` // newest first
	Waiting int              `json:"waiting"` // captures that wait for the node
	// Elsewhere is what waits for other nodes than the one that calls go to.
	Elsewhere []hooks.Queue `json:"elsewhere"`
	Counts    hooks.Counts  `json:"counts"`
}

func recallsCmd(a *app) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "recalls",
		Short: "Show what hooks put into prompts",
		Long: `Lists the last times that hooks looked for memories on an agent's behalf: what was
asked for, what became of it, and the memories that went into the prompt. It reads
a file of this user, which holds the last 100 in all namespaces, and asks no node.
-n shows those in one.`,
		Example: "  memctl recalls\n  memctl recalls -n team-a --limit 5\n  memctl recalls --json | jq '.recalls[0].hits'",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usage(cmd, "--limit is %d, it must be at least 1", limit)
			}
			disk, err := hookDisk(a, hookNote(a))
			if err != nil {
				return err
			}
			all, err := disk.Recalls()
			if err != nil {
				return memory.Errorf(memory.CodeInvalid, "read the last recalls: %w", err).WithHint("the next hook begins the file anew")
			}
			addr, err := hookAddr(a)
			if err != nil {
				return err
			}
			slices.Reverse(all)
			if only := a.flags.namespace; only != "" {
				if bad := memory.CheckName("namespace", only); bad != nil {
					return bad
				}
				all = slices.DeleteFunc(all, func(r hooks.Recalled) bool { return r.Namespace != only })
			}
			answer := recallsAnswer{Recalls: all[:min(limit, len(all))], Waiting: disk.Waiting(addr), Elsewhere: disk.Elsewhere(addr), Counts: disk.Counts()}
			if answer.Recalls == nil {
				answer.Recalls = []hooks.Recalled{}
			}
			var ids []string
			for _, r := range answer.Recalls {
				for _, h := range r.Hits {
					ids = append(ids, h.RecordID)
				}
			}
			return a.emit(answer, ids, func() { printRecalls(a, answer) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many")
	return cmd
}

func printRecalls(a *app, answer recallsAnswer) {
	switch {
	case len(answer.Recalls) == 0 && a.flags.namespace != "":
		a.printf("no hook has looked for memories in %s lately\n", a.flags.namespace)
	case len(answer.Recalls) == 0:
		a.println("no hook has looked for memories yet")
	}
	columns := []column{{name: "AGE", right: true}, {name: "AGENT", sgr: "36"}, {name: "EVENT"}, {name: "OUTCOME"},
		{name: "TOKENS", right: true}, {name: "SCORES", sgr: "32"}, {name: "ASKED FOR", flex: true}}
	several := slices.ContainsFunc(answer.Recalls, func(r hooks.Recalled) bool { return r.Namespace != answer.Recalls[0].Namespace })
	if several {
		columns = slices.Insert(columns, 1, column{name: "NAMESPACE"})
	}
	var rows [][]string
	for _, r := range answer.Recalls {
		outcome := r.Outcome
		if r.BestRefused > 0 && len(r.Hits) == 0 {
			outcome += fmt.Sprintf(" (best %.2f)", r.BestRefused)
		}
		var scores []string
		for _, h := range r.Hits {
			if h.Score == 0 { // it was not searched for
				continue
			}
			scores = append(scores, fmt.Sprintf("%.2f", h.Score))
		}
		row := []string{a.age(r.At), r.Agent, r.Event, outcome, fmt.Sprint(r.Tokens), strings.Join(scores, " "), r.Query}
		if several {
			row = slices.Insert(row, 1, r.Namespace)
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		a.table(columns, rows)
	}
	if answer.Waiting > 0 {
		a.println(count(answer.Waiting, "capture waits", "captures wait") + " for the node")
		a.next("memctl hook drain")
	}
	printElsewhere(a, answer.Elsewhere)
	c := answer.Counts
	if c != (hooks.Counts{}) {
		a.printf("captures: %d repeated a memory and were counted on it, %d were linked to one nearly the same, %d came twice within 30 s, %d were beyond three in an exchange, %d found the spool full\n",
			c.Repeated, c.Linked, c.Cooled, c.Over, c.Refused)
	}
}
