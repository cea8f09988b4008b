package verbs

import (
	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/memory"
)

func reviseCmd(a *app) *cobra.Command {
	var kind, uri, conversation string
	var tags []string
	var ifVersion int
	cmd := &cobra.Command{
		Use:   "revise ID|URI [TEXT | -]",
		Short: "Make a new version of a memory",
		Long:  "Make a new version of a memory with another text, read from standard input for -,\nor with other fields. The versions before stay in its history.",
		Example: `  memctl revise 01JC2Y3K5V8Q0T4W6X7Z9A1B2C "deploys happen on Wednesdays"
  memctl revise mem://team-a/runbooks/deploy --tag deploy --if-version 3`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var rev memory.Revision
			if len(args) > 1 {
				text, err := a.textArg(args[1:])
				if err != nil {
					return err
				}
				rev.Text = &text
			}
			changed := cmd.Flags().Changed
			if changed("kind") {
				k := memory.Kind(kind)
				rev.Kind = &k
			}
			if changed("uri") {
				rev.URI = &uri
			}
			if changed("conversation") {
				rev.Conversation = &conversation
			}
			if changed("tag") {
				rev.Tags = &tags
			}
			if rev == (memory.Revision{}) {
				return usage(cmd, "nothing to change was given")
			}
			return revise(a, cmd, args[0], rev, ifVersion)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&kind, "kind", "", "new kind")
	fl.StringVar(&uri, "uri", "", "new uri")
	fl.StringVar(&conversation, "conversation", "", "new conversation")
	fl.StringArrayVar(&tags, "tag", nil, "new tags, in place of all the old ones (repeatable)")
	fl.IntVar(&ifVersion, "if-version", 0, "only if the memory stands at this version")
	completeFlag(cmd, "kind", completeKinds)
	return cmd
}

func revise(a *app, cmd *cobra.Command, arg string, rev memory.Revision, ifVersion int) error {
	c, t, err := a.connectTo(cmd.Context(), arg)
	if err != nil {
		return err
	}
	author, err := a.author()
	if err != nil {
		return err
	}
	resp, err := c.Revise(cmd.Context(), t.namespace, t.id, rev, client.WriteOptions{As: author, IfVersion: ifVersion})
	if err != nil {
		return err
	}
	return a.emit(resp, []string{resp.RecordID}, func() {
		a.printf("revised in %s: %s is now version %d\n", t.namespace, a.paint("1", resp.RecordID), resp.Version)
		a.next("memctl history -n %s %s", t.namespace, resp.RecordID)
	})
}
