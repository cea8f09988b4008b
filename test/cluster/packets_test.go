package cluster

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mneme/client"
)

// namespaced says, in the environment, that a process of these tests has a network of its own.
const namespaced = "MNEME_TEST_NAMESPACE"

// inNamespace reports whether this process has a network of its own, which ends with it. Where it
// has none it runs the test again in a process that has, with the same flags, and ends as that
// one does.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaced) != "" {
		return true
	}
	switch _, err := exec.LookPath("ip"); {
	case runtime.GOOS != "linux":
		t.Skip("SKIPPED: network namespaces are Linux's, and this is " + runtime.GOOS)
	case os.Geteuid() != 0:
		t.Skip("SKIPPED: network namespaces need root")
	case err != nil:
		t.Skip("SKIPPED: network namespaces need ip, of iproute2: ", err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=0"}
	flag.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "robust.") {
			args = append(args, fmt.Sprintf("-%s=%s", f.Name, f.Value))
		}
	})
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), namespaced+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	runtime.LockOSThread() // Pdeathsig is about the thread
	defer runtime.UnlockOSThread()
	must(t, cmd.Start())
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if line != "" {
			t.Log(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("in namespaces: %v", err)
	}
	return false
}

// packets is a network of namespaces: each node has one, with an address of its own, and this
// process routes between them. Packets of a link that is cut go down a sink, so that no end
// hears of it: neither an acknowledgement nor a reset comes, and a connection is attempted in
// vain. Only links can be cut; nothing is slow.
type packets struct {
	t     testing.TB
	nodes map[string]nodeAddrs

	mu  sync.Mutex
	cut map[link]bool
}

type nodeAddrs struct{ ip, peer, route string } // the last two are ports

// The ports of a node in its namespace, and the table of the routes into the sink.
const (
	httpPort, natsPort, peerPort, routePort = "8700", "4200", "8800", "6200"
	sinkTable                               = "100"
)

// newTeamInNamespaces makes n nodes that run in namespaces. inNamespace comes before.
func newTeamInNamespaces(t testing.TB, n int) *team {
	t.Helper()
	must(t, os.MkdirAll("/run/netns", 0o755))
	must(t, syscall.Mount("none", "/run/netns", "tmpfs", 0, "")) // for this process only
	w := &packets{t: t, nodes: map[string]nodeAddrs{}, cut: map[link]bool{}}
	setUp := []string{"link set lo up",
		"link add sink type veth peer name sunk", "link set sink up", "link set sunk up", "addr add 10.77.0.1/24 dev sink",
		"neigh add 10.77.0.2 lladdr 02:00:00:00:00:01 dev sink", "route add default via 10.77.0.2 dev sink table " + sinkTable}
	var addrs []string
	for i := 1; i <= n; i++ {
		id := fmt.Sprintf("n%d", i)
		ip := fmt.Sprintf("10.77.%d.2", i)
		w.nodes[id] = nodeAddrs{ip, peerPort, routePort}
		w.ip("netns add " + id)
		setUp = append(setUp, fmt.Sprintf("link add v%d type veth peer name eth0 netns %s", i, id), fmt.Sprintf("addr add 10.77.%d.1/24 dev v%d", i, i),
			fmt.Sprintf("link set v%d up", i))
		for _, port := range []string{httpPort, natsPort, peerPort, routePort} {
			addrs = append(addrs, net.JoinHostPort(ip, port))
		}
	}
	w.ip(setUp...)
	for i := 1; i <= n; i++ {
		w.ipIn(fmt.Sprintf("n%d", i), "link set lo up", fmt.Sprintf("addr add 10.77.%d.2/24 dev eth0", i), "link set eth0 up", fmt.Sprintf("route add default via 10.77.%d.1", i))
	}
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644))
	t.Cleanup(func() { // once the nodes have ended
		w.heal()
		w.ip("link del sink")
		for i := 1; i <= n; i++ {
			w.ip(fmt.Sprintf("link del v%d", i), fmt.Sprintf("netns del n%d", i))
		}
		_ = syscall.Unmount("/run/netns", 0)
	})
	tm := newTeamAt(t, addrs)
	tm.net = w
	for _, p := range tm.nodes {
		p.within = p.id
		p.args = append(p.args, "--insecure-listen")
	}
	return tm
}

// ip runs commands of ip in this process's namespace.
func (w *packets) ip(commands ...string) { w.ipIn("", commands...) }

func (w *packets) ipIn(namespace string, commands ...string) {
	w.t.Helper()
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-netns", namespace}, args...)
	}
	cmd := exec.CommandContext(context.Background(), "ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("ip %v: %v\n%s", commands, err, out)
	}
}

// rules are those by which packets of a link are lost: they go to a port of the one, or come
// from a port of the other.
func (w *packets) rules(do string, l link) []string {
	from, to := w.nodes[l.from], w.nodes[l.to]
	port := func(a nodeAddrs) string {
		if l.plane == raftPlane {
			return a.peer
		}
		return a.route
	}
	one := func(end, port string) string {
		return fmt.Sprintf("rule %s from %s to %s ipproto tcp %s %s lookup %s", do, from.ip, to.ip, end, port, sinkTable)
	}
	return []string{one("dport", port(to)), one("sport", port(from))}
}

func (w *packets) set(r rule, links ...link) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.delay > 0 || r.lose > 0 {
		w.t.Error("links in namespaces are cut or whole")
	}
	var changes []string
	for _, l := range links {
		switch {
		case l.from == l.to || w.cut[l] == r.cut:
		case r.cut:
			changes, w.cut[l] = append(changes, w.rules("add", l)...), true
		default:
			changes = append(changes, w.rules("del", l)...)
			delete(w.cut, l)
		}
	}
	if len(changes) > 0 {
		w.ip(changes...)
	}
}

func (w *packets) heal() {
	w.t.Helper()
	w.mu.Lock()
	var all []link
	for l := range w.cut {
		all = append(all, l)
	}
	w.mu.Unlock()
	w.set(rule{}, all...)
}

// held counts the packets that went down the sink.
func (w *packets) held() (sent uint64) {
	w.t.Helper()
	f, err := os.Open("/proc/net/dev")
	must(w.t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	must(w.t, err)
	for _, line := range strings.Split(string(b), "\n") {
		if name, counts, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == "sink" {
			fields := strings.Fields(counts)
			_, err := fmt.Sscan(fields[9], &sent) // behind eight of what was received, and the bytes
			must(w.t, err)
		}
	}
	return sent
}

func (w *packets) late() uint64      { return 0 }
func (w *packets) strangers() uint64 { return 0 }

// notRelayed says why links are not slow, "" if they go through relays.
func notRelayed(tm *team) string {
	if _, ok := tm.net.(*network); !ok {
		return "needs relays"
	}
	return ""
}

// operator is a client for the operator's verbs. A node without auth takes them through its
// socket, which a client of an address that is not this machine's does not look for.
func (p *process) operator(ctx context.Context) (*client.Client, error) {
	if p.within == "" {
		return p.client.Operator(ctx)
	}
	st, err := p.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	over := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", st.AdminSocket)
	}}
	return client.New("http://localhost", client.Options{Agent: "tester", HTTPClient: &http.Client{Transport: over}})
}
