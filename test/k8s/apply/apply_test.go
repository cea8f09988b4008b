// Package apply has a real API server take the manifests and the chart: what it validates,
// defaults and admits, with the pod security profile "restricted" enforced and every
// warning an error.
//
// Invariants: it listens on loopback only, needs no root and runs no pod.
//
// Not its job: whether the pods work (package node).
package apply

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mneme/test/k8s/internal/chart"
	"mneme/test/k8s/internal/plane"
)

var (
	programs = flag.String("apply.programs", "", "folder of what test/k8s/controlplane/build.sh built")
	memctl   = flag.String("apply.memctl", "../../../bin/memctl", "the program memctl")
)

const deploy = "../../../deploy/k8s"

func TestApply(t *testing.T) {
	if *programs == "" {
		t.Skip("no API server: -apply.programs is not given (make test-k8s)")
	}
	if why := plane.Missing(*programs, "etcd", "kube-apiserver", "kubectl", "helm"); why != "" {
		t.Fatal(why)
	}
	p := plane.Start(t, *programs, t.TempDir())
	p.Kubectl("apply", "--server-side", "--warnings-as-errors", "-f", filepath.Join(deploy, "base/namespace.yaml"))
	secrets, err := exec.Command(*memctl, "cluster", "secrets", "--out", filepath.Join(t.TempDir(), "secrets")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing changes but certificates
		if _, err := p.Try(string(secrets), "apply", "--server-side", "--warnings-as-errors", "-f", "-"); err != nil {
			t.Error(err)
		}
	}
	overlays, err := filepath.Glob(deploy + "/overlays/*")
	if err != nil || len(overlays) < 4 {
		t.Fatalf("%v, %v", overlays, err)
	}
	for _, dir := range overlays {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if _, err := p.Try("", "apply", "--server-side", "--warnings-as-errors", "-k", dir); err != nil {
				t.Fatal(err)
			}
			if out, err := p.Try("", "diff", "--server-side", "-k", dir); err != nil {
				t.Errorf("what was applied differs from the manifests: %v\n%s", err, out)
			}
			// A StatefulSet is only warned about; the pods that it would make are refused.
			admitted(t, p, "mneme")
		})
		t.Run("chart as "+filepath.Base(dir), func(t *testing.T) { rendered(t, p, filepath.Base(dir)) })
	}
	for _, example := range []string{"backup", "backup-bucket", "cert-manager"} {
		t.Run("the example "+example, func(t *testing.T) {
			if example == "cert-manager" {
				p.CertManagerKinds()
			}
			dir := filepath.Join(deploy, "examples", example)
			if _, err := p.Try("", "apply", "--server-side", "--warnings-as-errors", "-k", dir); err != nil {
				t.Fatal(err)
			}
			if out, err := p.Try("", "diff", "--server-side", "-k", dir); err != nil {
				t.Errorf("what was applied differs from the manifests: %v\n%s", err, out)
			}
			if example == "backup" {
				damagedJob(t, p)
			}
		})
	}
	t.Run("what is declared", func(t *testing.T) { declared(t, p) })
	t.Run("helm", func(t *testing.T) { helm(t, p) })
	t.Run("what has to be refused is", func(t *testing.T) { refused(t, p) })
}

// damagedJob makes the Job that removes damaged backups as the page about them prints it.
func damagedJob(t *testing.T, p *plane.Plane) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/operate/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	const first = "kubectl -n mneme create job --from=cronjob/mneme-backup-prune "
	_, rest, _ := strings.Cut(string(page), first)
	rest, _, printed := strings.Cut(rest, "\nkubectl -n mneme wait job/prune-damaged")
	if !printed {
		t.Fatal("the page does not print it")
	}
	if _, err := p.Shell(t.TempDir(), first+rest); err != nil {
		t.Fatal(err)
	}
	if got := p.Kubectl("-n", "mneme", "get", "job", "prune-damaged", "-o", "jsonpath={.spec.template.spec.containers[0].args}"); !strings.Contains(got, `"--damaged","--yes"]`) {
		t.Errorf("it calls %s", got)
	}
	p.Kubectl("-n", "mneme", "delete", "job", "prune-damaged")
}

// admitted shows that the pods are that a StatefulSet would make.
func admitted(t *testing.T, p *plane.Plane, name string) {
	t.Helper()
	if _, err := p.Try(template(t, p, name), "create", "--dry-run=server", "--warnings-as-errors", "-f", "-"); err != nil {
		t.Error(err)
	}
}

// rendered applies what the chart comes to at the values of an overlay, hooks too.
func rendered(t *testing.T, p *plane.Plane, overlay string) {
	values, err := os.ReadFile(filepath.Join(deploy, "../helm/values", overlay+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	more := "\ndeclared: {namespaces: [{name: team-a, settings: {search.min_score: 0.3}}]}\n"
	documents, err := chart.Release{Deploy: deploy + "/..", Name: "mneme", Values: string(values) + more}.Documents()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(documents, "\n---\n")
	if n := strings.Count(text, "helm.sh/hook:"); n != 2 {
		t.Errorf("%d hooks", n)
	}
	if _, err := p.Try(text, "apply", "--server-side", "--warnings-as-errors", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	admitted(t, p, "mneme")
	p.Kubectl("-n", "mneme", "delete", "pod/mneme-test", "--now")
}

// declared applies the Job of the component, again, and with another file.
func declared(t *testing.T, p *plane.Plane) {
	const of = "app.kubernetes.io/component=declared"
	p.Kubectl("-n", "mneme", "delete", "job", "-l", of, "--cascade=background")
	folder := filepath.Join(t.TempDir(), "deploy/k8s")
	if err := os.CopyFS(folder, os.DirFS(deploy)); err != nil {
		t.Fatal(err)
	}
	jobs := func() []string {
		if _, err := p.Try("", "apply", "--server-side", "--warnings-as-errors", "-k", folder+"/examples/declared"); err != nil {
			t.Fatal(err)
		}
		return strings.Fields(p.Kubectl("-n", "mneme", "get", "job", "-l", of, "-o", "name"))
	}
	first := jobs()
	if again := jobs(); len(first) != 1 || len(again) != 1 || first[0] != again[0] {
		t.Errorf("the same file gave %v, then %v", first, again)
	}
	if err := os.WriteFile(folder+"/examples/declared/declared.yaml", []byte("namespaces: [{name: team-c}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if two := jobs(); len(two) != 2 {
		t.Errorf("another file gave %v", two)
	}
}

// helm installs and upgrades by the program itself, in a namespace and by a name of its own.
func helm(t *testing.T, p *plane.Plane) {
	p.Kubectl("create", "namespace", "memory")
	p.Kubectl("label", "namespace", "memory", "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	run := func(args string) (string, error) {
		return p.Shell(deploy+"/..", "helm "+args+" memory helm/mneme --namespace memory", "")
	}
	for _, step := range []struct{ args, says, refused string }{
		{"install --set replicas=2", "", "at '/replicas': value must be one of 1, 3, 5"},
		{"install --set replicsa=3", "", "additional properties 'replicsa' not allowed"},
		{"install", "kubectl -n memory rollout status statefulset/memory --timeout=5m", ""},
		{"upgrade --set settings.MNEME_LOG_LEVEL=debug", "", ""},
		{"upgrade --set replicas=5", "memory has 5 nodes", ""},
		{"upgrade --set replicas=3", "", "are taken away one after the other"},
		{"upgrade --set replicas=5,podMonitor.enabled=true", "", "PodMonitor"}, // there is no such kind
	} {
		out, err := run(step.args)
		switch {
		case step.refused == "" && (err != nil || !strings.Contains(out, step.says)):
			t.Errorf("helm %s: %v\n%s", step.args, err, out)
		case step.refused != "" && (err == nil || !strings.Contains(err.Error(), step.refused)):
			t.Errorf("helm %s: %v, want %q", step.args, err, step.refused)
		}
	}
	admitted(t, p, "memory")
	p.Kubectl("-n", "memory", "get", "pdb/memory", "service/memory-peers", "configmap/memory-settings")
}

// template is the pod of a StatefulSet, which has the name of its namespace, as a Pod.
func template(t *testing.T, p *plane.Plane, name string) string {
	t.Helper()
	var set struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(p.Kubectl("-n", name, "get", "statefulset", name, "-o", "json")), &set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	pod["metadata"].(map[string]any)["name"], pod["metadata"].(map[string]any)["namespace"] = name+"-0", name
	spec := pod["spec"].(map[string]any)
	spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-" + name + "-0"}})
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refused shows that the API server would have refused what is wrong.
func refused(t *testing.T, p *plane.Plane) {
	pod := template(t, p, "mneme")
	for what, change := range map[string][2]string{
		"a pod that may get more rights": {`"allowPrivilegeEscalation":false`, `"allowPrivilegeEscalation":true`},
		"a pod that runs as root":        {`"runAsNonRoot":true`, `"runAsNonRoot":false`},
		"a pod with a capability":        {`"drop":["ALL"]`, `"drop":["ALL"],"add":["NET_ADMIN"]`},
		"a pod without seccomp":          {`"type":"RuntimeDefault"`, `"type":"Unconfined"`},
	} {
		bad := strings.Replace(pod, change[0], change[1], 1)
		if bad == pod {
			t.Errorf("%s: the pod has no %s", what, change[0])
		}
		if _, err := p.Try(bad, "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
			t.Errorf("%s: %v", what, err)
		}
	}
	out, err := p.Try("", "kustomize", deploy+"/overlays/team")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"a typo":                        {"serviceName: mneme-peers", "serviceNmae: mneme-peers"},
		"a wrong type":                  {"minReadySeconds: 10", "minReadySeconds: ten"},
		"another service of the set":    {"serviceName: mneme-peers", "serviceName: others"},
		"pods one after the other":      {"podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady"},
		"a set that restricted forbids": {"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"},
	} {
		bad := strings.Replace(out, change[0], change[1], 1)
		if bad == out {
			t.Errorf("%s: the manifests have no %s", what, change[0])
		}
		if _, err := p.Try(bad, "apply", "--server-side", "--warnings-as-errors", "-f", "-"); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}
