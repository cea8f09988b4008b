package verbs

import (
	"github.com/spf13/cobra"

	"mneme/memory"
)

func upgradeCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "upgrade",
		Short: "Show how far an upgrade of the nodes has come, and end it",
		Long: `Nodes are upgraded one by one: stop one, start the new program in its place, wait until
memctl cluster status says that it has everything, go on with the next. Programs of one
minor version beside each other work together. Until the log's feature level is raised, a
node can be put back to the program before, in the same way. It is raised by itself an
hour after every node knows more, or by memctl upgrade finish.`,
		Example: `  memctl upgrade check
  memctl upgrade finish`,
	})
	cmd.AddCommand(upgradeCheckCmd(a), upgradeFinishCmd(a))
	return cmd
}

func upgradeCheckCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "check",
		Short:   "Show the program of each node, and what the logs may use",
		Example: "  memctl upgrade check --json",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			st, err := c.Cluster().Upgrade(cmd.Context())
			if err != nil {
				return err
			}
			return a.emit(st, upgradeNames(st), func() { printUpgrade(a, st) })
		},
	}
}

func upgradeFinishCmd(a *app) *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   "finish",
		Short: "Let the logs use what all nodes know; no node can be put back from then on",
		Long: `Let the logs use what the programs of all nodes know. From then on a program that does
not know it refuses the data directory, and says so. It is refused unless every node
answers, and knows this node's level.`,
		Example: "  memctl upgrade finish --dry-run\n  memctl upgrade finish --yes",
		Args:    wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			if dryRun {
				st, err := c.Cluster().Upgrade(cmd.Context())
				if err != nil {
					return err
				}
				return a.emit(st, upgradeNames(st), func() { printUpgrade(a, st) })
			}
			if err := a.confirm(yes, "Put no node back to the program before, from now on? [y/N]", ""); err != nil {
				return err
			}
			st, err := c.Cluster().FinishUpgrade(cmd.Context())
			if err != nil {
				return err
			}
			return a.emit(st, upgradeNames(st), func() { printUpgrade(a, st) })
		},
	}
	destructiveFlags(cmd, &yes, &dryRun)
	return cmd
}

func upgradeNames(st memory.UpgradeStatus) []string {
	return names(st.Nodes, func(n memory.UpgradeNode) (string, string) { return n.ID, n.Name })
}

func printUpgrade(a *app, st memory.UpgradeStatus) {
	for i, name := range upgradeNames(st) {
		n := st.Nodes[i]
		switch {
		case !n.Reachable:
			a.printf("node   %s  %s\n", oneLine(name), a.paint("31", "does not answer"))
		case n.Level == 0:
			a.printf("node   %s  version %s, which says nothing of levels: it is an older one\n", oneLine(name), oneLine(n.Version))
		default:
			a.printf("node   %s  version %s, knows level %d\n", oneLine(name), oneLine(n.Version), n.Level)
		}
	}
	a.printf("level  %d\n", st.Level)
	switch {
	case st.Known > st.Level:
		a.printf("all nodes know level %d: it is raised an hour after that; until then each can be put back to the program before\n", st.Known)
		a.next("memctl upgrade finish")
	case st.Known == st.Level:
		a.println("nothing is under way: the logs use what all nodes know")
	default:
		a.println("not every node says that it knows more: until all do, each can be put back to the program before")
		a.next("upgrade the nodes that are behind, then memctl upgrade check")
	}
}
