package verbs

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// applied is the answer of `memctl apply`.
type applied struct {
	Namespaces []namespaceChange `json:"namespaces"`
	DryRun     bool              `json:"dry_run,omitempty"` // nothing was changed
}

// namespaceChange is what a namespace lacks of what is declared, or lacked.
type namespaceChange struct {
	Name     string                   `json:"name"`
	Action   string                   `json:"action"` // create, change or none
	Settings map[string]settingChange `json:"settings,omitempty"`
	where    string                   // file:line of the declaration
}

// settingChange is a setting before and after; nil is the default.
type settingChange struct {
	From *string `json:"from"`
	To   *string `json:"to"`
}

// The actions of a change.
const (
	actionCreate = "create"
	actionChange = "change"
	actionNone   = "none"
)

func applyCmd(a *app) *cobra.Command {
	var files []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE...",
		Short: "Make namespaces and their settings as files declare them",
		Long: `Create the namespaces that files declare, and change the settings that differ. What is
as declared already is left alone, so that the same files may be applied again and again.
Settings that no file names stay as they are; one that is null gets its default.
Nothing is ever deleted. All files are checked before anything is changed.

A file is YAML or JSON:

  namespaces:
    - name: team-a
      settings:
        search.min_score: 0.3
        search.aliases: "k8s = kubernetes; pr = pull request"
        search.newer: null
    - name: team-b

The settings are those of 'memctl namespace set'. An embedder is chosen when the namespace
is created; later it is changed by 'memctl embedder switch'.`,
		Example: `  memctl apply -f team.yaml --dry-run
  memctl apply -f team.yaml
  memctl apply -f /etc/mneme/declared    # all .yaml, .yml and .json files of a folder
  generate | memctl apply -f -`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return usage(cmd, "memctl apply needs a file")
			}
			want, err := readDeclared(files, a.sys.in)
			if err != nil {
				return err
			}
			c, err := a.dial()
			if err != nil {
				return err
			}
			out := applied{DryRun: dryRun}
			if out.Namespaces, err = plan(cmd.Context(), c, want); err != nil {
				return err
			}
			if err := tryOut(cmd.Context(), c, out.Namespaces); err != nil {
				return err
			}
			if !dryRun {
				if err := carryOut(cmd.Context(), c, out.Namespaces); err != nil {
					return err
				}
			}
			return a.emit(out, out.changed(), func() { printApplied(a, out, files) })
		},
	}
	cmd.Flags().StringArrayVarP(&files, "file", "f", nil, "`file` or folder with what is declared, - for standard input; may be given again")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would change")
	return cmd
}

// plan compares what is declared with what there is.
func plan(ctx context.Context, c *client.Client, want declared) ([]namespaceChange, error) {
	list, err := c.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	have := map[string]memory.Namespace{}
	for _, ns := range list.Namespaces {
		have[ns.Name] = ns
	}
	var out []namespaceChange
	for _, d := range want.namespaces {
		ns, exists := have[d.name]
		change, err := d.beside(ns, exists)
		if err != nil {
			return nil, err
		}
		out = append(out, change)
	}
	return out, nil
}

// beside says how a namespace differs from its declaration.
func (d declaredNamespace) beside(ns memory.Namespace, exists bool) (namespaceChange, error) {
	out := namespaceChange{Name: d.name, Action: actionNone, Settings: map[string]settingChange{}, where: d.where}
	for _, key := range slices.Sorted(maps.Keys(d.settings)) {
		var from *string
		if v, ok := ns.Settings[key]; ok && v != "" {
			from = &v
		}
		to := d.settings[key]
		if exists && strings.HasPrefix(key, "embedder.") && to != nil && chosen(ns, key) != "" {
			if !sameSetting(*to, chosen(ns, key)) && !(from != nil && sameSetting(*to, *from)) {
				return out, memory.Errorf(memory.CodeConflict, "%s: namespace %s has %s %s, and %s is declared: nothing was changed", d.where, d.name, key, chosen(ns, key), *to).
					WithHint("an embedder is changed by `memctl embedder switch -n %s …`; then declare what it was changed to", d.name)
			}
			continue
		}
		if from == nil && to == nil || from != nil && to != nil && sameSetting(*from, *to) {
			continue
		}
		out.Settings[key] = settingChange{from, to}
	}
	switch {
	case !exists:
		out.Action = actionCreate
		maps.DeleteFunc(out.Settings, func(_ string, c settingChange) bool { return c.To == nil })
	case len(out.Settings) > 0:
		out.Action = actionChange
	}
	return out, nil
}

// chosen is what a namespace has of a setting that is chosen at its creation, "" for others.
func chosen(ns memory.Namespace, key string) string {
	switch key {
	case "embedder.provider":
		return ns.Embedder.Provider
	case "embedder.model":
		return first(ns.Embedder.Model, "-")
	case "embedder.dimensions":
		return strconv.Itoa(ns.Embedder.Dimensions)
	}
	return ""
}

// sameSetting reports whether two values mean the same: numbers do by their value.
func sameSetting(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return a == b || errX == nil && errY == nil && x == y
}

// tryOut asks the node whether it would make all of the changes, so that a mistake in the
// last of them changes nothing.
func tryOut(ctx context.Context, c *client.Client, changes []namespaceChange) error {
	for _, ch := range changes {
		if err := ch.make(ctx, c, true); err != nil {
			e := memory.AsError(err)
			e.Message = ch.where + ": namespace " + ch.Name + ": " + e.Message + ": nothing was changed"
			return e
		}
	}
	return nil
}

// carryOut makes the changes, in order. An error says how far it came: the same command
// goes on from there.
func carryOut(ctx context.Context, c *client.Client, changes []namespaceChange) error {
	done := 0
	for _, ch := range changes {
		if err := ch.make(ctx, c, false); err != nil {
			e := memory.AsError(err)
			e.Message = "namespace " + ch.Name + ": " + e.Message
			if done > 0 {
				e.Message += "; " + count(done, "namespace before it is", "namespaces before it are") + " as declared now"
			}
			if e.Hint == "" {
				e.Hint = "the same command goes on where this ended"
			}
			return e
		}
		if ch.Action != actionNone {
			done++
		}
	}
	return nil
}

// make asks the node for a change, or whether it would be made.
func (ch namespaceChange) make(ctx context.Context, c *client.Client, dryRun bool) (err error) {
	switch ch.Action {
	case actionCreate:
		req := memory.CreateNamespace{Name: ch.Name, Settings: map[string]string{}, DryRun: dryRun}
		for k, s := range ch.Settings {
			req.Settings[k] = *s.To
		}
		_, err = c.CreateNamespace(ctx, req)
	case actionChange:
		req := memory.PatchNamespace{Settings: map[string]*string{}, DryRun: dryRun}
		for k, s := range ch.Settings {
			req.Settings[k] = s.To
		}
		_, err = c.PatchNamespace(ctx, ch.Name, req)
	}
	return err
}

// changed names the namespaces that were not as declared.
func (r applied) changed() []string {
	var out []string
	for _, ch := range r.Namespaces {
		if ch.Action != actionNone {
			out = append(out, ch.Name)
		}
	}
	return out
}

func printApplied(a *app, r applied, files []string) {
	words := map[string]string{actionCreate: "created", actionChange: "changed", actionNone: "as declared"}
	if r.DryRun {
		words = map[string]string{actionCreate: "to be created", actionChange: "to be changed", actionNone: "as declared"}
	}
	for _, ch := range r.Namespaces {
		a.printf("namespace %s %s\n", a.paint("1", ch.Name), words[ch.Action])
		for _, key := range slices.Sorted(maps.Keys(ch.Settings)) {
			s := ch.Settings[key]
			a.printf("  %s  %s → %s\n", key, settingShown(s.From), settingShown(s.To))
		}
	}
	if r.DryRun && len(r.changed()) > 0 {
		a.next("memctl apply -f %s", strings.Join(files, " -f "))
	}
}

// settingShown is a setting's value for people.
func settingShown(v *string) string {
	if v == nil {
		return "(default)"
	}
	return oneLine(*v)
}
