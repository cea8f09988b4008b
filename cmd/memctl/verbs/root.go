package verbs

import (
	"strings"

	"github.com/spf13/cobra"
)

func rootCmd(a *app) *cobra.Command {
	root := group(&cobra.Command{
		Use:   "memctl",
		Short: "Talk to Mneme, a memory for teams of AI agents",
		Long: `memctl captures, finds and looks after the memories of a Mneme node.

Every verb takes the flags under "Global Flags". A flag wins over its
environment variable, which wins over what 'memctl use' remembered.
Times are RFC 3339, dates, "2h", "7d", "today" or "yesterday".

Exit codes: 0 done, 1 internal, 2 usage or invalid, 3 not found, 4 not allowed,
5 conflict or data directory in use, 6 not now or not known, 7 log and state disagree.`,
		Example: `  memctl namespace create team-a
  memctl use team-a
  memctl capture "deploys happen on Tuesdays"
  memctl search "when do we deploy"`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(a.sys.version),
	})
	root.SetVersionTemplate("memctl   {{.Version}}\n") // memctl version asks the node for its own, too
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.BoolVar(&a.flags.json, "json", false, "print one JSON document (tail, export and --follow: one a line)")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print ids only")
	f.StringVar(&a.flags.addr, "addr", "", "the node's address (https:// with TLS, unix:///PATH for its admin socket), or those of several nodes of a cluster with commas between (MNEME_ADDR; default http://127.0.0.1:8787)")
	f.StringVar(&a.flags.tokenFile, "token-file", "", "file that holds the token (or the token itself in MNEME_TOKEN)")
	f.StringVar(&a.flags.tlsCA, "tls-ca", "", "`file` with the authority of the nodes' certificates, or such a certificate itself (MNEME_TLS_CA; default: the system's authorities)")
	f.StringVar(&a.flags.tlsCert, "tls-cert", "", "`file` with the certificate to show to nodes that ask for one (MNEME_TLS_CLIENT_CERT)")
	f.StringVar(&a.flags.tlsKey, "tls-key", "", "`file` with its key (MNEME_TLS_CLIENT_KEY)")
	f.DurationVar(&a.flags.connectTimeout, "connect-timeout", 0, "for how long to try again where no node can be reached, as 30s (MNEME_CONNECT_TIMEOUT; default: each is tried once)")
	f.StringVarP(&a.flags.namespace, "namespace", "n", "", "namespace to work in (MNEME_NAMESPACE)")
	f.StringVar(&a.flags.as, "as", "", "agent who is acting (MNEME_AGENT)")
	_ = root.RegisterFlagCompletionFunc("namespace", completeNamespaces(a))
	root.AddGroup(
		&cobra.Group{ID: "memories", Title: "Memories:"},
		&cobra.Group{ID: "streams", Title: "Streams and files:"},
		&cobra.Group{ID: "agents", Title: "Agents:"},
		&cobra.Group{ID: "node", Title: "Node:"},
	)
	add := func(id string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
	}
	add("memories", captureCmd(a), searchCmd(a), getCmd(a), listCmd(a), historyCmd(a),
		timelineCmd(a), reviseCmd(a), forgetCmd(a), graphCmd(a))
	add("streams", auditCmd(a), tailCmd(a), importCmd(a), exportCmd(a))
	add("agents", hookCmd(a), recallsCmd(a), mcpCmd(a), integrateCmd(a))
	add("node", namespaceCmd(a), applyCmd(a), useCmd(a), projectCmd(a), statusCmd(a), doctorCmd(a), rebuildCmd(a), logCmd(a), clockCmd(a), reloadCmd(a), debugCmd(a),
		rejectedCmd(a), quarantineCmd(a), asideCmd(a), backupCmd(a), restoreCmd(a), embedderCmd(a), clusterCmd(a), upgradeCmd(a), natsConfigCmd(a), updateCmd(a), versionCmd(a))
	return root
}

// addCompletion adds cobra's own verb, which takes a shell that it does not know
// for a question for help. It writes to where root does by now.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			group(cmd)
		}
	}
}

// addHelp adds cobra's own verb, which answers a question about a verb that there is
// not with the help of memctl.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" {
			continue
		}
		cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(about, first(strings.Join(rest, " "), strings.Join(args, " ")))
			}
			return about.Help()
		}
	}
}
