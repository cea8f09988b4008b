package verbs

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func namespaceCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "namespace",
		Aliases: []string{"ns"},
		Short:   "Create, list, show, set and delete namespaces",
		Example: `  memctl namespace create team-a
  memctl namespace set team-a search.vector_weight=0.7`,
	})
	cmd.AddCommand(namespaceCreateCmd(a), namespaceListCmd(a), namespaceShowCmd(a),
		namespaceSetCmd(a), namespaceDeleteCmd(a))
	return cmd
}

// settingArgs reads KEY=VALUE arguments. An empty value stands for the default.
func settingArgs(cmd *cobra.Command, args []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, usage(cmd, "%q is not KEY=VALUE", arg)
		}
		if _, twice := out[key]; twice {
			return nil, usage(cmd, "setting %s is given twice", key)
		}
		out[key] = nil
		if value != "" {
			out[key] = &value
		}
	}
	return out, nil
}

func namespaceCreateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME [KEY=VALUE...]",
		Short: "Create a namespace",
		Example: `  memctl namespace create team-a
  memctl namespace create team-a search.vector_weight=0.7`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if bad := memory.CheckName("namespace", args[0]); bad != nil {
				return bad
			}
			given, err := settingArgs(cmd, args[1:])
			if err != nil {
				return err
			}
			req := memory.CreateNamespace{Name: args[0]}
			for k, v := range given {
				if v == nil {
					return usage(cmd, "setting %s has no value", k)
				}
				if req.Settings == nil {
					req.Settings = map[string]string{}
				}
				req.Settings[k] = *v
			}
			c, err := a.dial()
			if err != nil {
				return err
			}
			ns, err := c.CreateNamespace(cmd.Context(), req)
			if err != nil {
				return err
			}
			return a.emit(ns, []string{ns.Name}, func() {
				a.printf("created namespace %s\n", ns.Name)
				a.next("memctl use %s", ns.Name)
			})
		},
	}
}

func namespaceListCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List namespaces",
		Example: "  memctl namespace list",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial()
			if err != nil {
				return err
			}
			list, err := c.Namespaces(cmd.Context())
			if err != nil {
				return err
			}
			var names []string
			var rows [][]string
			for _, ns := range list.Namespaces {
				names = append(names, ns.Name)
				rows = append(rows, []string{ns.Name, strconv.FormatUint(ns.Records, 10), ns.Embedder.Provider, a.age(ns.CreatedAt)})
			}
			return a.emit(list, names, func() {
				if len(rows) == 0 {
					a.println("there are no namespaces")
					a.next("memctl namespace create NAME")
					return
				}
				a.table([]column{{name: "NAME", sgr: "1"}, {name: "RECORDS", right: true}, {name: "EMBEDDER"}, {name: "AGE", right: true}}, rows)
			})
		},
	}
}

func namespaceShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a namespace and its settings",
		Example:           "  memctl namespace show team-a",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: completeFirst(completeNamespaces(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if bad := memory.CheckName("namespace", args[0]); bad != nil {
				return bad
			}
			c, err := a.dial()
			if err != nil {
				return err
			}
			ns, err := c.Namespace(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.emit(ns, []string{ns.Name}, func() { printNamespace(a, ns) })
		},
	}
}

func printNamespace(a *app, ns memory.Namespace) {
	a.printf("namespace   %s (%s)\n", a.paint("1", ns.Name), ns.ID)
	a.printf("created     %s\n", a.clock(ns.CreatedAt))
	a.printf("records     %d, %d waiting for vectors\n", ns.Records, ns.PendingVectors)
	a.printf("embedder    %s\n", embedderLine(ns.Embedder))
	a.printf("state hash  %s\n", first(ns.StateHash, "-"))
	a.printf("position    %s\n", first(ns.Position, "-"))
	for _, k := range slices.Sorted(maps.Keys(ns.Settings)) {
		a.printf("setting     %s=%s\n", oneLine(k), oneLine(ns.Settings[k]))
	}
}

func namespaceSetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME KEY=VALUE...",
		Short: "Change settings; an empty VALUE means the default again",
		Example: `  memctl namespace set team-a search.vector_weight=0.7
  memctl namespace set team-a search.vector_weight=`,
		Args:              wantArgs(2, -1),
		ValidArgsFunction: completeFirst(completeNamespaces(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if bad := memory.CheckName("namespace", args[0]); bad != nil {
				return bad
			}
			given, err := settingArgs(cmd, args[1:])
			if err != nil {
				return err
			}
			c, err := a.dial()
			if err != nil {
				return err
			}
			ns, err := c.PatchNamespace(cmd.Context(), args[0], memory.PatchNamespace{Settings: given})
			if err != nil {
				return err
			}
			return a.emit(ns, []string{ns.Name}, func() { printNamespace(a, ns) })
		},
	}
}

func namespaceDeleteCmd(a *app) *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a namespace with everything in it, for good",
		Long:  "Delete a namespace with everything in it. Its keys are destroyed: nothing brings\nit back, and a new namespace of the same name starts empty.",
		Example: `  memctl namespace delete team-a --dry-run
  memctl namespace delete team-a --yes`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: completeFirst(completeNamespaces(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if bad := memory.CheckName("namespace", args[0]); bad != nil {
				return bad
			}
			c, err := a.dial()
			if err != nil {
				return err
			}
			ns, err := c.Namespace(cmd.Context(), args[0])
			if client.Said(err) == memory.CodeNotFound {
				return memory.AsError(err).WithHint("`memctl namespace list` shows those that are there")
			}
			if err != nil {
				return err
			}
			what := count(int(ns.Records), "memory", "memories")
			if dryRun {
				return a.emit(map[string]any{"would_delete": ns}, []string{ns.Name}, func() {
					a.printf("would delete namespace %s with %s\n", ns.Name, what)
				})
			}
			if err := a.confirm(yes, "Delete namespace "+ns.Name+" with "+what+" for good? Type its name:", ns.Name); err != nil {
				return err
			}
			if err := c.DeleteNamespace(cmd.Context(), ns.Name); err != nil {
				return err
			}
			return a.emit(map[string]any{"deleted": ns.Name, "records": ns.Records}, []string{ns.Name}, func() {
				a.printf("deleted namespace %s with %s\n", ns.Name, what)
			})
		},
	}
	destructiveFlags(cmd, &yes, &dryRun)
	return cmd
}

func destructiveFlags(cmd *cobra.Command, yes, dryRun *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "only say what would happen")
}
