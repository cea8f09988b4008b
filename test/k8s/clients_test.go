package k8s

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// clientPod is a pod that is Mneme's client, and where it comes from.
type clientPod struct {
	from    string
	meta    metav1.ObjectMeta
	spec    corev1.PodSpec
	objects []runtime.Object // those beside it
}

const declaringValues = `declared:
  namespaces:
    - name: team-a
      settings:
        search.min_score: 0.3
        search.aliases: "k8s = kubernetes; pr = pull request"
        search.newer: null
        search.speaker: off
    - name: team-b
`

// clientPods are those of the component, of the chart, and of `helm test`.
func clientPods(t *testing.T) (out []clientPod) {
	t.Helper()
	installed, hooks := chartObjects(t, release{name: "mneme", values: declaringValues})
	out = append(podsOf("kustomize", render(t, "../../deploy/k8s/examples/declared")), podsOf("chart", append(installed, hooks...))...)
	if len(out) != 3 {
		t.Fatalf("%d pods are clients", len(out))
	}
	return out
}

// podsOf are the pods that Jobs and CronJobs make, and those that stand for themselves.
func podsOf(from string, objects []runtime.Object) (out []clientPod) {
	for _, o := range objects {
		switch o := o.(type) {
		case *batchv1.Job:
			out = append(out, clientPod{from + ": Job " + o.Name, o.Spec.Template.ObjectMeta, o.Spec.Template.Spec, objects})
		case *batchv1.CronJob:
			pod := o.Spec.JobTemplate.Spec.Template
			out = append(out, clientPod{from + ": CronJob " + o.Name, pod.ObjectMeta, pod.Spec, objects})
		case *corev1.Pod:
			out = append(out, clientPod{from + ": Pod " + o.Name, o.ObjectMeta, o.Spec, objects})
		}
	}
	return out
}

// backupPods are those of the component and of the chart, for volumes and for buckets, each by
// its name.
func backupPods(t *testing.T) map[string]map[string]clientPod {
	t.Helper()
	out := map[string]map[string]clientPod{}
	add := func(from string, objects []runtime.Object) {
		out[from] = map[string]clientPod{}
		for _, p := range podsOf(from, objects) {
			if name, is := strings.CutPrefix(p.from, from+": CronJob mneme-"); is {
				out[from][name] = p
			}
		}
		if len(out[from]) != len(backupJobs) {
			t.Fatalf("%s has %d CronJobs", from, len(out[from]))
		}
	}
	add("kustomize", render(t, "../../deploy/k8s/examples/backup"))
	add("kustomize with buckets", render(t, "../../deploy/k8s/examples/backup-bucket"))
	for from, values := range map[string]string{"chart": "backup: {enabled: true}", "chart with buckets": bucketValues} {
		installed, _ := chartObjects(t, release{name: "mneme", values: values})
		add(from, installed)
	}
	return out
}

func (p clientPod) containers() []corev1.Container {
	return append(slices.Clone(p.spec.InitContainers), p.spec.Containers...)
}

func TestClientPodsMayDoLittle(t *testing.T) {
	for _, p := range everyPod(t) {
		t.Run(p.from, func(t *testing.T) {
			asks, opens, waits := false, false, false
			for _, c := range p.containers() {
				for _, e := range c.Env {
					asks, opens = asks || e.Name == "MNEME_TOKEN", opens || e.Name == "MNEME_MASTER_KEY"
					waits = waits || e.Name == "MNEME_CONNECT_TIMEOUT" && e.Value == "30s"
				}
			}
			if asks != waits {
				t.Error("it does not wait for the network to let it through")
			}
			if asks && opens {
				t.Error("one pod has both the token and the master key")
			}
			if client := p.meta.Labels["mneme-client"] == "true"; client != asks || p.meta.Labels[name] != "" {
				t.Errorf("the network lets it through by %v", p.meta.Labels)
			}
			who, account := p.spec.SecurityContext, "mneme"
			if strings.HasPrefix(p.from, "migrate") { // the release may not be there
				account = ""
			}
			if p.spec.HostNetwork || p.spec.HostPID || p.spec.HostIPC || *p.spec.AutomountServiceAccountToken || p.spec.ServiceAccountName != account || *p.spec.EnableServiceLinks || !*who.RunAsNonRoot || *who.RunAsUser != imageUser || *who.FSGroup != *who.RunAsGroup || *who.FSGroupChangePolicy != corev1.FSGroupChangeOnRootMismatch ||
				who.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || p.spec.RestartPolicy != corev1.RestartPolicyNever {
				t.Errorf("pod: %+v", p.spec)
			}
			for _, c := range p.containers() {
				may := c.SecurityContext
				if *may.AllowPrivilegeEscalation || !*may.ReadOnlyRootFilesystem || !slices.Equal(may.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(may.Capabilities.Add) > 0 {
					t.Errorf("%s: %+v", c.Name, may)
				}
				if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s: %+v", c.Name, c.Resources)
				}
				for _, m := range c.VolumeMounts {
					if !m.ReadOnly && !p.claims(m.Name) {
						t.Errorf("%s may write to %s", c.Name, m.MountPath)
					}
				}
				for _, e := range c.Env {
					if e.Name == "MNEME_TOKEN" && e.ValueFrom.SecretKeyRef.Name != "mneme-keys" {
						t.Errorf("the token is %+v", e)
					}
				}
			}
		})
	}
}

// claims reports whether a volume of the pod is a claim's.
func (p clientPod) claims(volume string) bool {
	return slices.ContainsFunc(p.spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && (v.PersistentVolumeClaim != nil || v.Ephemeral != nil)
	})
}

func TestDeclaringJob(t *testing.T) {
	for _, from := range []string{"kustomize", "chart"} {
		job := func(minScore string) *batchv1.Job {
			if from == "chart" {
				_, hooks := chartObjects(t, release{name: "mneme", values: strings.Replace(declaringValues, "0.3", minScore, 1)})
				return one[*batchv1.Job](t, rendered{objects: hooks})
			}
			return one[*batchv1.Job](t, rendered{objects: declaredOverlay(t, "namespaces: [{name: team-a, settings: {search.min_score: "+minScore+"}}]")})
		}
		before, same, after := job("0.3"), job("0.3"), job("0.4")
		if before.Name != same.Name || before.Name == after.Name || !hashed.MatchString(after.Name) {
			t.Errorf("%s: the Job is %s, then %s, and with another file %s", from, before.Name, same.Name, after.Name)
		}
		failsOnceForAll(t, before.Spec, 2, 4, 5)
		if *before.Spec.BackoffLimit < 4 || *before.Spec.ActiveDeadlineSeconds > 1800 || *before.Spec.TTLSecondsAfterFinished > 3600 {
			t.Errorf("%s: %+v", from, before.Spec)
		}
	}
	_, hooks := chartObjects(t, release{name: "mneme", values: declaringValues})
	for _, o := range hooks {
		want := map[string]string{"helm.sh/hook": "post-install,post-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation"} // it asks nodes that are there
		if metadata(t, o).GetName() == "mneme-test" {
			want["helm.sh/hook"] = "test"
		}
		got := metadata(t, o).GetAnnotations()
		delete(got, "mneme/declared") // a file of the pod
		if !maps.Equal(got, want) {
			t.Errorf("%s has %v, want %v", metadata(t, o).GetName(), got, want)
		}
	}
	if _, hooks := chartObjects(t, release{name: "mneme"}); len(all[*batchv1.Job](rendered{objects: hooks})) > 0 {
		t.Error("there is a Job though nothing is declared")
	}
}

// What the pods of clients call is called, on a node with the certificate and the token that
// their Secrets hold, twice: the second time nothing is left to do.
func TestClientPodsDoTheirWork(t *testing.T) {
	n := startNode(t)
	block, _ := pem.Decode(n.secrets["mneme-tls"]["tls.crt"])
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := cert.VerifyHostname("mneme.mneme.svc"); err != nil {
		t.Error(err)
	}
	pods := clientPods(t)
	kustomize, helm, test := pods[0], pods[1], pods[2]
	for _, c := range []struct {
		what string
		pod  clientPod
		code int
		says string
	}{
		{"what is declared is made", kustomize, 0, "namespace team-a created\n"},
		{"and left alone", kustomize, 0, "namespace team-a as declared\n"},
		{"the chart declares one thing more", helm, 0, "namespace team-a changed\n  search.speaker  (default) → off\nnamespace team-b as declared\n"},
		{"and leaves it alone", helm, 0, "namespace team-a as declared\nnamespace team-b as declared\n"},
		{"a mistake ends the Job at once", helm.declaring("namespaces: [{name: team-a, settings: {search.min_score: 2}}]"), 2, "search.min_score"},
		{"what is captured is found", test, 0, "deploys happen on Tuesdays"},
		{"and again", test, 0, "deploys happen on Tuesdays"},
		{"what is captured under another tag is not", test.searching("revision-2"), 3, "nothing was found"},
	} {
		if out, code := n.run(t, c.pod); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: %s ended with %d, want %d, and says\n%s\nwant %q", c.what, c.pod.from, code, c.code, out, c.says)
		}
	}
	n.secrets["mneme-keys"]["operator.token"] = []byte("another")
	if out, code := n.run(t, kustomize); code != 4 {
		t.Errorf("another token ended with %d: %s", code, out)
	}
}

// declaring is the pod with another file.
func (p clientPod) declaring(file string) clientPod {
	for _, v := range p.spec.Volumes {
		if v.ConfigMap != nil {
			p.objects = []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v.ConfigMap.Name}, Data: map[string]string{"declared.yaml": file}}}
		}
	}
	return p
}

// searching is the pod with another tag in its search.
func (p clientPod) searching(tag string) clientPod {
	p.spec = *p.spec.DeepCopy()
	for i, arg := range p.spec.Containers[0].Args {
		if arg == "revision-1" {
			p.spec.Containers[0].Args[i] = tag
		}
	}
	return p
}
