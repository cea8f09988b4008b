package verbs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
  memctl cluster secrets --out secrets
  memctl cluster status
  memctl cluster join n4 --peer-addr 10.0.0.4:8800 --route-addr 10.0.0.4:6222
  memctl cluster drain n1
  memctl cluster transfer n2
  memctl cluster remove n3
  memctl cluster quarantine p0.1.42.3
  memctl cluster init --data-dir n1 --node-id n1 --peer-certs certs
  memctl cluster recover --data-dir n1 --peer-certs certs --dry-run`,
	})
	cmd.AddCommand(clusterCertsCmd(a), clusterSecretsCmd(a), clusterStatusCmd(a), clusterJoinCmd(a), clusterTransferCmd(a), clusterDrainCmd(a), clusterRemoveCmd(a), clusterQuarantineCmd(a), clusterInitCmd(a), clusterRecoverCmd(a))
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

func clusterTransferCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "transfer NODE",
		Short: "Have another node lead",
		Long: `Have a node lead what one node leads for all: the writing, the keys and the log. NODE is
its id, or its full name. What was admitted is written before, and writes go on at the
other node a moment later; whoever sends them need not notice.

It is refused while the node does not answer, has no vote, is drained, or has no room on
its disk; one that is behind is waited for, for a few seconds. Any node takes the request.`,
		Example: `  memctl cluster transfer n2
  memctl cluster transfer n2 --json`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: completeFirst(completeNodes(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			transfer, err := c.Cluster().Transfer(cmd.Context(), memory.TransferLead{Node: args[0]})
			if err != nil {
				return err
			}
			return a.emit(transfer, []string{transfer.Leader}, func() {
				if transfer.Moved {
					a.printf("%s leads now\n", oneLine(transfer.Leader))
				} else {
					a.printf("%s leads already\n", oneLine(transfer.Leader))
				}
				a.next("memctl cluster status")
			})
		},
	}
}

func clusterDrainCmd(a *app) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain [NODE]",
		Short: "Have a node lead nothing, before it is taken down",
		Long: `Have a node hand over what it leads, and lead nothing from then on, until --undo or its
next start. NODE is its id, or its full name; without it, the node that answers this
request. The node goes on to take requests, to keep its copies and to vote.

It is refused where no other node is fit to lead. Where all others fail later, the
drained node leads all the same, until another one can.`,
		Example: `  memctl cluster drain n1
  memctl cluster drain n1 --undo
  memctl cluster drain n1 --json`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: completeFirst(completeNodes(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.dialOperator(cmd.Context())
			if err != nil {
				return err
			}
			req := memory.DrainNode{Undo: undo}
			if len(args) > 0 {
				req.Node = args[0]
			}
			drain, err := c.Cluster().Drain(cmd.Context(), req)
			if err != nil {
				return err
			}
			return a.emit(drain, []string{drain.Node}, func() { printDrain(a, drain) })
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node lead again")
	return cmd
}

func printDrain(a *app, drain memory.NodeDrain) {
	node, leader := oneLine(drain.Node), first(oneLine(drain.Leader), "nobody")
	if drain.Drained {
		a.printf("%s is drained; %s leads\n", node, leader)
		a.next("stop %s, or memctl cluster drain %s --undo", node, node)
		return
	}
	a.printf("%s may lead again; %s leads\n", node, leader)
	a.next("memctl cluster transfer %s", node)
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

func clusterName(n memory.ClusterNode) (id, name string) { return n.ID, n.Name }

func printCluster(a *app, st memory.ClusterStatus) {
	a.printf("cluster   %s\n", oneLine(st.ClusterID))
	called := names(st.Nodes, clusterName)
	for i, n := range st.Nodes {
		reachable := "answers"
		switch {
		case !n.Reachable:
			reachable = a.paint("31", first(oneLine(n.Why), "does not answer"))
		case n.Why != "":
			reachable = a.paint("33", "answers, and "+oneLine(n.Why))
		}
		if n.Drained {
			reachable += ", drained"
		}
		a.printf("node      %s  %s  %s  %s\n", a.paint("1", oneLine(called[i])), oneLine(n.Role), oneLine(n.Address), reachable)
	}
	for _, s := range st.Shards {
		a.printf("shard %-3d leader %s, term %d%s\n", s.ID, first(oneLine(s.Leader), "-"), s.Term, copiesOfLog(a, s.Copies))
		printStopped(a, s.WritesStopped)
		for _, r := range s.Replicas {
			behind := "up to date"
			if r.Behind > 0 {
				behind = fmt.Sprintf("%d behind", r.Behind)
			}
			if r.Halted != "" {
				behind = a.paint("31", "halted: ") + oneLine(r.Halted)
			}
			copied := ""
			switch {
			case r.Log.Damage != "":
				copied = ", " + a.paint("31", "its copy of the log is damaged: ") + oneLine(r.Log.Damage)
			case r.Log.Current || s.Copies == nil:
			case r.Log.Last > 0:
				copied = ", its copy of the log is not whole yet"
			default:
				copied = ", no copy of the log"
			}
			a.printf("          %s at %s, state %s, %s%s\n", oneLine(r.Node), oneLine(r.Position), oneLine(r.StateHash), behind, copied)
		}
	}
}

// copiesOfLog says how many copies a log has.
func copiesOfLog(a *app, c *memory.LogCopies) string {
	switch {
	case c == nil:
		return ""
	case c.Have < c.Want:
		return a.paint("33", fmt.Sprintf(", %d of %d copies of the log", c.Have, c.Want))
	}
	return fmt.Sprintf(", %d copies of the log", c.Have)
}

// clusterCerts is what `cluster certs --json` prints.
type clusterCerts struct {
	Authority       string        `json:"authority,omitempty"`        // of nodes
	ClientAuthority string        `json:"client_authority,omitempty"` // of servers and clients
	New             bool          `json:"new"`
	Certificates    []clusterCert `json:"certificates"`

	made []string // authorities that are new
}

type clusterCert struct {
	Use     string    `json:"use"`            // node, server or client
	Node    string    `json:"node,omitempty"` // of a node
	Name    string    `json:"name,omitempty"` // of a server or client
	Cert    string    `json:"cert"`
	Key     string    `json:"key"`
	Hosts   []string  `json:"hosts"`
	Expires time.Time `json:"expires"`
	Renewed bool      `json:"renewed"`
}

// certsOptions are the flags of `cluster certs`.
type certsOptions struct {
	out              string
	hosts            []string
	servers, clients []string
	days             int
}

func clusterCertsCmd(a *app) *cobra.Command {
	var opt certsOptions
	cmd := &cobra.Command{
		Use:   "certs [NODE...]",
		Short: "Make certificates for nodes, servers and clients, and an authority for development",
		Long: `Make certificates by which nodes know each other: NODE.crt and NODE.key for each
node, and ca.crt, which all of them trust. The first call makes the authority; later
ones use it for more nodes, or to make certificates anew before they end. A running
node takes files that were replaced.

Each certificate is for the node's id, localhost, 127.0.0.1 and ::1, and for what
--host names: give every name and address by which peers reach the node.

--server and --client make certificates for the ports that clients use, in the folder
clients of --out, of an authority of its own: a client's certificate is no node's.
memnode takes --tls-cert clients/SERVER.crt, --tls-key clients/SERVER.key and, to admit
nobody without a certificate, --tls-client-ca clients/ca.crt; memctl takes --tls-ca
clients/ca.crt, --tls-cert clients/CLIENT.crt and --tls-key clients/CLIENT.key.

ca.key signs new nodes, and whoever has a certificate of the authority is a node. Keep
it where you keep secrets, and on no node. With an authority of your own this verb is
not needed: it signs for one cluster and nobody else, and the common name of each
certificate is the node's id.`,
		Example: `  memctl cluster certs --out certs n1 n2 n3
  memctl cluster certs --out certs --host n4.example.org --host 10.0.0.4 n4
  memctl cluster certs --out certs --server mneme --host mneme.example.org --client agents`,
		Args: wantArgs(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opt.check(cmd, args); err != nil {
				return err
			}
			doc, err := opt.make(args)
			if errors.Is(err, devca.ErrAuthority) {
				return memory.Errorf(memory.CodeInvalid, "%v", err).
					WithHint("put the missing file back, or make new certificates for all with another --out").WithCause(err)
			}
			if err != nil {
				return err
			}
			var files []string
			for _, c := range doc.Certificates {
				files = append(files, c.Cert)
			}
			return a.emit(doc, files, func() { printCerts(a, doc) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.out, "out", "", "directory of the certificates, made when missing")
	f.StringArrayVar(&opt.hosts, "host", nil, "one more name or address that the certificates of nodes and servers are for; may be repeated")
	f.StringArrayVar(&opt.servers, "server", nil, "make a certificate of this name that nodes show to clients; may be repeated")
	f.StringArrayVar(&opt.clients, "client", nil, "make a certificate of this name that a client shows to nodes; may be repeated")
	f.IntVar(&opt.days, "days", 365, "how long the certificates count")
	return cmd
}

func (o *certsOptions) check(cmd *cobra.Command, nodes []string) error {
	if len(nodes)+len(o.servers)+len(o.clients) == 0 {
		return usage(cmd, "neither a node nor --server nor --client is named")
	}
	if o.out == "" {
		return usage(cmd, "--out is missing")
	}
	if o.days < 1 {
		return usage(cmd, "--days must be at least 1, not %d", o.days)
	}
	for what, names := range map[string][]string{"node": nodes, "server": o.servers, "client": o.clients} {
		for _, name := range names {
			if bad := memory.CheckName(what, name); bad != nil {
				return bad
			}
			if name == "ca" {
				return memory.Errorf(memory.CodeInvalid, "a %s cannot be called ca: that is the authority's name", what)
			}
			if what == "client" && slices.Contains(o.servers, name) {
				return memory.Errorf(memory.CodeInvalid, "a server and a client are both called %s: their files would be the same", name)
			}
		}
	}
	return nil
}

// make makes what is asked for, certificates towards clients in a folder of their own.
func (o *certsOptions) make(nodes []string) (clusterCerts, error) {
	var doc clusterCerts
	towards := filepath.Join(o.out, "clients")
	for _, each := range []struct {
		use   devca.Use
		name  string
		dir   string
		names []string
	}{{devca.ForNodes, "node", o.out, nodes}, {devca.ForServers, "server", towards, o.servers}, {devca.ForClients, "client", towards, o.clients}} {
		if len(each.names) == 0 {
			continue
		}
		made, err := devca.Make(devca.Options{Dir: each.dir, Use: each.use, Nodes: each.names, Hosts: o.hosts, Valid: time.Duration(o.days) * 24 * time.Hour})
		if err != nil {
			return doc, err
		}
		if made.New {
			doc.New, doc.made = true, append(doc.made, made.Authority)
		}
		if each.use == devca.ForNodes {
			doc.Authority = made.Authority
		} else {
			doc.ClientAuthority = made.Authority
		}
		for _, n := range made.Nodes {
			c := clusterCert{Use: each.name, Name: n.ID, Cert: n.Cert, Key: n.Key, Hosts: slices.Concat([]string{}, n.Hosts), Expires: n.Expires, Renewed: n.Renewed}
			if each.use == devca.ForNodes {
				c.Node, c.Name = n.ID, ""
			}
			doc.Certificates = append(doc.Certificates, c)
		}
	}
	return doc, nil
}

func printCerts(a *app, doc clusterCerts) {
	for _, authority := range doc.made {
		a.printf("made an authority: %s\n", authority)
	}
	for _, c := range doc.Certificates {
		who := strings.Join(c.Hosts, ", ")
		if c.Use == "client" {
			who = "the client " + c.Name
		}
		a.printf("%s  until %s  for %s\n", c.Cert, c.Expires.Format(time.DateOnly), who)
	}
}
