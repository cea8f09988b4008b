package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mneme/client"
	"mneme/memory"
	"mneme/test/k8s/internal/plane"
)

// apply installs a team's cluster.
func (c *cluster) apply() {
	began := time.Now()
	out := c.walk("A team of three")
	c.say("from the first command to three ready pods and their status: %.1f s", time.Since(began).Seconds())
	if strings.Count(out, " voter ") != 3 {
		c.t.Errorf("not three voters:\n%s", out)
	}
	c.voters(3)
}

// clientPod captures and searches in a pod, and searches from the node by the address of
// the service.
func (c *cluster) clientPod() {
	if out := c.walk("A client"); !strings.Contains(out, "deploys happen on Tuesdays") {
		c.t.Errorf("the search gave %q", out)
	}
	ip := c.mneme("get", "service", "mneme", "-o", "jsonpath={.spec.clusterIP}")
	found, err := c.client().Search(c.ctx, "team", memory.SearchRequest{Query: "when do we deploy"})
	if err != nil || len(found.Results) != 1 {
		c.t.Errorf("search through %s: %+v, %v", ip, found, err)
	}
	c.say("the node's search through %s gave %d result", ip, len(found.Results))
}

// process finds the memnode of a pod.
func (c *cluster) process(pod string) int {
	c.t.Helper()
	return plane.Process(c.t, "memnode", "MNEME_NODE_ID="+pod)
}

// restricted looks at a pod's process as the kernel has it.
func (c *cluster) restricted() {
	pid := c.process("mneme-1")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t65532\t65532", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), want) {
			c.t.Errorf("the process has no %q:\n%s", want, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	if root := strings.Fields(string(mounts)); len(root) < 4 || root[1] != "/" || !strings.HasPrefix(root[3], "ro,") {
		c.t.Errorf("its root can be written to: %v", root)
	}
	if strings.Contains(string(mounts), "serviceaccount") {
		c.t.Error("it has a token of Kubernetes")
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || strings.Contains(string(environ), "MNEME_PORT=") {
		c.t.Errorf("it has variables of services, or none at all: %v", err)
	}
	c.say("uid 65532, no capabilities, no new privileges, seccomp, root read-only, no token")
	// Nine tenths of the 2 GiB that the container may have.
	const want = "go_gc_gomemlimit_bytes 1.932735283e+09\n"
	if !strings.Contains(c.metrics("mneme.mneme.svc.cluster.local"), want) {
		c.t.Errorf("the metrics do not say %s", want)
	}
	c.say("%s", strings.TrimSpace(want))
}

// resize gives a running process more memory, as the kubelet does for a pod that is
// resized in place. (This kubelet itself cannot: it has no cgroups of pods.)
func (c *cluster) resize() {
	const gibibytes, want = 3, "go_gc_gomemlimit_bytes 2.899102924e+09\n"
	pid := c.process("mneme-1")
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	limit := ""
	for _, line := range strings.Split(strings.TrimSpace(string(groups)), "\n") {
		switch parts := strings.SplitN(line, ":", 3); parts[1] {
		case "memory":
			limit = filepath.Join("/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		case "":
			if limit == "" {
				limit = filepath.Join("/sys/fs/cgroup", parts[2], "memory.max")
			}
		}
	}
	value := []byte(fmt.Sprint(gibibytes << 30))
	// Version 1 has a limit for both memory and swap, which may not be the smaller one.
	if both := strings.Replace(limit, "memory.limit", "memory.memsw.limit", 1); both != limit {
		if _, err := os.Stat(both); err == nil {
			if err := os.WriteFile(both, value, 0o644); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(limit, value, 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.until("Go's limit has followed", func() error {
		if !strings.Contains(c.metrics("mneme-1.mneme-peers.mneme.svc.cluster.local"), want) {
			return errors.New("it has not")
		}
		return nil
	})
	c.say("the limit of a running container became %d GiB: %s", gibibytes, strings.TrimSpace(want))
}

// metrics are those of a pod, or of any by the name of the service.
func (c *cluster) metrics(host string) string {
	c.t.Helper()
	token, err := os.ReadFile(filepath.Join(c.folder, "secrets", "operator.token"))
	if err != nil {
		c.t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(c.folder, "secrets", "clients", "ca.crt"))
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, "https://"+host+":8787/metrics", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("metrics: %s, %v", resp.Status, err)
	}
	return string(body)
}

// leader is the pod that leads shard 0.
func (c *cluster) leader() string {
	c.t.Helper()
	leader := ""
	c.until("a node leads", func() error {
		out, err := c.memctl("mneme-0", "cluster", "status", "--json")
		if err != nil {
			return err
		}
		var st memory.ClusterStatus
		if err := json.Unmarshal([]byte(out), &st); err != nil {
			return err
		}
		if leader = st.Shards[0].Leader; leader == "" {
			return errors.New("nobody leads")
		}
		leader = leader[:min(len(leader), len("mneme-0"))]
		return nil
	})
	return leader
}

// kill ends the process that leads, under load, and nothing that it acknowledged is lost.
func (c *cluster) kill() {
	pod := c.leader()
	load := c.startLoad("kill")
	load.wait(200)
	pid := c.process(pod)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	began := time.Now()
	c.until(pod+" was restarted", func() error {
		out, err := c.Try("", "-n", "mneme", "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
		if err == nil && out != "1 true" {
			err = errors.New("restarts and ready: " + out)
		}
		return err
	})
	c.say("%s led, and was ready again %.1f s after kill -9", pod, time.Since(began).Seconds())
	c.voters(3)
	load.end()
}

// evict has the pod that leads leave its machine, as a drain does, and the budget refuse
// another one meanwhile.
func (c *cluster) evict() {
	leader, other := c.leader(), "mneme-1"
	if leader == other {
		other = "mneme-0"
	}
	load := c.startLoad("evict")
	load.wait(200)
	c.until("the budget allows one", func() error {
		out, err := c.Try("", "-n", "mneme", "get", "pdb", "mneme", "-o", "jsonpath={.status.disruptionsAllowed}")
		if err == nil && out != "1" {
			err = errors.New("it allows " + out)
		}
		return err
	})
	evict := func(pod string) error {
		_, err := c.Try(fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": "mneme"}}`, pod),
			"create", "--raw", "/api/v1/namespaces/mneme/pods/"+pod+"/eviction", "-f", "-")
		return err
	}
	if err := evict(leader); err != nil {
		c.t.Fatal(err)
	}
	err := evict(other)
	if err == nil || !strings.Contains(err.Error(), "disruption budget") {
		c.t.Errorf("the second eviction gave %v", err)
	}
	c.say("the second eviction was refused: %v", err)
	c.until("the budget allows one again", func() error {
		out, err := c.Try("", "-n", "mneme", "get", "pdb", "mneme", "-o", "jsonpath={.status.disruptionsAllowed}")
		if err == nil && out != "1" {
			err = errors.New("it allows " + out)
		}
		return err
	})
	c.ready(3)
	c.until("mneme-0 answers", func() error {
		_, err := c.memctl("mneme-0", "status")
		return err
	})
	c.voters(3)
	load.end()
}

// uids are those of pods, by name.
func (c *cluster) uids() map[string]string {
	c.t.Helper()
	out := map[string]string{}
	for _, line := range strings.Fields(c.mneme("get", "pods", "-l", "app.kubernetes.io/name=mneme", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid}{"\n"}{end}`)) {
		name, uid, _ := strings.Cut(line, "=")
		out[name] = uid
	}
	return out
}

// roll updates all pods while captures come.
func (c *cluster) roll() {
	before := c.uids()
	load := c.startLoad("roll")
	load.wait(200)
	began := time.Now()
	c.walk("Update, or restart, the pods")
	c.say("rolling update of three pods under %d captures a second: %.1f s", rate, time.Since(began).Seconds())
	c.voters(3)
	load.end()
	for name, uid := range c.uids() {
		if before[name] == uid {
			c.t.Errorf("%s is the same pod as before", name)
		}
	}
}

// scale goes from three to five, and back.
func (c *cluster) scale() {
	before := c.uids()
	load := c.startLoad("scale")
	c.walk("From three to five")
	c.voters(5)
	for name, uid := range before {
		if c.uids()[name] != uid {
			c.t.Errorf("%s was restarted", name)
		}
	}
	c.say("five voters and five copies of the log; the first three pods were not touched")
	c.walk("From five to three")
	c.voters(3)
	load.end()
}

// restart stops all pods and starts them again.
func (c *cluster) restart() {
	cl := c.client()
	before, err := cl.Namespace(c.ctx, "team")
	if err != nil {
		c.t.Fatal(err)
	}
	c.walk("Stop everything, and start it")
	c.voters(3)
	after, err := cl.Namespace(c.ctx, "team")
	if err != nil || after.Records != before.Records || after.StateHash != before.StateHash {
		c.t.Errorf("before %d records, state %s; after %d, %s; %v", before.Records, before.StateHash, after.Records, after.StateHash, err)
	}
}

// loseVolume takes a pod's volume away; the pod comes back with another one.
func (c *cluster) loseVolume() {
	load := c.startLoad("volume")
	load.wait(100)
	c.walk("A volume that is lost")
	c.ready(3)
	c.voters(3)
	load.end()
	c.say("mneme-2 has a new volume with everything")
}

// loseMajority takes two volumes of three away, and has the third node's become a new cluster.
func (c *cluster) loseMajority() {
	before, err := c.client().Namespace(c.ctx, "team")
	if err != nil {
		c.t.Fatal(err)
	}
	c.mneme("delete", "pvc", "data-mneme-1", "data-mneme-2", "--wait=false")
	c.mneme("delete", "pod", "mneme-1", "mneme-2", "--grace-period=0", "--force")
	c.until("most nodes are missed", func() error {
		if out, err := c.memctl("mneme-0", "status"); err != nil || !strings.Contains(out, "1 of 3 nodes answer") {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	c.walkPage("nodes.md", "A majority is lost, on Kubernetes")
	c.voters(3)
	c.until("all memories are there, and one more", func() error {
		if _, err := c.client().Capture(c.ctx, "team", memory.Capture{Agent: "agent-7", Text: "written to the new cluster", ID: "new-cluster"}, client.CaptureOptions{}); err != nil {
			return err
		}
		after, err := c.client().Namespace(c.ctx, "team")
		if err == nil && after.Records != before.Records+1 {
			err = fmt.Errorf("%d records, and %d before", after.Records, before.Records)
		}
		return err
	})
}

// toOne puts one node in the place of the three, with all that they kept.
func (c *cluster) toOne() {
	before := c.kept()
	c.walk("From three to one")
	c.ready(1)
	c.same(before)
	for _, args := range [][]string{{"namespace", "create", "alone"}, {"capture", "-n", "alone", "--as", "agent-7", "one node keeps this once"}} {
		if _, err := c.memctl("mneme-0", args...); err != nil {
			c.t.Fatal(err)
		}
	}
	c.found()
}

// toThree puts three nodes in the place of the one.
func (c *cluster) toThree() {
	before := c.kept()
	load := c.startLoad("three") // which is not served while nobody is there
	load.wait(100)
	c.walk("From one node to three")
	c.ready(3)
	c.voters(3)
	load.wait(100)
	load.end()
	c.same(before)
	c.found()
}

// kept is the state of each namespace, by its name.
func (c *cluster) kept() map[string]string {
	c.t.Helper()
	out := map[string]string{}
	list, err := c.client().Namespaces(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, ns := range list.Namespaces {
		out[ns.Name] = fmt.Sprintf("%d records", ns.Records)
	}
	return out
}

// same waits until each namespace has what it had.
func (c *cluster) same(before map[string]string) {
	c.t.Helper()
	after := c.kept()
	for name, want := range before {
		if after[name] != want {
			c.t.Errorf("the namespace %s has %s, and had %s", name, after[name], want)
		}
	}
	c.say("%d namespaces have what they had: %v", len(before), before)
}

// backups makes one, and another one that goes on from it, and restores it on trial.
func (c *cluster) backups() {
	for _, want := range []string{"all of the log", "what followed"} {
		out := c.walk("Backups")
		if !strings.Contains(out, want) || !strings.Contains(out, "the same as was backed up; log and state agree") || !strings.Contains(out, "can be restored") {
			c.t.Errorf("not %q and a drill that is well:\n%s", want, out)
		}
	}
}

func (c *cluster) found() {
	c.t.Helper()
	out, err := c.memctl("mneme-0", "search", "-n", "alone", "who keeps this once")
	if err != nil || !strings.Contains(out, "one node keeps this once") {
		c.t.Errorf("%s, %v", out, err)
	}
}

// badSecret has a master key that is none end the start with a line that says so; what was
// kept is there again with the right one.
func (c *cluster) badSecret() {
	token, err := os.ReadFile(filepath.Join(c.folder, "secrets", "operator.token"))
	if err != nil {
		c.t.Fatal(err)
	}
	bad, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "mneme-keys", "namespace": "mneme"},
		"data": map[string][]byte{"master.key": []byte("abcd"), "operator.token": []byte(strings.TrimSpace(string(token)))}})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Try(string(bad), "apply", "--server-side", "--force-conflicts", "-f", "-"); err == nil || !strings.Contains(err.Error(), "immutable") {
		c.t.Fatalf("another master key is taken under the same name: %v", err)
	}
	c.mneme("delete", "secret", "mneme-keys")
	if _, err := c.Try(string(bad), "apply", "--server-side", "-f", "-"); err != nil {
		c.t.Fatal(err)
	}
	c.mneme("delete", "pod", "mneme-0")
	c.until("memnode ends and says why", func() error {
		out, err := c.Try("", "-n", "mneme", "logs", "mneme-0")
		if err == nil && !strings.Contains(out, "/etc/mneme/keys/master.key is no master key") {
			err = errors.New(out)
		}
		return err
	})
	out, _ := c.Try("", "-n", "mneme", "logs", "mneme-0")
	c.say("%s", strings.ReplaceAll(strings.TrimSpace(out), "\n", "\nnode: "))
	c.mneme("delete", "secret", "mneme-keys")
	const create = "memctl cluster secrets --keys-only --out secrets | kubectl create -f -"
	c.script(create)
	if out, err := c.try(create); err == nil || !strings.Contains(err.Error(), "AlreadyExists") {
		c.t.Errorf("the Secrets are made where they are: %s, %v", out, err)
	}
	if out := c.walk("Renew certificates"); strings.Contains(out, "mneme-keys") {
		c.t.Errorf("renewal applies keys: %s", out)
	}
	c.mneme("delete", "pod", "mneme-0")
	c.until("mneme-0 is ready", func() error {
		_, err := c.Try("", "-n", "mneme", "wait", "pod/mneme-0", "--for=condition=Ready", "--timeout=5s")
		return err
	})
	c.found()
}
