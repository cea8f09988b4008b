package node

import (
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"

	"mneme/test/k8s/internal/plane"
)

// ports are those of a pod of Mneme's, by their names in the manifests.
var ports = map[string]int{"https": 8787, "nats": 4222, "health": 8788, "peer": 8800, "route": 6222}

// policies has pods of all kinds try what they may and what they may not.
func (c *cluster) policies() {
	var manifest strings.Builder
	callers := map[string][]string{ // ports of Mneme's that each may reach
		"stranger":     nil,
		"client":       {"https", "nats"},
		"observer":     {"https"},
		"backup":       {"https"},
		"other-backup": nil,
	}
	for name, meta := range map[string]string{
		"stranger":     "namespace: default",
		"client":       `namespace: default, labels: {mneme-client: "true"}`,
		"observer":     "namespace: monitoring",
		"backup":       `namespace: mneme, labels: {app.kubernetes.io/part-of: mneme, app.kubernetes.io/component: backup, mneme-client: "true"}`,
		"other-backup": "namespace: default, labels: {app.kubernetes.io/part-of: mneme, app.kubernetes.io/component: backup}",
	} {
		fmt.Fprintf(&manifest, `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, %[2]s}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: pause
      image: localhost/pause:dev
      imagePullPolicy: IfNotPresent
      env: [{name: CALLER, value: %[1]s}]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, name, meta)
	}
	c.script("kubectl -n mneme apply --server-side -f deploy/k8s/components/backup/networkpolicy.yaml")
	c.Kubectl("create", "namespace", "monitoring")
	if _, err := c.Try(manifest.String(), "apply", "-f", "-"); err != nil {
		c.t.Fatal(err)
	}
	c.KeepPolicies()
	c.mneme("wait", "pod/backup", "--for=condition=Ready", "--timeout=5m")
	c.Kubectl("wait", "pod/stranger", "pod/client", "pod/other-backup", "--for=condition=Ready", "--timeout=5m")
	c.Kubectl("-n", "monitoring", "wait", "pod/observer", "--for=condition=Ready", "--timeout=5m")
	address := c.mneme("get", "pod", "mneme-0", "-o", "jsonpath={.status.podIP}")
	for name, may := range callers {
		c.reaches(name, "mneme-0", plane.Process(c.t, "pause", "CALLER="+name), address, may)
	}
	peer := c.process("mneme-1")
	c.voters(3) // who find each other still
	c.reaches("mneme-1", "mneme-0", peer, address, []string{"peer", "route"})
	// Nothing of Mneme's goes out but names.
	store := c.listen(plane.NodeIP + ":0")
	c.until("mneme-1 does not reach what is outside", func() error {
		if c.opens(peer, store) {
			return fmt.Errorf("%s is reached", store)
		}
		return nil
	})
	if !c.opens(plane.Process(c.t, "pause", "CALLER=stranger"), store) {
		c.t.Error("who has no policy does not reach it either")
	}
	// A Job's pod is new, and is not let through at once.
	if out := c.walk("Declared namespaces"); !strings.Contains(out, "namespace team-a created") {
		c.t.Errorf("the Job said %q", out)
	}
	c.Kubectl("delete", "namespace", "monitoring", "--wait=false")
	c.Kubectl("delete", "pod/stranger", "pod/client", "pod/other-backup", "--now")
	c.mneme("delete", "pod/backup", "--now")
}

// reaches tries each port from the network of a process.
func (c *cluster) reaches(who, whom string, pid int, address string, may []string) {
	c.t.Helper()
	var reached []string
	for name, port := range ports {
		at := fmt.Sprintf("%s:%d", address, port)
		if slices.Contains(may, name) {
			c.until(who+" reaches "+name, func() error {
				if !c.opens(pid, at) {
					return fmt.Errorf("%s is not reached", at)
				}
				return nil
			})
			reached = append(reached, name)
			continue
		}
		c.until(who+" does not reach "+name, func() error { // policies hold after a moment
			if c.opens(pid, at) {
				return fmt.Errorf("%s is reached", at)
			}
			return nil
		})
	}
	slices.Sort(reached)
	c.say("%s reaches of %s: %v", who, whom, reached)
}

// opens reports whether a connection is opened from the network of a process.
func (c *cluster) opens(pid int, address string) bool {
	host, port, _ := strings.Cut(address, ":")
	return exec.CommandContext(c.ctx, "nsenter", "-t", fmt.Sprint(pid), "-n", "timeout", "2", "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%s", host, port)).Run() == nil
}

// listen takes connections on the node, as somebody outside would.
func (c *cluster) listen(address string) string {
	c.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel takes them
}
