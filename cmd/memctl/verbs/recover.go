package verbs

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mneme/memory"
)

func clusterRecoverCmd(a *app) *cobra.Command {
	var certs string
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "recover --data-dir DIR --peer-certs DIR",
		Short: "Go on from one node's data, when most nodes are lost for ever",
		Long: `Make the data directory of one stopped node the beginning of a new cluster, when the
majority of the old one is lost for ever, or waits for ever because copies were put back on
most nodes, or damage was found on most. As long as most nodes can run, start them: nothing is lost then.

Stop all nodes first. With --dry-run on each that is left, see how far it reaches and
what is damaged, for all of its state is read. Recover from the one that reaches furthest;
of several that reach as far, from one of which nothing is damaged, and of those from the
one with more changes of keys. What was acknowledged behind that, on nodes that are gone, is
lost, and nobody can tell what it was; its positions answer lost_position.

Then start memnode with this data directory and the options that it had, and the other
nodes with empty data directories: they join, and the log is written again from the state
once as many nodes as --bootstrap-expect are there, and serves reads once most of them are. Old
data directories of the other nodes are refused, and are yours to keep or to remove. The
former log and Raft files of this node lie in aside/. The next backup goes into the same
places as those before, where it begins an era.

It may be called again, also where it was killed. It refuses while another node of the
cluster answers, or memnode runs on the directory.
` + masterKeyHelp,
		Example: `  memctl cluster recover --data-dir n1 --peer-certs certs --dry-run
  memctl cluster recover --data-dir n1 --peer-certs certs
  memctl cluster recover --data-dir n1 --peer-certs certs --yes --json`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.flags.dataDir == "" {
				return usage(cmd, "--data-dir is missing")
			}
			if certs == "" {
				return usage(cmd, "--peer-certs is missing: the other nodes are asked whether they run")
			}
			off, err := a.offline()
			if err != nil {
				return err
			}
			report, err := off.Recover(cmd.Context(), a.flags.dataDir, certs, true)
			if err != nil {
				return err
			}
			if !dryRun && !report.Before {
				if len(report.Running) == 0 && !yes {
					printRecover(a, report)
					_ = a.out.Flush()
				}
				if err := a.confirm(yes || len(report.Running) > 0, fmt.Sprintf("go on from this data directory alone, and give up what the others had behind it? type the node's id, %s:", oneLine(report.Node)), report.Node); err != nil {
					return err
				}
				if report, err = off.Recover(cmd.Context(), a.flags.dataDir, certs, false); err != nil {
					return err
				}
			}
			if err := a.emit(report, []string{report.NewCluster}, func() { printRecover(a, report) }); err != nil || len(report.Running) == 0 {
				return err
			}
			return memory.Errorf(memory.CodeConflict, "nothing can be recovered while others are there").WithHint("where most of them can run, start this one too; else stop them first")
		},
	}
	f := cmd.Flags()
	f.StringVar(&certs, "peer-certs", "", "the folder of certificates that memnode has")
	f.BoolVar(&dryRun, "dry-run", false, "only say what this data directory holds")
	f.BoolVar(&yes, "yes", false, "do not ask")
	dataDirFlag(a, cmd)
	return cmd
}

func printRecover(a *app, r memory.RecoverReport) {
	if r.Before {
		a.printf("nothing to do: an earlier call recovered %s, which is the only node of the cluster %s and has not started yet\n", a.paint("1", oneLine(r.Node)), oneLine(r.NewCluster))
	} else if r.Recovered {
		a.printf("recovered %s: it is the cluster %s now, of which it is the only node\n", a.paint("1", oneLine(r.Node)), oneLine(r.NewCluster))
	} else {
		a.printf("node      %s of the cluster %s, with %s\n", a.paint("1", oneLine(r.Node)), oneLine(r.ClusterID), first(strings.Join(r.Others, ", "), "no others"))
	}
	for _, s := range r.Shards {
		a.printf("shard %-3d reaches %d; state at %s, last event %s\n", s.ID, s.Reaches, oneLine(s.State), s.SealedAt.Format(time.RFC3339))
		a.printf("          Raft's log goes to %d, its copy of the log to %d, terms to %d\n", s.Raft, s.Log, s.Term)
	}
	a.printf("keys      %d changes\n", r.Keys)
	for _, d := range r.Damage {
		a.printf("damaged   %s\n", oneLine(d))
	}
	for _, n := range r.Running {
		a.printf("running   %s\n", oneLine(n))
	}
	switch {
	case r.Recovered:
		a.printf("aside     %s\n", oneLine(r.Aside))
		a.next("start memnode with this data directory and the options that it had, and the other nodes with empty ones")
	case len(r.Running) == 0:
		a.println("what was acknowledged behind that, on nodes that are gone, is lost and cannot be known")
	}
}
