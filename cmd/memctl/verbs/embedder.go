package verbs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// embedderStatus is the default for new namespaces and what each one chose.
type embedderStatus struct {
	Default    memory.EmbedderInfo `json:"default"`
	Namespaces []namespaceEmbedder `json:"namespaces"`
}

type namespaceEmbedder struct {
	Name           string              `json:"name"`
	Embedder       memory.EmbedderInfo `json:"embedder"`
	PendingVectors uint64              `json:"pending_vectors"`
}

func embedderCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "embedder",
		Short: "Show and change what turns text into vectors",
		Example: `  memctl embedder status
  memctl embedder switch -n team-a ollama:nomic-embed-text --wait
  memctl embedder cancel -n team-a`,
	})
	cmd.AddCommand(embedderStatusCmd(a), embedderSwitchCmd(a), embedderCancelCmd(a))
	return cmd
}

func embedderStatusCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the embedder of each namespace, or of one with -n in detail",
		Long: `Show the embedder of new namespaces and of each namespace. With -n (or
MNEME_NAMESPACE) show one namespace: its space, how many memories have vectors,
how far a change has come, and which spaces are kept from before.`,
		Example: `  memctl embedder status
  memctl embedder status -n team-a`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if first(a.flags.namespace, a.sys.getenv("MNEME_NAMESPACE")) == "" {
				return embedderOverview(cmd.Context(), a)
			}
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			st, err := c.Embedder(cmd.Context(), ns)
			if err != nil {
				return err
			}
			return a.emit(st, []string{st.Embedder.Space}, func() { printEmbedder(a, st) })
		},
	}
}

func embedderOverview(ctx context.Context, a *app) error {
	c, err := a.dial()
	if err != nil {
		return err
	}
	st, err := c.Status(ctx)
	if err != nil {
		return err
	}
	list, err := c.Namespaces(ctx)
	if err != nil {
		return err
	}
	out := embedderStatus{Default: st.Embedder, Namespaces: []namespaceEmbedder{}}
	var names []string
	var rows [][]string
	for _, ns := range list.Namespaces {
		out.Namespaces = append(out.Namespaces, namespaceEmbedder{ns.Name, ns.Embedder, ns.PendingVectors})
		names = append(names, ns.Name)
		rows = append(rows, []string{ns.Name, embedderLine(ns.Embedder), strconv.FormatUint(ns.PendingVectors, 10)})
	}
	return a.emit(out, names, func() {
		a.printf("new namespaces use %s\n", embedderLine(out.Default))
		if len(rows) > 0 {
			a.table([]column{{name: "NAMESPACE", sgr: "1"}, {name: "EMBEDDER", flex: true}, {name: "PENDING", right: true}}, rows)
		}
	})
}

func printEmbedder(a *app, st memory.EmbedderStatus) {
	a.printf("namespace  %s\n", a.paint("1", oneLine(st.Namespace)))
	a.printf("embedder   %s\n", embedderLine(st.Embedder))
	a.printf("records    %d, %d with vectors, %d waiting for theirs\n", st.Records, st.Vectors, st.Pending)
	if b := st.Building; b != nil {
		printBuilding(a, b)
	}
	for _, k := range st.Kept {
		a.printf("kept       %s, %d with vectors, until %s\n", embedderLine(k.Embedder), k.Records, a.clock(k.Until))
	}
	if c := st.LastSwitch; c != nil {
		a.printf("changed    %s, from %s\n", a.clock(c.At), embedderLine(c.From))
		a.printf("           %d records: %d had vectors before, %d after; ", c.Records, c.OldVectors, c.NewVectors)
		a.printf("recall %.3f, %.0f %% of the nearest as before (sample of %d)\n", c.Recall, 100*c.Agreement, c.Sample)
	}
	switch {
	case st.Building != nil:
		a.next("memctl embedder status -n %s", st.Namespace)
	case len(st.Kept) > 0:
		a.next("memctl search -n %s QUERY; to go back: memctl embedder switch -n %s %s", st.Namespace, st.Namespace, embedderArg(st.Kept[len(st.Kept)-1].Embedder))
	}
}

func printBuilding(a *app, b *memory.SpaceBuilding) {
	a.printf("building   %s\n", embedderLine(b.Embedder))
	line := fmt.Sprintf("%s: %d of %d records", b.Phase, b.Done, b.Total)
	if b.Skipped > 0 {
		line += fmt.Sprintf(", %d with nothing to embed", b.Skipped)
	}
	if b.Rate > 0 {
		line += fmt.Sprintf(", %.0f a second", b.Rate)
	}
	if b.ETAS > 0 {
		line += ", about " + time.Duration(b.ETAS*float64(time.Second)).Round(time.Second).String() + " to go"
	}
	a.printf("           %s\n", oneLine(line))
	if b.Error != "" && b.ErrorAt != nil {
		a.printf("           %s %s: %s\n", a.paint("33", "last error"), a.clock(*b.ErrorAt), oneLine(b.Error))
	}
	if b.RetryAt != nil {
		a.printf("           tries again at %s\n", a.clock(*b.RetryAt))
	}
}

// embedderArg is how PROVIDER names an embedder.
func embedderArg(e memory.EmbedderInfo) string {
	if e.Model == "" {
		return oneLine(e.Provider)
	}
	return oneLine(e.Provider + ":" + e.Model)
}

// parseEmbedder reads PROVIDER[:MODEL]; a model's name may hold colons.
func parseEmbedder(cmd *cobra.Command, arg string, dimensions int) (memory.SwitchEmbedder, error) {
	provider, model, named := strings.Cut(arg, ":")
	if provider == "" || named && model == "" {
		return memory.SwitchEmbedder{}, usage(cmd, "%q is not PROVIDER or PROVIDER:MODEL", arg)
	}
	if dimensions < 0 {
		return memory.SwitchEmbedder{}, usage(cmd, "--dimensions must not be negative")
	}
	return memory.SwitchEmbedder{Provider: provider, Model: model, Dimensions: dimensions}, nil
}

func embedderSwitchCmd(a *app) *cobra.Command {
	var wait bool
	var dimensions int
	cmd := &cobra.Command{
		Use:   "switch PROVIDER[:MODEL]",
		Short: "Change a namespace's embedder while it is searched and written to",
		Long: `Change a namespace's embedder. Its memories get vectors of the new model behind
everything else, beside those they have; searches use the old ones meanwhile.
When all are there, both are compared and searches use the new ones. The old
ones are kept for a while (setting embedder.keep_old, 24h), so that a switch
back is quick. What is built survives a restart of the node.

PROVIDER is what 'memnode --embedder' takes, such as builtin, ollama or openai.
Addresses and keys are the node's own: OLLAMA_HOST, OPENAI_API_KEY and the like.
Texts of all memories are sent to a provider outside the node.`,
		Example: `  memctl embedder switch -n team-a ollama:nomic-embed-text --wait
  memctl embedder switch -n team-a openai:text-embedding-3-small --dimensions 512
  memctl embedder switch -n team-a builtin`,
		Args: wantArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := parseEmbedder(cmd, args[0], dimensions)
			if err != nil {
				return err
			}
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			st, err := c.SwitchEmbedder(cmd.Context(), ns, req)
			if err != nil {
				return err
			}
			nothing := st.Building == nil
			if wait && !nothing {
				if st, err = awaitSwitch(cmd.Context(), a, c, st); err != nil {
					return err
				}
			}
			return a.emit(st, []string{st.Embedder.Space}, func() { printSwitch(a, st, nothing) })
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the namespace uses it")
	cmd.Flags().IntVar(&dimensions, "dimensions", 0, "ask the model for vectors of that size (0: its own)")
	cmd.ValidArgsFunction = completeFirst(completeWords("builtin", "ollama", "openai", "gemini"))
	return cmd
}

func printSwitch(a *app, st memory.EmbedderStatus, nothing bool) {
	switch {
	case nothing:
		a.printf("namespace %s uses %s already\n", oneLine(st.Namespace), embedderLine(st.Embedder))
	case st.Building != nil:
		a.printf("namespace %s is on its way to %s; searches go on with %s\n", oneLine(st.Namespace), embedderLine(st.Building.Embedder), embedderLine(st.Embedder))
		a.next("memctl embedder status -n %s", st.Namespace)
	default:
		a.printf("switched\n")
		printEmbedder(a, st)
	}
}

const switchPoll = 500 * time.Millisecond

// awaitSwitch shows progress until the namespace has the space that it is on
// its way to. Who stops waiting stops nothing else.
func awaitSwitch(ctx context.Context, a *app, c *client.Client, st memory.EmbedderStatus) (memory.EmbedderStatus, error) {
	to, said := st.Building.Embedder, ""
	bar := a.progress("embed " + st.Namespace)
	defer bar.finish()
	for st.Building != nil && st.Building.Embedder == to {
		b := st.Building
		bar.report(memory.Progress{Done: b.Done, Total: b.Total, Unit: "records"})
		if b.Phase == memory.PhaseWaiting && b.Error != "" && b.Error != said {
			said = b.Error
			a.note("waiting: %s", oneLine(b.Error))
		}
		if err := a.sys.sleep(ctx, switchPoll); err != nil {
			return st, stopped(ctx, err)
		}
		var err error
		if st, err = c.Embedder(ctx, st.Namespace); err != nil {
			return st, err
		}
	}
	if st.Embedder.Space != to.Space {
		return st, memory.Errorf(memory.CodeConflict, "the change to %s was given up", embedderLine(to))
	}
	bar.report(memory.Progress{Done: st.Vectors, Total: st.Records, Unit: "records"})
	return st, nil
}

func embedderCancelCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "cancel",
		Short:   "Give up a change of a namespace's embedder",
		Long:    "Give up a change of a namespace's embedder that is under way. The vectors made\nfor it are deleted; nothing changes for searches.",
		Example: "  memctl embedder cancel -n team-a",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, ns, err := a.connect()
			if err != nil {
				return err
			}
			st, err := c.CancelSwitch(cmd.Context(), ns)
			if err != nil {
				return err
			}
			return a.emit(st, []string{st.Embedder.Space}, func() {
				a.printf("namespace %s stays with %s\n", oneLine(st.Namespace), embedderLine(st.Embedder))
			})
		},
	}
}
