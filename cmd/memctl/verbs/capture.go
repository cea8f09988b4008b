package verbs

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

// captureFlags are the fields of a capture as flags.
type captureFlags struct {
	item       memory.Capture
	kind       string
	scope      string
	wait       string
	importance float64
	metadata   string
	at         timeFlag
}

func captureCmd(a *app) *cobra.Command {
	f := &captureFlags{at: timeFlag{now: a.sys.now}}
	cmd := &cobra.Command{
		Use:     "capture TEXT | -",
		Aliases: []string{"add"},
		Short:   "Remember something",
		Long:    "Remember a text; with - it is read from standard input. Without --as the author is\nthe operating system's user.",
		Example: `  memctl capture "deploys happen on Tuesdays"
  memctl capture --kind decision --tag db "we use Postgres"
  git log -1 --format=%B | memctl capture --kind practice -`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error { return capture(a, cmd, f, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.item.ID, "id", "", "idempotency key: the same id twice is remembered once")
	fl.StringVar(&f.kind, "kind", "", "preference, fact, decision, error, practice, tool-usage, observation, message or other")
	fl.StringArrayVar(&f.item.Tags, "tag", nil, "tag (repeatable)")
	fl.StringVar(&f.item.URI, "uri", "", "address of the memory: mem://NAMESPACE/PATH or PATH")
	fl.StringVar(&f.item.Conversation, "conversation", "", "conversation it belongs to")
	fl.Var(&f.at, "at", "when it happened (default now)")
	fl.StringVar(&f.item.Subject, "subject", "", "whose personal data it is")
	fl.StringVar(&f.scope, "scope", "", "who can see it: team or agent (default team)")
	fl.StringArrayVar(&f.item.DerivedFrom, "derived-from", nil, "id of a memory it follows from (repeatable)")
	fl.StringVar(&f.item.Role, "role", "", "role of the speaker, such as user or assistant")
	fl.Float64Var(&f.importance, "importance", 0, "0 to 1")
	fl.StringVar(&f.metadata, "metadata", "", "a JSON object")
	fl.StringVar(&f.wait, "wait", "", "answer once it is accepted, applied or searchable (default applied)")
	completeFlag(cmd, "kind", completeKinds)
	completeFlag(cmd, "scope", completeWords("team", "agent"))
	completeFlag(cmd, "wait", completeWords("accepted", "applied", "searchable"))
	return cmd
}

// fields finishes the capture from the flags that were given.
func (f *captureFlags) fields(cmd *cobra.Command) memory.Capture {
	item := f.item
	item.Kind = memory.Kind(f.kind)
	item.Scope = memory.Scope(f.scope)
	item.OccurredAt = f.at.ptr()
	if cmd.Flags().Changed("importance") {
		item.Importance = &f.importance
	}
	if f.metadata != "" {
		item.Metadata = json.RawMessage(f.metadata)
	}
	return item
}

func capture(a *app, cmd *cobra.Command, f *captureFlags, args []string) error {
	item := f.fields(cmd)
	var err error
	if item.Text, err = a.textArg(args); err != nil {
		return err
	}
	if item.Agent, err = a.author(); err != nil {
		return err
	}
	if bad := item.Validate(); bad != nil {
		return bad
	}
	switch memory.Wait(f.wait) {
	case "", memory.WaitAccepted, memory.WaitApplied, memory.WaitSearchable:
	default:
		return usage(cmd, "--wait is %q, it must be accepted, applied or searchable", f.wait)
	}
	c, ns, err := a.connect()
	if err != nil {
		return err
	}
	resp, err := c.Capture(cmd.Context(), ns, item, client.CaptureOptions{Wait: memory.Wait(f.wait)})
	if err != nil {
		return err
	}
	if len(resp.Results) == 0 {
		return memory.Errorf(memory.CodeInternal, "the node answered without a result")
	}
	r := resp.Results[0]
	if r.Error != nil {
		return (&memory.Error{Code: r.Error.Code, Message: r.Error.Detail}).WithHint("%s", r.Error.Hint)
	}
	return a.emit(resp, []string{r.RecordID}, func() {
		verb := "remembered"
		if r.Status == memory.StatusDuplicate {
			verb = "already remembered"
		}
		a.printf("%s in %s as %s: %s\n", verb, ns, item.Agent, a.paint("1", r.RecordID))
		if first(r.Vectors, resp.Vectors) == "pending" {
			a.println("its vector is still being made; it is found by its words already")
		}
		a.next("memctl search -n %s \"…\"", ns)
	})
}
