package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"mneme/memory"
)

func clusterInitCmd(a *app) *cobra.Command {
	var id, certs string
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "init --data-dir DIR --node-id ID --peer-certs DIR",
		Short: "Make a node on its own the first node of a cluster",
		Long: `Make the data directory of a stopped node on its own the first node of a cluster. Nothing
is lost: memories, their positions, the ids that were sent, the audit, what is yet to be
erased, keys, shards and the operator token are those of the cluster.

Stop memnode first. The whole log is compared with the state, and nothing is changed where
they differ. Then start memnode with this data directory and the options of a cluster, and
the other nodes with empty data directories: they join, and the log is written again from
the state once as many nodes as --bootstrap-expect says are there. Until then nothing is
written. The former log and Raft files lie in aside/.

It may be called again, also where it was killed: until it is through, memnode does not open
the directory. There is no way back but a backup that is restored. The next backup goes into
the same places as those before, where it begins an era.
` + masterKeyHelp,
		Example: `  memctl cluster init --data-dir ~/.mneme --node-id n1 --peer-certs certs --dry-run
  memctl cluster init --data-dir ~/.mneme --node-id n1 --peer-certs certs
  memctl cluster init --data-dir ~/.mneme --node-id n1 --peer-certs certs --yes --json`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.flags.dataDir == "":
				return usage(cmd, "--data-dir is missing")
			case id == "":
				return usage(cmd, "--node-id is missing: what the node is called in the cluster, such as n1")
			case certs == "":
				return usage(cmd, "--peer-certs is missing: the folder with the node's certificate, which memctl cluster certs makes")
			}
			off, err := a.offline()
			if err != nil {
				return err
			}
			do := func(dryRun bool) (memory.InitReport, error) {
				bar := a.progress("verify")
				defer bar.finish()
				return off.Init(cmd.Context(), a.flags.dataDir, id, certs, dryRun, bar.report)
			}
			report, err := do(dryRun || !yes)
			if err != nil {
				return err
			}
			if !dryRun && !report.Done {
				printInit(a, report)
				_ = a.out.Flush()
				if err := a.confirm(false, fmt.Sprintf("make it the first node of a cluster, which memnode opens with the options of one only? type the node's id, %s:", oneLine(id)), id); err != nil {
					return err
				}
				if report, err = do(false); err != nil {
					return err
				}
			}
			return a.emit(report, []string{report.ClusterID}, func() { printInit(a, report) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "node-id", "", "what the node is called in the cluster, for ever, such as n1")
	f.StringVar(&certs, "peer-certs", "", "the folder with the node's certificate, as memnode gets it")
	f.BoolVar(&dryRun, "dry-run", false, "only compare log and state, and say what would become of them")
	f.BoolVar(&yes, "yes", false, "do not ask")
	dataDirFlag(a, cmd)
	return cmd
}

func printInit(a *app, r memory.InitReport) {
	for _, s := range r.Shards {
		a.printf("shard %-3d whole up to %s, %d events\n", s.ID, oneLine(s.Position), s.Events)
	}
	switch {
	case r.Before:
		a.printf("nothing to do: an earlier call made it node %s of the cluster %s, which has not started yet\n", a.paint("1", oneLine(r.Node)), oneLine(r.ClusterID))
	case r.Done:
		a.printf("it is node %s, the first one of the cluster %s\n", a.paint("1", oneLine(r.Node)), oneLine(r.ClusterID))
		a.printf("aside     %s\n", oneLine(r.Aside))
	default:
		return
	}
	a.next("start memnode with this data directory and the options of a cluster, and the other nodes with empty ones")
}
