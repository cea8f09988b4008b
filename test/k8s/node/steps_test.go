package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mneme/memory"
)

// apply walks docs/operate/install.md.
func (c *cluster) apply() {
	secrets, err := exec.Command(*memctl, "cluster", "secrets", "--out", c.secrets).Output()
	if err != nil {
		c.t.Fatal(err)
	}
	c.Kubectl("apply", "--server-side", "-f", filepath.Join(*overlay, "../../base/namespace.yaml"))
	if _, err := c.Try(string(secrets), "apply", "--server-side", "-f", "-"); err != nil {
		c.t.Fatal(err)
	}
	began := time.Now()
	c.say("%s", strings.ReplaceAll(strings.TrimSpace(c.Kubectl("apply", "--server-side", "-k", *overlay)), "\n", "\nnode: "))
	c.ready(3)
	c.say("three pods ready %.1f s after apply", time.Since(began).Seconds())
	c.voters(3)
	out, _ := c.memctl("mneme-0", "cluster", "status")
	c.say("%s", strings.ReplaceAll(strings.TrimSpace(out), "\n", "\nnode: "))
}

// clientJob is a pod of a client in another namespace, under the same restrictions.
const clientJob = `apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: default, labels: {mneme-client: "true"}}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  initContainers:
    - &memctl
      name: create
      image: localhost/mneme:dev
      command: [memctl]
      args: [namespace, create, team]
      env: &env
        - {name: MNEME_ADDR, value: "https://mneme.mneme.svc.cluster.local:8787"}
        - {name: MNEME_TLS_CA, value: /etc/mneme/ca.crt}
        - {name: MNEME_TOKEN, valueFrom: {secretKeyRef: {name: mneme-client, key: token}}}
        - {name: MNEME_NAMESPACE, value: team}
        - {name: MNEME_AGENT, value: agent-7}
      securityContext: &restricted {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts: &mounts [{name: mneme, mountPath: /etc/mneme, readOnly: true}]
    - {<<: *memctl, name: capture, args: [capture, "deploys happen on Tuesdays"]}
  containers:
    - {<<: *memctl, name: search, args: [search, "when do we deploy", --consistency, linearizable]}
  volumes:
    - name: mneme
      secret: {secretName: mneme-client, defaultMode: 0444, items: [{key: ca.crt, path: ca.crt}]}
`

func (c *cluster) clientPod() {
	c.Kubectl("create", "secret", "generic", "mneme-client", "--from-file=ca.crt="+filepath.Join(c.secrets, "clients", "ca.crt"), "--from-file=token="+filepath.Join(c.secrets, "operator.token"))
	if _, err := c.Try(clientJob, "apply", "-f", "-"); err != nil {
		c.t.Fatal(err)
	}
	c.until("the client has ended", func() error {
		out, err := c.Try("", "get", "pod", "agent", "-o", "jsonpath={.status.phase}")
		if err == nil && out != "Succeeded" {
			logs, _ := c.Try("", "logs", "agent", "--all-containers")
			err = fmt.Errorf("it is %s: %s", out, logs)
		}
		return err
	})
	out := c.Kubectl("logs", "agent", "-c", "search")
	if !strings.Contains(out, "deploys happen on Tuesdays") {
		c.t.Errorf("the search gave %q", out)
	}
	c.say("a pod's search through https://mneme.mneme.svc.cluster.local:8787 gave: %s", strings.TrimSpace(out))
	// The same from the node, by the address of the service.
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
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range entries {
		environ, _ := os.ReadFile(path)
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
		if strings.TrimSpace(string(name)) == "memnode" && strings.Contains("\x00"+string(environ), "\x00MNEME_NODE_ID="+pod+"\x00") {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err != nil {
				c.t.Fatal(err)
			}
			return pid
		}
	}
	c.t.Fatalf("there is no memnode of %s", pod)
	return 0
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

// evict has the budget refuse the second of two evictions.
func (c *cluster) evict() {
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
	if err := evict("mneme-0"); err != nil {
		c.t.Fatal(err)
	}
	err := evict("mneme-1")
	if err == nil || !strings.Contains(err.Error(), "disruption budget") {
		c.t.Errorf("the second eviction gave %v", err)
	}
	c.say("the second eviction was refused: %v", err)
	c.until("mneme-0 is another pod", func() error {
		_, err := c.Try("", "-n", "mneme", "get", "pod", "mneme-0")
		return err
	})
	c.ready(3)
	c.voters(3)
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
	c.mneme("rollout", "restart", "statefulset/mneme")
	c.mneme("rollout", "status", "statefulset/mneme", "--timeout=300s")
	c.say("rolling update of three pods: %.1f s", time.Since(began).Seconds())
	c.voters(3)
	load.end()
	for name, uid := range c.uids() {
		if before[name] == uid {
			c.t.Errorf("%s is the same pod as before", name)
		}
	}
}

// scale goes from three to five by kubectl alone, and back.
func (c *cluster) scale() {
	before := c.uids()
	load := c.startLoad("scale")
	c.mneme("scale", "statefulset/mneme", "--replicas=5")
	c.ready(5)
	c.voters(5)
	for name, uid := range before {
		if c.uids()[name] != uid {
			c.t.Errorf("%s was restarted", name)
		}
	}
	c.say("five voters and five copies of the log; the first three pods were not touched")
	for _, n := range []int{4, 3} {
		gone := fmt.Sprintf("mneme-%d", n)
		c.mneme("scale", "statefulset/mneme", fmt.Sprintf("--replicas=%d", n))
		c.ready(n)
		c.until(gone+" is removed", func() error {
			_, err := c.memctl("mneme-0", "cluster", "remove", gone)
			return err
		})
		c.mneme("delete", "pvc", "data-"+gone)
	}
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
	c.mneme("scale", "statefulset/mneme", "--replicas=0")
	c.until("no pod is left", func() error {
		if left := c.uids(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	began := time.Now()
	c.mneme("scale", "statefulset/mneme", "--replicas=3")
	c.ready(3)
	c.say("three pods ready %.1f s after none", time.Since(began).Seconds())
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
	c.mneme("delete", "pvc", "data-mneme-2", "--wait=false")
	c.mneme("delete", "pod", "mneme-2")
	c.until("mneme-2 is removed", func() error {
		_, err := c.memctl("mneme-0", "cluster", "remove", "mneme-2")
		return err
	})
	c.ready(3)
	c.voters(3)
	load.end()
	c.say("mneme-2 has a new volume with everything")
}
