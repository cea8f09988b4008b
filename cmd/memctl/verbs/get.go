package verbs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// target says which memory an argument names.
type target struct {
	namespace string
	id        string // or its beginning; "" if uri is set
	uri       string
}

// target reads an ID, the beginning of one, or a URI. The namespace of a complete URI
// is used unless -n names another one, which is refused.
func (a *app) target(arg string) (target, error) {
	if id, ok := memory.IDBeginning(arg); ok {
		if !memory.ValidULID(id) {
			id = arg // to the node it may be a uri too
		}
		ns, err := a.namespace()
		return target{namespace: ns, id: id}, err
	}
	if bad := memory.CheckURIPath(arg); bad != nil || arg == "" {
		return target{}, memory.Errorf(memory.CodeInvalid, "%q is neither an id nor a uri", arg).
			WithHint("an id has 26 letters and digits, of which the first %d may do; a uri looks like mem://<namespace>/<path>", memory.MinIDBeginning)
	}
	rest, full := strings.CutPrefix(arg, "mem://")
	if !full {
		ns, err := a.namespace()
		return target{namespace: ns, uri: arg}, err
	}
	ns, _, _ := strings.Cut(rest, "/")
	if a.flags.namespace != "" && a.flags.namespace != ns {
		return target{}, memory.Errorf(memory.CodeInvalid, "%s does not lie in namespace %s", arg, a.flags.namespace)
	}
	return target{namespace: ns, uri: arg}, nil
}

// resolve turns a URI or the beginning of an id into an id by asking the node.
func resolve(ctx context.Context, c *client.Client, t target) (target, error) {
	if memory.ValidULID(t.id) {
		return t, nil
	}
	rec, err := fetch(ctx, c, t, 0)
	t.id = rec.RecordID
	return t, err
}

// connectTo dials and resolves one argument.
func (a *app) connectTo(ctx context.Context, arg string) (*client.Client, target, error) {
	t, err := a.target(arg)
	if err != nil {
		return nil, t, err
	}
	c, err := a.dial()
	if err != nil {
		return nil, t, err
	}
	t, err = resolve(ctx, c, t)
	return c, t, err
}

func getCmd(a *app) *cobra.Command {
	var version int
	cmd := &cobra.Command{
		Use:   "get ID|URI",
		Short: "Show one memory",
		Long:  "Show one memory. Of an id as many characters will do as no other memory begins with,\nsix at least; so they will wherever memctl takes an id.",
		Example: `  memctl get 01JC2Y3K5V8Q0T4W6X7Z9A1B2C
  memctl get 01jc2y3k5v
  memctl get mem://team-a/runbooks/deploy --version 2`,
		Args: wantArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if version < 0 {
				return usage(cmd, "--version must be 1 or more")
			}
			t, err := a.target(args[0])
			if err != nil {
				return err
			}
			c, err := a.dial()
			if err != nil {
				return err
			}
			rec, err := fetch(cmd.Context(), c, t, version)
			if err != nil {
				return err
			}
			return a.emit(rec, []string{rec.RecordID}, func() { printRecord(a, t.namespace, rec) })
		},
	}
	cmd.Flags().IntVar(&version, "version", 0, "this version instead of the current one")
	return cmd
}

// fetch gets a record; by URI the first answer is enough for the current version.
func fetch(ctx context.Context, c *client.Client, t target, version int) (memory.Record, error) {
	id := t.id
	if id == "" {
		rec, err := c.GetByURI(ctx, t.namespace, t.uri, client.ReadOptions{})
		if err != nil || version == 0 || version == rec.Version {
			return rec, err
		}
		id = rec.RecordID
	}
	return c.Get(ctx, t.namespace, id, client.GetOptions{Version: version})
}

func printRecord(a *app, ns string, rec memory.Record) {
	line := func(name, value string) {
		if value != "" {
			a.printf("%s %s\n", a.paint("2", name), oneLine(value))
		}
	}
	line("id          ", rec.RecordID)
	line("namespace   ", first(rec.Namespace, ns))
	line("uri         ", rec.URI)
	a.printf("%s %d\n", a.paint("2", "version     "), rec.Version)
	line("kind        ", string(rec.Kind))
	line("agent       ", rec.Agent)
	line("scope       ", string(rec.Scope))
	line("tags        ", strings.Join(rec.Tags, ", "))
	line("conversation", rec.Conversation)
	line("subject     ", rec.Subject)
	line("happened    ", a.clock(rec.OccurredAt))
	line("remembered  ", a.clock(rec.CreatedAt))
	line("derived from", strings.Join(rec.DerivedFrom, ", "))
	line("metadata    ", string(rec.Metadata))
	line("position    ", rec.Position)
	a.println("")
	a.println(strings.TrimRight(safe(rec.Text), "\n"))
}
