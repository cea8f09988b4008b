package node

import "strings"

// declared applies what a team declares, and again, by another Job.
func (c *cluster) declared() {
	if out := c.walk("Declared namespaces"); !strings.Contains(out, "namespace team-a created") {
		c.t.Errorf("the Job said %q", out)
	}
	c.mneme("delete", "job", "-l", "app.kubernetes.io/component=declared")
	if out := c.walk("Declared namespaces"); !strings.Contains(out, "namespace team-a as declared") {
		c.t.Errorf("the second Job said %q", out)
	}
}

// chart puts a release of Helm's in the place of what was there.
func (c *cluster) chart() {
	c.clear()
	if out := c.walk("By Helm"); !strings.Contains(out, "deploys happen on Tuesdays") {
		c.t.Errorf("helm test said %q", out)
	}
	c.ready(3)
	c.voters(3)
	const values = "declared:\n  namespaces:\n    - name: team-b\n      settings:\n        search.speaker: off\n"
	c.write("declared.yaml", values)
	for range 2 {
		if out, err := c.Shell(c.folder, "helm upgrade mneme deploy/helm/mneme --namespace mneme --values declared.yaml"); err != nil {
			c.t.Fatalf("%v\n%s", err, out)
		}
		if out := c.mneme("logs", "-l", "app.kubernetes.io/component=declared", "--tail=-1"); !strings.Contains(out, "namespace team-b") {
			c.t.Errorf("the Job said %q", out)
		}
	}
	out, err := c.memctl("mneme-0", "namespace", "show", "team-b")
	if err != nil || !strings.Contains(out, "search.speaker=off") {
		c.t.Errorf("%s, %v", out, err)
	}
	c.say("helm upgrade declared a namespace: %s", strings.ReplaceAll(strings.TrimSpace(out), "\n", "\nnode: "))
	if out, err := c.Shell(c.folder, "helm upgrade mneme deploy/helm/mneme --namespace mneme --set replicas=1"); err == nil || !strings.Contains(err.Error(), "one after the other") {
		c.t.Errorf("a release of one node: %v\n%s", err, out)
	}
}
