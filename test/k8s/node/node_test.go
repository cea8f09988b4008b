// Package node runs the manifests on a real node: a kubelet with containerd, in
// namespaces of its own, with services, names and volumes.
//
// Invariants: pods are what Kubernetes made of the manifests as they stand; whoever reads
// or writes goes through the service; a promise about what is kept is checked against
// every acknowledgement.
//
// Not its job: the manifests' fields (package k8s).
package node

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/test/k8s/internal/plane"
)

var (
	programs = flag.String("node.programs", "", "folder of what test/k8s/controlplane/build.sh --node built")
	debian   = flag.String("node.debian", "", "folder of what test/k8s/controlplane/debian.sh unpacked")
	image    = flag.String("node.image", "../../../dist/mneme.oci.tar", "Mneme's image, called localhost/mneme:dev")
	memctl   = flag.String("node.memctl", "../../../bin/memctl", "the program memctl")
	steps    = flag.String("node.steps", "", "a `regexp`: walk only these steps, and the first")
	inside   = flag.String("node.inside", "", "the test's folder: it runs in namespaces of its own")
)

// cluster is Mneme on the node.
type cluster struct {
	*plane.Plane
	t      *testing.T
	ctx    context.Context
	folder string // where commands are given
}

// TestNode walks a team's cluster from its first start to its scaling.
func TestNode(t *testing.T) {
	if *programs == "" {
		t.Skip("no node: -node.programs is not given (make test-k8s-node)")
	}
	if os.Getuid() != 0 {
		t.Skip("no node: a kubelet needs root")
	}
	if why := plane.Missing(*programs, "kubelet", "kube-proxy", "coredns", "bridge", "pause", "helm", "certmanager", "policies", "nats-server"); why != "" {
		t.Fatal(why)
	}
	dir := *inside
	if dir == "" {
		enter(t)
		return
	}
	// A copy, for the guide has people write into some of its files.
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS("../../../deploy")); err != nil {
		t.Fatal(err)
	}
	plane.Isolate(t, dir)
	c := &cluster{Plane: plane.Start(t, *programs, dir), t: t, ctx: t.Context(), folder: dir}
	c.StartNode(plane.Node{Debian: *debian, Images: map[string]string{"Mneme": *image, "pause": programImage(t, dir, filepath.Join(*programs, "pause")), "NATS": programImage(t, dir, filepath.Join(*programs, "nats-server")),
		"tools": programImage(t, dir, filepath.Join(*debian, "bin/busybox"), "sh", "df", "du")}, Disks: 60})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, plane.NodeIP+":53")
	}}
	t.Cleanup(c.explain)
	wanted := regexp.MustCompile(*steps)
	for i, step := range []struct {
		name string
		walk func(*cluster)
	}{
		{"the overlay is applied and becomes ready", (*cluster).apply},
		{"a client pod captures and searches through the service", (*cluster).clientPod},
		{"what a team declares is applied by a Job", (*cluster).declared},
		{"pods may do nothing beyond what they need", (*cluster).restricted},
		{"more memory for a running container", (*cluster).resize},
		{"kill -9 of the pod that leads", (*cluster).kill},
		{"eviction of the pod that leads, and of another one", (*cluster).evict},
		{"a rolling update under load", (*cluster).roll},
		{"from three to five and back", (*cluster).scale},
		{"from three to none and back", (*cluster).restart},
		{"a volume is lost", (*cluster).loseVolume},
		{"a majority of volumes is lost", (*cluster).loseMajority},
		{"backups and a drill by CronJobs", (*cluster).backups},
		{"what runbooks print for pods", (*cluster).runbooks},
		{"from three nodes to one", (*cluster).toOne},
		{"a master key that is none", (*cluster).badSecret},
		{"from one node to three", (*cluster).toThree},
		{"from buckets into nothing", (*cluster).fromBuckets},
		{"five nodes, two of which are lost at once", (*cluster).five},
		{"three nodes on an external NATS", (*cluster).externalNATS},
		{"the chart is installed, tested and upgraded by Helm", (*cluster).chart},
		{"certificates by cert-manager", (*cluster).certManager},
		{"the network keeps to the policies", (*cluster).policies},
	} {
		if i > 0 && !wanted.MatchString(step.name) {
			continue
		}
		if !t.Run(step.name, func(t *testing.T) {
			before := c.t
			defer func() { c.t = before }()
			c.t, c.ctx = t, t.Context()
			began := time.Now()
			step.walk(c)
			c.say("%s: %.1f s", step.name, time.Since(began).Seconds())
		}) {
			return
		}
	}
}

// enter runs this test again in namespaces of its own, where whatever it starts or mounts
// ends with it.
func enter(t *testing.T) {
	dir, err := os.MkdirTemp("", "mneme-node-") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-n", "-m", "-p", "--fork", "--kill-child", "--mount-proc", "--propagation", "private", os.Args[0]}
	args = append(append(args, os.Args[1:]...), "-node.inside", dir, "-test.run", "^TestNode$")
	cmd := exec.Command("unshare", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("in namespaces of its own: %v; what was left is in %s", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// say prints a line of the walk, for docs/operate/tested.md.
func (c *cluster) say(format string, args ...any) {
	fmt.Printf("node: "+format+"\n", args...)
}

// mneme runs kubectl in Mneme's namespace.
func (c *cluster) mneme(args ...string) string {
	c.t.Helper()
	out, err := c.Try("", append([]string{"-n", "mneme"}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// clear takes a cluster away, with all that it kept.
func (c *cluster) clear() {
	c.t.Helper()
	c.mneme("delete", "statefulset,service,configmap,networkpolicy,pdb,serviceaccount,job,cronjob", "-l", "app.kubernetes.io/part-of=mneme")
	c.mneme("wait", "pod", "-l", "app.kubernetes.io/name=mneme", "--for=delete", "--timeout=5m")
	c.mneme("delete", "pvc,secret", "--all")
}

// write puts a file into the cluster's folder.
func (c *cluster) write(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// memctl runs memctl in a pod.
func (c *cluster) memctl(pod string, args ...string) (string, error) {
	return c.Try("", append([]string{"-n", "mneme", "exec", pod, "-c", "memnode", "--", "memctl"}, args...)...)
}

// until waits for ok.
func (c *cluster) until(what string, ok func() error) {
	c.t.Helper()
	c.Eventually(what, ok)
}

// ready waits until so many pods are.
func (c *cluster) ready(n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d pods are ready", n), func() error {
		out, err := c.Try("", "-n", "mneme", "get", "statefulset", "mneme", "-o", "jsonpath={.status.replicas}/{.status.readyReplicas}/{.status.updatedReplicas} {.status.observedGeneration}={.metadata.generation}")
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%d/%[1]d/%[1]d ", n); !strings.HasPrefix(out, want) || !settled(out) {
			return fmt.Errorf("replicas, ready, updated, generation: %s", out)
		}
		return nil
	})
}

// settled reports whether the controller has seen the newest generation.
func settled(out string) bool {
	_, generations, _ := strings.Cut(out, " ")
	seen, is, _ := strings.Cut(generations, "=")
	return seen == is
}

// voters waits until the cluster has so many, each with a whole copy of the log.
func (c *cluster) voters(n int) {
	c.t.Helper()
	c.agree(n, fmt.Sprintf(", %d copies of the log", n))
}

// agree waits until the cluster has so many voters that are up to date, and the status says
// something.
func (c *cluster) agree(n int, says string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d voters%s", n, says), func() error {
		out, err := c.memctl("mneme-0", "cluster", "status")
		if err != nil {
			return err
		}
		if strings.Count(out, " voter ") != n || !strings.Contains(out, says) ||
			strings.Count(out, "up to date\n") != n || strings.Count(out, "  answers\n") != n {
			return fmt.Errorf("\n%s", out)
		}
		return nil
	})
}

// client talks to the service by its name.
func (c *cluster) client() *client.Client {
	c.t.Helper()
	token, err := os.ReadFile(filepath.Join(c.folder, "secrets", "operator.token"))
	if err != nil {
		c.t.Fatal(err)
	}
	cl, err := client.New("https://mneme.mneme.svc.cluster.local:8787", client.Options{Token: strings.TrimSpace(string(token)), CAFile: filepath.Join(c.folder, "secrets", "clients", "ca.crt"), Agent: "test"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cl.Close() })
	return cl
}

// explain shows what pods say, where something failed.
func (c *cluster) explain() {
	if !c.t.Failed() {
		return
	}
	for _, args := range [][]string{{"get", "pods,pvc", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"}, {"logs", "-l", "app.kubernetes.io/name=mneme", "--tail=30", "--prefix"}} {
		out, err := c.Try("", append([]string{"-n", "mneme"}, args...)...)
		c.t.Logf("kubectl %v: %v\n%s", args, err, out)
	}
}
