// Package apply has a real API server take the manifests: what it validates, defaults and
// admits, with the pod security profile "restricted" enforced and every warning an error.
//
// Invariants: it listens on loopback only, needs no root and runs no pod.
//
// Not its job: whether the pods work (package node).
package apply

import (
	"encoding/json"
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	if why := plane.Missing(*programs, "etcd", "kube-apiserver", "kubectl"); why != "" {
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
			pod := template(t, p)
			if _, err := p.Try(pod, "create", "--dry-run=server", "--warnings-as-errors", "-f", "-"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("what has to be refused is", func(t *testing.T) { refused(t, p) })
}

// template is the StatefulSet's pod as a Pod.
func template(t *testing.T, p *plane.Plane) string {
	t.Helper()
	var set struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(p.Kubectl("-n", "mneme", "get", "statefulset", "mneme", "-o", "json")), &set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	pod["metadata"].(map[string]any)["name"], pod["metadata"].(map[string]any)["namespace"] = "mneme-0", "mneme"
	spec := pod["spec"].(map[string]any)
	spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-mneme-0"}})
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refused shows that the API server would have refused what is wrong.
func refused(t *testing.T, p *plane.Plane) {
	pod := template(t, p)
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
