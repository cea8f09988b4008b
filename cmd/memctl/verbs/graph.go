package verbs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

const graphHelp = `The knowledge graph of a namespace: entities, what was observed of them, and how they
relate. It is what the official MCP memory server keeps, and stands beside the memories:
memctl search does not look there. Agents read and change it with the tools of that
server, which the profiles full and graph have: memctl mcp --profile full.
`

func graphCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "graph",
		Short: "Look into the knowledge graph",
		Long:  graphHelp,
		Example: `  memctl graph search payments
  memctl graph show Alice
  memctl graph list
  memctl import memory.jsonl                            # of the official memory server
  memctl export --format mcp-memory --output memory.jsonl`,
	})
	cmd.AddCommand(graphSearchCmd(a), graphShowCmd(a), graphListCmd(a))
	return cmd
}

// graphPart is what is shown of the graph.
type graphPart struct {
	memory.Graph
	LeftOff int `json:"left_off,omitempty"` // entities that were found beyond the limit
}

func graphSearchCmd(a *app) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find entities whose name, type or an observation holds a text",
		Long:  "Find entities whose name, type or an observation holds a text, as it stands and in any case.\n",
		Example: `  memctl graph search payments
  memctl graph search "works on" --json | jq '.entities[].name'`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage(cmd, "--limit must be 1 or more")
			}
			query := strings.Join(args, " ")
			ns, part, err := readGraph(cmd.Context(), a, memory.GraphRequest{Query: &query}, limit)
			if err != nil {
				return err
			}
			return a.emit(part, entityNames(part.Entities), func() {
				printGraph(a, part)
				switch {
				case part.LeftOff > 0:
					a.printf("and %s\n", count(part.LeftOff, "more entity", "more entities"))
					a.next("memctl graph search -n %s --limit %d %q", ns, limit+part.LeftOff, query)
				case len(part.Entities) == 0:
					a.println("no entity holds that")
					a.next("memctl graph list -n %s", ns)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many entities")
	return cmd
}

func graphShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME...",
		Short: "Show entities, what was observed of them, and how they relate",
		Example: `  memctl graph show Alice
  memctl graph show Alice "payments service"`,
		Args:              wantArgs(1, memory.MaxGraphNames),
		ValidArgsFunction: completeEntities(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			ns, part, err := readGraph(cmd.Context(), a, memory.GraphRequest{Names: args}, len(args))
			if err != nil {
				return err
			}
			names := entityNames(part.Entities)
			var missing []string
			for _, name := range args {
				if !slices.Contains(names, name) {
					missing = append(missing, strconv.Quote(name))
				}
			}
			if len(names) > 0 {
				if err := a.emit(part, names, func() { printGraph(a, part) }); err != nil {
					return err
				}
			}
			if len(missing) > 0 {
				return memory.Errorf(memory.CodeNotFound, "the graph of %s has no entity %s", ns, strings.Join(missing, ", ")).
					WithHint("names count as they are written; memctl graph search finds them by a part")
			}
			return nil
		},
	}
}

func readGraph(ctx context.Context, a *app, req memory.GraphRequest, limit int) (string, graphPart, error) {
	c, ns, err := a.connect()
	if err != nil {
		return ns, graphPart{}, err
	}
	g, err := client.GraphOf(c, ns).Read(ctx, req, client.ReadOptions{})
	if err != nil {
		return ns, graphPart{}, err
	}
	part := graphPart{Graph: g}
	if part.LeftOff = max(0, len(g.Entities)-limit); part.LeftOff > 0 {
		part.Entities = g.Entities[:limit]
		shown := entityNames(part.Entities)
		part.Relations = slices.DeleteFunc(g.Relations, func(r memory.GraphRelation) bool {
			return !slices.Contains(shown, r.From) && !slices.Contains(shown, r.To)
		})
	}
	return ns, part, nil
}

// graphList is a page of the graph's entities.
type graphList struct {
	Entities []memory.GraphEntity `json:"entities"`
	After    string               `json:"after,omitempty"` // the next page begins behind it
}

// errEnough ends a stream that was read as far as it is wanted.
var errEnough = errors.New("enough was read")

func graphListCmd(a *app) *cobra.Command {
	var after string
	limit := 50
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the entities of the graph, oldest first",
		Example: `  memctl graph list
  memctl graph list --limit 200 --after "payments service"`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return usage(cmd, "--limit must be 1 or more")
			}
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			list := graphList{Entities: []memory.GraphEntity{}}
			err = client.GraphOf(c, ns).StreamAfter(cmd.Context(), after, client.ReadOptions{}, func(line memory.GraphLine) error {
				switch {
				case line.Entity == nil:
					return errEnough // relations stand behind the entities
				case len(list.Entities) == limit:
					list.After = list.Entities[limit-1].Name
					return errEnough
				default:
					list.Entities = append(list.Entities, *line.Entity)
				}
				return nil
			})
			if err != nil && !errors.Is(err, errEnough) {
				return err
			}
			return a.emit(list, entityNames(list.Entities), func() { printEntities(a, ns, list) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most so many")
	cmd.Flags().StringVar(&after, "after", "", "go on behind the entity of this name, where the page before ended")
	completeFlag(cmd, "after", completeEntities(a))
	return cmd
}

func printEntities(a *app, ns string, list graphList) {
	if len(list.Entities) == 0 {
		a.printf("%s: no entities\n", ns)
		a.next("memctl import -n %s memory.jsonl", ns)
		return
	}
	var rows [][]string
	for _, e := range list.Entities {
		rows = append(rows, []string{e.Name, e.Type, strconv.Itoa(len(e.Observations))})
	}
	a.table([]column{{name: "ENTITY", flex: true}, {name: "TYPE", sgr: "36"}, {name: "OBSERVATIONS", right: true}}, rows)
	if list.After != "" {
		a.next("memctl graph list -n %s --limit %d --after %q", ns, len(list.Entities), list.After)
		return
	}
	a.next("memctl graph show -n %s %q", ns, list.Entities[0].Name)
}

// printGraph prints entities with their observations, and the relations.
func printGraph(a *app, part graphPart) {
	for _, e := range part.Entities {
		a.printf("%s (%s)\n", a.paint("1", oneLine(e.Name)), oneLine(e.Type))
		for _, o := range e.Observations {
			a.printf("  - %s\n", oneLine(o))
		}
	}
	for _, r := range part.Relations {
		a.printf("%s → %s → %s\n", oneLine(r.From), a.paint("36", oneLine(r.Type)), oneLine(r.To))
	}
}

func entityNames(entities []memory.GraphEntity) []string {
	names := make([]string, 0, len(entities))
	for _, e := range entities {
		names = append(names, e.Name)
	}
	return names
}

// completions is how many names one press of Tab shows at most.
const completions = 100

// completeEntities asks the node for entities whose names begin like that.
func completeEntities(a *app) completeFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := completing(cmd)
		defer cancel()
		c, ns, err := a.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		// What came before an error or the end of the time is shown.
		_ = client.GraphOf(c, ns).Stream(ctx, client.ReadOptions{}, func(line memory.GraphLine) error {
			if line.Entity == nil || len(names) == completions {
				return errEnough
			}
			if strings.HasPrefix(line.Entity.Name, begun) {
				names = append(names, line.Entity.Name)
			}
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
