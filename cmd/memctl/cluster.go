package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mneme/internal/peer/devca"
	"mneme/memory"
)

func clusterCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "cluster",
		Short: "Several nodes",
		Example: `  memctl cluster certs --out certs n1 n2 n3
  memctl cluster status
  memctl cluster remove n3`,
	})
	cmd.AddCommand(clusterCertsCmd(a), clusterStatusCmd(a), clusterRemoveCmd(a))
	return cmd
}

func clusterStatusCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the nodes of the cluster, who leads, and how far each is",
		Example: `  memctl cluster status
  memctl cluster status --json | jq '.shards[].replicas'`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial()
			if err != nil {
				return err
			}
			st, err := c.Cluster().Status(cmd.Context())
			if err != nil {
				return err
			}
			var ids []string
			for _, n := range st.Nodes {
				ids = append(ids, n.ID)
			}
			return a.emit(st, ids, func() { printCluster(a, st) })
		},
	}
}

func clusterRemoveCmd(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Take a node that is lost, or that you stopped, out of the cluster for ever",
		Long: `Take a node out of the cluster for ever: out of the Raft groups and out of the servers
that keep the log. NODE is its id, or its full name, which is the id and what the node
drew for its data directory.

It is for a node that is lost with its data, and for one that is to go: stop that one
first. Ask a node that stays. The name never comes back: a node that was removed ends
when it starts with the data directory that it had. A node with the same id and an
empty data directory joins anew, and takes everything from the others.

It is refused while the node answers, unless --force is given, and where those that are
left could not agree on anything because too few of them run. It may be asked for again,
and carries on then.`,
		Example: `  memctl cluster remove n3
  memctl cluster remove n3-01jd1x2m3n4p5q6r7s8t9v0w1x --json`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: completeFirst(completeNodes(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			removal, err := c.Cluster().Remove(cmd.Context(), memory.RemoveNode{Node: args[0], Force: force})
			if err != nil {
				return err
			}
			return a.emit(removal, removal.Removed, func() {
				for _, name := range removal.Removed {
					a.printf("removed %s\n", oneLine(name))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove a node that still answers, too; it ends")
	return cmd
}

func printCluster(a *app, st memory.ClusterStatus) {
	a.printf("cluster   %s\n", oneLine(st.ClusterID))
	for _, n := range st.Nodes {
		reachable := "answers"
		if !n.Reachable {
			reachable = a.paint("31", "does not answer")
		}
		a.printf("node      %s  %s  %s  %s\n", a.paint("1", oneLine(n.ID)), oneLine(n.Role), oneLine(n.Address), reachable)
	}
	for _, s := range st.Shards {
		a.printf("shard %-3d leader %s, term %d\n", s.ID, first(oneLine(s.Leader), "-"), s.Term)
		for _, r := range s.Replicas {
			behind := "up to date"
			if r.Behind > 0 {
				behind = fmt.Sprintf("%d behind", r.Behind)
			}
			copied := ""
			if r.Log.Last > 0 && !r.Log.Current {
				copied = ", its copy of the log is not whole yet"
			}
			a.printf("          %s at %s, state %s, %s%s\n", oneLine(r.Node), oneLine(r.Position), oneLine(r.StateHash), behind, copied)
		}
	}
}

// clusterCerts is what `cluster certs --json` prints.
type clusterCerts struct {
	Authority    string        `json:"authority"`
	New          bool          `json:"new"`
	Certificates []clusterCert `json:"certificates"`
}

type clusterCert struct {
	Node    string    `json:"node"`
	Cert    string    `json:"cert"`
	Key     string    `json:"key"`
	Hosts   []string  `json:"hosts"`
	Expires time.Time `json:"expires"`
	Renewed bool      `json:"renewed"`
}

func clusterCertsCmd(a *app) *cobra.Command {
	var out string
	var hosts []string
	var days int
	cmd := &cobra.Command{
		Use:   "certs NODE...",
		Short: "Make certificates for nodes, and an authority for development",
		Long: `Make certificates by which nodes know each other: NODE.crt and NODE.key for each
node, and ca.crt, which all of them trust. The first call makes the authority; later
ones use it for more nodes, or to make certificates anew before they end. A running
node takes files that were replaced.

Each certificate is for the node's id, localhost, 127.0.0.1 and ::1, and for what
--host names: give every name and address by which peers reach the node.

ca.key signs new nodes, and whoever has a certificate of the authority is a node. Keep
it where you keep secrets, and on no node. With an authority of your own this verb is
not needed: it signs for one cluster and nobody else, and the common name of each
certificate is the node's id.`,
		Example: `  memctl cluster certs --out certs n1 n2 n3
  memctl cluster certs --out certs --host n4.example.org --host 10.0.0.4 n4`,
		Args: wantArgs(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage(cmd, "--out is missing")
			}
			if days < 1 {
				return usage(cmd, "--days must be at least 1, not %d", days)
			}
			for _, id := range args {
				if bad := memory.CheckName("node", id); bad != nil {
					return bad
				}
				if id == "ca" {
					return memory.Errorf(memory.CodeInvalid, "a node cannot be called ca: that is the authority's name")
				}
			}
			made, err := devca.Make(devca.Options{Dir: out, Nodes: args, Hosts: hosts, Valid: time.Duration(days) * 24 * time.Hour})
			if errors.Is(err, devca.ErrAuthority) {
				return memory.Errorf(memory.CodeInvalid, "%v", err).
					WithHint("put the missing file back, or make new certificates for all nodes with another --out").WithCause(err)
			}
			if err != nil {
				return err
			}
			doc := clusterCerts{Authority: made.Authority, New: made.New}
			var files []string
			for _, n := range made.Nodes {
				doc.Certificates = append(doc.Certificates, clusterCert{n.ID, n.Cert, n.Key, n.Hosts, n.Expires, n.Renewed})
				files = append(files, n.Cert)
			}
			return a.emit(doc, files, func() {
				if doc.New {
					a.printf("made an authority: %s\n", doc.Authority)
				}
				for _, c := range doc.Certificates {
					a.printf("%s  until %s  for %s\n", c.Cert, c.Expires.Format(time.DateOnly), strings.Join(c.Hosts, ", "))
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "directory of the certificates, made when missing")
	f.StringArrayVar(&hosts, "host", nil, "one more name or address that the certificates are for; may be repeated")
	f.IntVar(&days, "days", 365, "how long the certificates count")
	return cmd
}
