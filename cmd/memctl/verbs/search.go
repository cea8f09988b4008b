package verbs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mneme/memory"
)

// filterFlags narrow a search or a list.
type filterFlags struct {
	kinds, tags, agents []string
	conversation        string
	since, until        timeFlag
}

func (f *filterFlags) register(a *app, cmd *cobra.Command) {
	f.since.now, f.until.now = a.sys.now, a.sys.now
	fl := cmd.Flags()
	fl.StringArrayVar(&f.kinds, "kind", nil, "only this kind (repeatable)")
	fl.StringArrayVar(&f.tags, "tag", nil, "only with this tag (repeatable: all of them)")
	fl.StringArrayVar(&f.agents, "agent", nil, "only by this agent (repeatable)")
	fl.StringVar(&f.conversation, "conversation", "", "only of this conversation")
	fl.Var(&f.since, "since", "only what happened at this time or later")
	fl.Var(&f.until, "until", "only what happened before this time")
	completeFlag(cmd, "kind", completeKinds)
}

// filter returns what was given.
func (f *filterFlags) filter() memory.Filter {
	out := memory.Filter{Agents: f.agents, Tags: f.tags, Since: f.since.ptr(), Until: f.until.ptr(), Conversation: f.conversation}
	for _, k := range f.kinds {
		out.Kinds = append(out.Kinds, memory.Kind(k))
	}
	return out
}

// wire returns the filter, or nil if nothing was given.
func (f *filterFlags) wire() *memory.Filter {
	out := f.filter()
	if len(f.agents)+len(f.kinds)+len(f.tags) == 0 && out.Since == nil && out.Until == nil && f.conversation == "" {
		return nil
	}
	return &out
}

func searchCmd(a *app) *cobra.Command {
	var req memory.SearchRequest
	var filter filterFlags
	var fit fitFlags
	var limit int
	var floor float64
	var mode, scope, consistency string
	var everywhere, mustFind, plain bool
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find memories",
		Long: `Finds memories in a namespace, or in several at once: -n takes several names,
separated by commas. What is found in all of them is ranked together, under one limit.`,
		Example: `  memctl search "when do we deploy"
  memctl search --kind decision --since 7d database
  memctl search -n team-a,team-b "when do we deploy"
  memctl search --json --limit 20 "error handling" | jq '.results[].text'`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Query = strings.Join(args, " ")
			req.Limit = &limit
			req.Mode = memory.Mode(mode)
			req.Consistency = memory.Consistency(consistency)
			req.Filter = filter.wire()
			if plain {
				req.Syntax = memory.SyntaxPlain
			}
			if cmd.Flags().Changed("min-score") {
				req.MinScore = &floor
			}
			var err error
			if req.Fit, err = fit.fit(a, cmd); err != nil {
				return err
			}
			if scope != "" {
				if req.Filter == nil {
					req.Filter = &memory.Filter{}
				}
				req.Filter.Scope = memory.Scope(scope)
			}
			if everywhere && a.flags.namespace != "" {
				return usage(cmd, "give either -n or --all-namespaces")
			}
			return search(a, cmd, req, everywhere, mustFind)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&limit, "limit", memory.DefaultLimit, "at most so many results, 1 to 200")
	fl.StringVar(&mode, "mode", "", "hybrid, vector or text (default hybrid)")
	fl.Float64Var(&floor, "min-score", 0, "only results with at least this score, 0 to 1 (default the namespace's floor)")
	fl.BoolVar(&req.All, "all", false, "also results below the floor")
	fl.StringVar(&scope, "scope", "", "only team or only agent memories")
	fl.StringVar(&req.AtLeast, "at-least", "", "wait until the node has reached this position")
	fl.StringVar(&consistency, "consistency", "", "local or linearizable (default local)")
	fl.BoolVar(&plain, "plain", false, "take the query as plain words: no quotes, -words or beginnings*")
	fl.BoolVar(&everywhere, "all-namespaces", false, "search all namespaces, 64 at most")
	fl.BoolVar(&mustFind, "must-find", false, "end with 3 where nothing is found")
	fl.BoolVar(&req.Explain, "explain", false, "say how each score came about")
	filter.register(a, cmd)
	fit.register(cmd)
	completeFlag(cmd, "mode", completeWords("hybrid", "vector", "text"))
	completeFlag(cmd, "scope", completeWords("team", "agent"))
	completeFlag(cmd, "consistency", completeWords("local", "linearizable"))
	return cmd
}

func search(a *app, cmd *cobra.Command, req memory.SearchRequest, everywhere, mustFind bool) error {
	if bad := req.Validate(); bad != nil {
		return bad
	}
	where, resp, err := searchIn(a, cmd.Context(), req, everywhere)
	if err != nil {
		return err
	}
	var ids []string
	for _, h := range resp.Results {
		ids = append(ids, h.ID)
	}
	if err := emitShown(a, resp, req.Fields, ids, func() { printHits(a, where, resp) }); err != nil {
		return err
	}
	if mustFind && len(ids) == 0 {
		return memory.Errorf(memory.CodeNotFound, "nothing was found for %q in %s", req.Query, where)
	}
	return nil
}

// searchIn searches the namespace that was named, or those, or all.
func searchIn(a *app, ctx context.Context, req memory.SearchRequest, everywhere bool) (where string, resp memory.SearchResponse, err error) {
	var names []string
	if !everywhere {
		if where, err = a.named(); err != nil {
			return where, resp, err
		}
		names = strings.Split(where, ",")
		for _, ns := range names {
			if bad := memory.CheckName("namespace", ns); bad != nil {
				return where, resp, bad
			}
		}
	}
	c, err := a.dial()
	if err != nil {
		return where, resp, err
	}
	if everywhere {
		list, err := c.Namespaces(ctx)
		if err != nil {
			return where, resp, err
		}
		for _, ns := range list.Namespaces {
			names = append(names, ns.Name)
		}
		where = "all namespaces"
	} else if len(names) == 1 {
		resp, err = c.Search(ctx, where, req)
		return where, resp, err
	}
	resp, err = c.SearchNamespaces(ctx, names, req)
	return where, resp, err
}

func printHits(a *app, ns string, resp memory.SearchResponse) {
	a.println(a.paint("2", fmt.Sprintf("%s: %s, %s, %.1f ms", ns,
		count(len(resp.Results), "result", "results"), first(string(resp.Mode), "hybrid"), resp.TookMS)))
	printCorrections(a, resp.Corrections)
	several := len(resp.Namespaces) > 0
	if resp.LeftOff != nil && len(resp.Results) == 0 {
		printLeftOff(a, resp.LeftOff)
		return
	}
	if len(resp.Results) == 0 {
		if resp.BestRefused > 0 {
			a.println(fmt.Sprintf("nothing found; the best match has a score of %.2f, below the floor", resp.BestRefused))
			a.next("memctl search --all … shows it")
			return
		}
		if hint := "try other words"; several {
			a.next("%s", hint)
		} else {
			a.next("%s, or `memctl list -n %s`", hint, ns)
		}
		return
	}
	var rows [][]string
	for _, h := range resp.Results {
		row := []string{fmt.Sprintf("%.2f", h.Score), a.age(h.OccurredAt), h.Agent, string(h.Kind), first(h.Snippet, h.Text), h.ID}
		if several {
			row = slices.Insert(row, 1, h.Namespace)
		}
		rows = append(rows, row)
	}
	columns := []column{{name: "SCORE", right: true, sgr: "32"}, {name: "AGE", right: true}, {name: "AGENT", sgr: "36"},
		{name: "KIND"}, {name: "MEMORY", flex: true}, {name: "ID", sgr: "2"}}
	if several {
		columns = slices.Insert(columns, 1, column{name: "NAMESPACE"})
	}
	a.table(columns, rows)
	for i, h := range resp.Results {
		if h.Explain != nil {
			a.println(explainLine(i+1, h))
		}
	}
	printLeftOff(a, resp.LeftOff)
	a.next("memctl get -n %s %s", first(resp.Results[0].Namespace, ns), resp.Results[0].ID)
}

// printCorrections says what words of the query were read as.
func printCorrections(a *app, corrections []memory.Correction) {
	for len(corrections) > 0 {
		if c := corrections[0]; c.Kind == "phrase" {
			line := "no memory says " + oneLine(c.Word)
			switch {
			case c.Weight > 0:
				line += "; its words were looked for"
			case c.Docs > 0:
				line += fmt.Sprintf("; without quotes its words are in %s", count(c.Docs, "memory", "memories"))
			}
			a.println(line)
			corrections = corrections[1:]
			continue
		}
		word, says, n := corrections[0].Word, saying(corrections[0].Kind), 0
		var meant []string
		for n < len(corrections) && corrections[n].Word == word && saying(corrections[n].Kind) == says {
			if as := oneLine(corrections[n].ReadAs); !slices.Contains(meant, as) { // two terms may be written alike
				meant = append(meant, as)
			}
			n++
		}
		a.println(fmt.Sprintf(says, oneLine(word), strings.Join(meant, ", ")))
		corrections = corrections[n:]
	}
}

// saying is how corrections of a kind are told, of the word and what it was read as.
func saying(kind string) string {
	switch kind {
	case "begins":
		return "%s found %s"
	case "alias", "related": // the word itself may be what was meant
		return "%s also found %s"
	case "many":
		return "%s begins more words than are looked for%.0s: write more of it"
	}
	return "did you mean %[2]s? (for %[1]s)"
}

// explainLine accounts for the score of the i-th result.
func explainLine(i int, h memory.Hit) string {
	var parts []string
	for _, p := range h.Explain.Parts {
		parts = append(parts, fmt.Sprintf("%s %.2f×%.3f (raw %.3f)", oneLine(p.Source), p.Weight, p.Value, p.Raw))
	}
	line := strconv.Itoa(i) + ": " + strings.Join(parts, " + ")
	var terms []string
	for _, t := range h.Explain.Terms {
		read := ""
		if t.ReadAs != "" {
			read = fmt.Sprintf(" (%s: %s)", oneLine(t.Kind), oneLine(t.ReadAs))
		}
		terms = append(terms, fmt.Sprintf("%s%s %.2f", oneLine(t.Term), read, t.Score))
	}
	if len(terms) > 0 {
		line += "; terms " + strings.Join(terms, ", ")
	}
	if id := h.Explain.NewerThan; id != "" {
		line += "; newer than " + oneLine(id)
	}
	if id := h.Explain.OlderThan; id != "" {
		line += "; older than " + oneLine(id)
	}
	return line
}
