package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mneme/memory"
)

// haHere is the overlay ha for the only machine that there is, which is small.
const haHere = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: mneme
resources: [../deploy/k8s/overlays/ha]
patches:
  - target: {kind: StatefulSet, name: mneme}
    patch: |
      - {op: replace, path: /spec/template/spec/topologySpreadConstraints/1/whenUnsatisfiable, value: ScheduleAnyway}
      - {op: replace, path: /spec/template/spec/containers/0/resources/requests, value: {cpu: 100m, memory: 256Mi}}
`

// five runs the overlay ha, and takes two pods away at once that come back only when it has
// been seen that three go on.
func (c *cluster) five() {
	c.clear()
	c.Kubectl("label", "node/node1", "topology.kubernetes.io/zone=one", "--overwrite")
	c.write("ha/kustomization.yaml", haHere)
	out := c.script(strings.ReplaceAll(printed(c, filepath.Join(guides, "install.md"), "A team of three"), "deploy/k8s/overlays/team", "ha"))
	if strings.Count(out, " voter ") != 5 {
		c.t.Errorf("not five voters:\n%s", out)
	}
	c.voters(5)
	if out := c.searchedByClient(); !strings.Contains(out, "deploys happen on Tuesdays") {
		c.t.Errorf("the search gave %q", out)
	}
	load := c.startLoad("five")
	load.wait(200)
	leader, other := c.leader(), "mneme-4"
	if leader == other {
		other = "mneme-3"
	}
	lost := []string{leader, other}
	pids := []int{c.process(leader), c.process(other)}
	before := c.uids()
	c.Kubectl("cordon", "node1") // so that they do not come back yet
	c.mneme(append([]string{"delete", "pod", "--grace-period=0", "--force", "--wait=false"}, lost...)...)
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
	}
	witness := "mneme-0"
	for slices.Contains(lost, witness) {
		witness = "mneme-1"
	}
	c.until("two nodes are missed", func() error {
		out, err := c.memctl(witness, "status")
		if err == nil && strings.Count(out, "  unreachable  ") != len(lost) {
			err = errors.New(out)
		}
		return err
	})
	load.wait(load.count() + 300)
	for _, pod := range lost {
		phase := c.mneme("get", "pod", pod, "-o", "jsonpath={.status.phase}")
		if uid := c.uids()[pod]; phase != "Pending" || uid == before[pod] {
			c.t.Errorf("%s is %s again, so that it was not seen that three go on", pod, phase)
		}
	}
	c.say("%s, which led, and %s were killed and kept away; 300 captures were acknowledged by the three others", leader, other)
	c.Kubectl("uncordon", "node1")
	c.ready(5)
	c.voters(5)
	load.end()
}

// searchedByClient has the client's pod capture and search in a new cluster.
func (c *cluster) searchedByClient() string {
	c.t.Helper()
	c.Kubectl("-n", "default", "delete", "pod/mneme-client", "secret/mneme-client", "--ignore-not-found")
	return c.walk("A client")
}

// externalNATS runs the overlay external-nats on servers that are pods of somebody else's.
func (c *cluster) externalNATS() {
	c.clear()
	c.walk("A NATS for Mneme")
	manifest, err := os.ReadFile("testdata/nats.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	c.write("nats.yaml", string(manifest))
	c.script(`kubectl create namespace nats
kubectl -n nats create configmap config --from-file=nats-0.conf --from-file=nats-1.conf --from-file=nats-2.conf
kubectl -n nats create secret generic passwords --from-env-file=passwords.env
rm nats-certs/ca.key && kubectl -n nats create secret generic routes --from-file=nats-certs
kubectl -n nats create secret generic clients --from-file=nats-certs/clients/nats.crt --from-file=nats-certs/clients/nats.key
kubectl apply -f nats.yaml
kubectl -n nats rollout status statefulset/nats --timeout=5m`)
	out := c.walk("On a NATS of your own")
	if strings.Count(out, " voter ") != 3 {
		c.t.Errorf("not three voters:\n%s", out)
	}
	c.agree(3, "") // whose copies of the log are the servers'
	if out := c.searchedByClient(); !strings.Contains(out, "deploys happen on Tuesdays") {
		c.t.Errorf("the search gave %q", out)
	}
	before := c.answer("team", "when do we deploy")
	load := c.startLoad("outside")
	load.wait(200)
	pod := c.leader()
	uid := c.uids()[pod]
	c.mneme("delete", "pod", pod)
	c.ready(3)
	if c.uids()[pod] == uid {
		c.t.Errorf("%s is the same pod as before", pod)
	}
	c.agree(3, "")
	load.end()
	if after := c.answer("team", "when do we deploy"); after != before {
		c.t.Errorf("before %s was deleted the search gave %s, and then %s", pod, before, after)
	}
	c.say("%s, which led, was deleted, and the answer is the same: %s", pod, before)
	for _, pod := range []string{"mneme-0", "mneme-1", "mneme-2"} {
		if out, err := c.memctl(pod, "doctor"); err != nil {
			c.t.Errorf("doctor on %s: %v\n%s", pod, err, out)
		}
	}
	c.Kubectl("delete", "namespace", "nats", "--wait=false")
}

// answer is what a search finds in a namespace, through the service.
func (c *cluster) answer(namespace, query string) string {
	c.t.Helper()
	found, err := c.client().Search(c.ctx, namespace, memory.SearchRequest{Query: query, Consistency: memory.ConsistencyLinearizable})
	if err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, r := range found.Results {
		out = append(out, fmt.Sprintf("%s %q %.3f", r.ID, r.Text, r.Score))
	}
	return strings.Join(out, "; ")
}
