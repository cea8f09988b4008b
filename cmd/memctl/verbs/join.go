package verbs

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"mneme/memory"
)

// joinOptions are the flags of `cluster join`, which are memnode's.
type joinOptions struct {
	dataDir, certs, peerAddr, routeAddr, httpAddr, natsAddr string
}

// clusterJoin is what `cluster join --json` prints.
type clusterJoin struct {
	Node      string       `json:"node"`
	ClusterID string       `json:"cluster_id"`
	Command   []string     `json:"command"` // what starts the node
	Join      []joinedNode `json:"join"`
	// External says that the log is on an external NATS, whose options are to be added.
	External bool `json:"external_nats"`
}

// joinedNode is a node of the cluster, through which the new one may join.
type joinedNode struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	Problem string `json:"problem,omitempty"` // why it is not reached from here
}

func clusterJoinCmd(a *app) *cobra.Command {
	var opt joinOptions
	cmd := &cobra.Command{
		Use:   "join NODE --peer-addr HOST:PORT --route-addr HOST:PORT",
		Short: "Print the memnode command with which a new node joins",
		Long: `Print the memnode command with which a new node joins the cluster. NODE is its id, for
ever, such as n4. A node joins by being started: this looks beforehand at what would stop
it, and changes nothing.

Call it on the machine of the new node, with --addr naming nodes of the cluster. It asks
them who is there, refuses an id that is taken, opens the node's certificate, and tries the
peer port of each node: whether it is reached from here, and whether both certificates are
of one authority. The command names those that were reached. Start it with an empty data
directory; the node gets a vote when it has caught up.`,
		Example: `  memctl cluster join n4 --peer-addr 10.0.0.4:8800 --route-addr 10.0.0.4:6222 --addr http://10.0.0.1:8787
  memctl cluster join n4 --peer-addr 127.0.0.1:8804 --route-addr 127.0.0.1:6224 --http-addr 127.0.0.1:8784 --nats-addr 127.0.0.1:4224
  memctl cluster join n4 --peer-addr 10.0.0.4:8800 --route-addr 10.0.0.4:6222 --json`,
		Args: wantArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.peerAddr == "" {
				return usage(cmd, "--peer-addr is missing: where the other nodes are to reach this one, as host:port")
			}
			doc, err := planJoin(cmd.Context(), a, cmd, args[0], opt)
			if err != nil {
				return err
			}
			return a.emit(doc, []string{doc.Node}, func() { printJoin(a, doc) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.dataDir, "data-dir", "", "the new node's data directory, which is empty (default: its id)")
	f.StringVar(&opt.certs, "peer-certs", "certs", "the folder with ca.crt and the new node's certificate")
	f.StringVar(&opt.peerAddr, "peer-addr", "", "where the other nodes reach it, as host:port")
	f.StringVar(&opt.routeAddr, "route-addr", "", "where the other log servers reach its own, as host:port; not with an external NATS")
	f.StringVar(&opt.httpAddr, "http-addr", "", "where it listens for HTTP, if not at memnode's default")
	f.StringVar(&opt.natsAddr, "nats-addr", "", "where it listens for NATS, if not at memnode's default")
	return cmd
}

// planJoin asks the cluster and tries the way to its nodes.
func planJoin(ctx context.Context, a *app, cmd *cobra.Command, id string, opt joinOptions) (doc clusterJoin, err error) {
	if bad := memory.CheckName("node", id); bad != nil {
		return doc, bad
	}
	off, err := a.offline()
	if err != nil {
		return doc, err
	}
	c, err := a.dial()
	if err != nil {
		return doc, err
	}
	st, err := c.Cluster().Status(ctx)
	if err != nil {
		return doc, err
	}
	doc = clusterJoin{Node: id, ClusterID: st.ClusterID, External: len(st.Shards) > 0 && st.Shards[0].Copies == nil}
	if err := joinable(cmd, st, doc, opt); err != nil {
		return doc, err
	}
	var addrs []string
	for _, n := range st.Nodes {
		addrs = append(addrs, n.Address)
	}
	problems, err := off.Reach(ctx, opt.certs, id, addrs)
	if err != nil {
		return doc, err
	}
	var reached []string
	for i, n := range st.Nodes {
		to := joinedNode{Node: n.ID, Address: n.Address}
		if problems[i] != nil {
			to.Problem = problems[i].Error()
		} else {
			reached = append(reached, n.Address)
		}
		doc.Join = append(doc.Join, to)
	}
	if reached == nil {
		return doc, memory.Errorf(memory.CodeUnavailable, "no node of the cluster is reached from here: %s at %s: %s", doc.Join[0].Node, doc.Join[0].Address, doc.Join[0].Problem).
			WithHint("call this on the machine of the new node; it needs a way to the peer port of the others, and a certificate of their authority in --peer-certs")
	}
	doc.Command = joinCommand(id, opt, doc.External, reached)
	return doc, nil
}

// joinable refuses what no start could make good.
func joinable(cmd *cobra.Command, st memory.ClusterStatus, doc clusterJoin, opt joinOptions) error {
	if len(st.Nodes) == 1 && st.Nodes[0].Address == "" {
		return memory.Errorf(memory.CodeInvalid, "that node is on its own: there is no cluster to join").
			WithHint("stop it, and make it the first one of a cluster: memctl cluster init --help")
	}
	for _, o := range []struct{ flag, addr string }{{"peer-addr", opt.peerAddr}, {"route-addr", opt.routeAddr}, {"http-addr", opt.httpAddr}, {"nats-addr", opt.natsAddr}} {
		if _, port, err := net.SplitHostPort(o.addr); o.addr != "" && (err != nil || port == "") {
			return usage(cmd, "--%s %q is not host:port", o.flag, o.addr)
		}
	}
	if opt.peerAddr == opt.routeAddr {
		return usage(cmd, "--peer-addr and --route-addr are both %s; each needs a port of its own", opt.peerAddr)
	}
	var there *memory.ClusterNode // of several with the id one that answers, or else votes
	for i, n := range st.Nodes {
		switch {
		case n.ID != doc.Node && n.Address == opt.peerAddr:
			return memory.Errorf(memory.CodeConflict, "%s is the address of node %s", n.Address, n.ID).WithHint("give the new node a --peer-addr of its own")
		case n.ID == doc.Node && (there == nil || n.Reachable || n.Role == memory.RoleVoter && !there.Reachable):
			there = &st.Nodes[i]
		}
	}
	if there != nil && there.Reachable {
		return memory.Errorf(memory.CodeConflict, "the node %s is one of the cluster already, and answers at %s", there.ID, there.Address).WithHint("a new node has an id of its own; with its own data directory that one comes back by being started as before")
	}
	if there != nil {
		return memory.Errorf(memory.CodeConflict, "the node %s is one of the cluster, and does not answer", there.ID).
			WithHint("if it has its data, start it as before; if it is lost for ever, memctl cluster remove %s first", there.ID)
	}
	switch {
	case doc.External && opt.routeAddr != "":
		return usage(cmd, "the log is on an external NATS: there are no log servers to route to; leave out --route-addr")
	case !doc.External && opt.routeAddr == "":
		return usage(cmd, "--route-addr is missing: where the other log servers are to reach this node's, as host:port")
	}
	return nil
}

// joinCommand is what is to be typed.
func joinCommand(id string, opt joinOptions, external bool, reached []string) []string {
	words := []string{"memnode", "--node-id", id, "--data-dir", first(opt.dataDir, id), "--peer-certs", opt.certs}
	for _, o := range []struct{ name, value string }{{"http-addr", opt.httpAddr}, {"nats-addr", opt.natsAddr}, {"peer-addr", opt.peerAddr}, {"route-addr", opt.routeAddr}} {
		if o.value != "" && (o.name != "nats-addr" || !external) {
			words = append(words, "--"+o.name, o.value)
		}
	}
	return append(words, "--join", strings.Join(reached, ","))
}

func printJoin(a *app, doc clusterJoin) {
	for _, n := range doc.Join {
		how := "is reached"
		if n.Problem != "" {
			how = a.paint("31", "is not reached from here: ") + oneLine(n.Problem)
		}
		a.printf("node      %s  %s  %s\n", a.paint("1", oneLine(n.Node)), oneLine(n.Address), how)
	}
	words := make([]string, len(doc.Command))
	for i, w := range doc.Command {
		words[i] = shellWord(w)
	}
	a.println("start the new node with:")
	a.println("  " + strings.Join(words, " "))
	if doc.External {
		a.println("and with the --nats-url and --nats-monitor, or --nats-system-url, that the other nodes have")
	}
	a.next("memctl cluster status")
}

// shellWord makes a word safe for a shell.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("_@%+=:,./~-", r) || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return fmt.Sprintf("'%s'", strings.ReplaceAll(word, "'", `'\''`))
}
