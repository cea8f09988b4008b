package k8s

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// What differs between the chart and the overlays, all of it.
var (
	// helmLabels are on every object of the chart.
	helmLabels = map[string]string{"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "mneme-0.1.0"}
	// helmAnnotations are on the pods, so that a changed setting rolls them, on hooks, and on
	// claims, which stay when the release goes.
	helmAnnotations = []string{"checksum/settings", "helm.sh/hook", "helm.sh/hook-delete-policy", "helm.sh/resource-policy"}
	// hashed is how kustomize's names of ConfigMaps follow what they hold, and the chart's
	// and kustomize's names of Jobs. The pods of the chart have a checksum for it.
	hashed = regexp.MustCompile(`^(mneme-(?:settings|declared|backup-bucket))-[0-9a-z]{10}$`)
)

// bare gives objects by kind and name, without what may differ.
func bare(t *testing.T, objects []runtime.Object, chart bool) map[string]runtime.Object {
	t.Helper()
	out := map[string]runtime.Object{}
	for _, o := range objects {
		o = o.DeepCopyObject()
		meta := metadata(t, o)
		labels := meta.GetLabels()
		for name, value := range helmLabels {
			if has := labels[name]; has != value && chart {
				t.Errorf("%s has the label %s=%q", meta.GetName(), name, has)
			}
			if chart {
				delete(labels, name)
			}
		}
		dropped := func(annotations map[string]string) map[string]string {
			maps.DeleteFunc(annotations, func(name, _ string) bool { return chart && slices.Contains(helmAnnotations, name) })
			if len(annotations) == 0 {
				return nil
			}
			return annotations
		}
		meta.SetAnnotations(dropped(meta.GetAnnotations()))
		meta.SetName(hashed.ReplaceAllString(meta.GetName(), "$1"))
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			o.Spec.Template.Annotations = dropped(o.Spec.Template.Annotations)
			for i := range o.Spec.Template.Spec.Containers {
				// The order of variables that use others is TestScalingRestartsNobody's.
				c := &o.Spec.Template.Spec.Containers[i]
				slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
				for _, from := range c.EnvFrom {
					from.ConfigMapRef.Name = hashed.ReplaceAllString(from.ConfigMapRef.Name, "$1")
				}
			}
		case *batchv1.Job:
			for _, v := range o.Spec.Template.Spec.Volumes {
				if v.ConfigMap != nil {
					v.ConfigMap.Name = hashed.ReplaceAllString(v.ConfigMap.Name, "$1")
				}
			}
		case *batchv1.CronJob:
			pod := &o.Spec.JobTemplate.Spec.Template.Spec
			slices.SortFunc(pod.Volumes, func(a, b corev1.Volume) int { return cmp.Compare(a.Name, b.Name) })
			for i := range pod.Containers {
				c := &pod.Containers[i]
				slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
				slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(a.MountPath, b.MountPath) })
				for _, from := range c.EnvFrom {
					from.ConfigMapRef.Name = hashed.ReplaceAllString(from.ConfigMapRef.Name, "$1")
				}
			}
		case *corev1.ConfigMap: // files are equal by what they say
			for name, text := range o.Data {
				if strings.HasSuffix(name, ".yaml") {
					o.Data[name] = said(t, text)
				}
			}
		}
		kind := o.GetObjectKind().GroupVersionKind().Kind
		key := kind + " " + meta.GetName()
		if out[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		out[key] = o
	}
	return out
}

// said is a file in the same words, whoever wrote it.
func said(t *testing.T, text string) string {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// same compares object by object.
func same(t *testing.T, kustomize, helm []runtime.Object) {
	t.Helper()
	want, got := bare(t, kustomize, false), bare(t, helm, true)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] == nil {
			t.Errorf("the chart has no %s", key)
			continue
		}
		if diff := gocmp.Diff(written(t, want[key]), written(t, got[key])); diff != "" {
			t.Errorf("%s: kustomize's are the lines with -, the chart's those with +\n%s", key, diff)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == nil {
			t.Errorf("%s is only in the chart", key)
		}
	}
}

// written is an object as text.
func written(t *testing.T, o runtime.Object) string {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestChartIsTheOverlays(t *testing.T) {
	found, err := filepath.Glob(deployDir + "/helm/values/*")
	if err != nil || len(found) != len(overlays) {
		t.Errorf("%d overlays, and the chart's values for %d, %v", len(overlays), len(found), err)
	}
	for name := range overlays {
		t.Run(name, func(t *testing.T) { same(t, overlay(t, name).objects, chartOf(t, name).objects) })
	}
}

// overlaid renders what kustomize makes of an example with components behind it, and of a
// file declared.yaml where content is not "".
func overlaid(t *testing.T, example, content string, components ...string) []runtime.Object {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs("../../deploy/k8s")
	if err != nil {
		t.Fatal(err)
	}
	if deploy, err = filepath.Rel(dir, deploy); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("namespace: mneme\nresources: [%s/examples/%s]\n", deploy, example)
	if content != "" {
		text += "configMapGenerator: [{name: mneme-declared, behavior: replace, files: [declared.yaml]}]\n"
	}
	text += "components:\n"
	for _, name := range components {
		text += fmt.Sprintf("  - %s/components/%s\n", deploy, name)
	}
	for file, text := range map[string]string{"declared.yaml": content, "kustomization.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return render(t, dir)
}

// declaredOverlay renders the overlay team with components and a file of that content.
func declaredOverlay(t *testing.T, content string, components ...string) []runtime.Object {
	t.Helper()
	return overlaid(t, "declared", content, append(components, "monitor")...)
}

// bucketValues are those of the example backup-bucket.
const bucketValues = `backup:
  enabled: true
  buckets:
    to: s3://log@memories/team
    keysTo: s3://keys@safe/team
    secret: mneme-backup-bucket
    env: {AWS_ENDPOINT_URL: "https://s3.example.com", AWS_REGION: eu-1}
`

// The overlay team with all components is the chart with what they are by values.
func TestChartIsTheComponents(t *testing.T) {
	declared, err := os.ReadFile("../../deploy/k8s/examples/declared/declared.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := "podMonitor: {enabled: true}\ndeclared:\n  " + strings.ReplaceAll(string(declared), "\n", "\n  ") + "\n"
	chart := func(values string) []runtime.Object {
		installed, hooks := chartObjects(t, release{name: "mneme", values: values})
		return append(installed, slices.DeleteFunc(hooks, func(o runtime.Object) bool { return metadata(t, o).GetName() == "mneme-test" })...)
	}
	same(t, declaredOverlay(t, string(declared), "backup"), chart(values+"backup: {enabled: true}\n"))
	same(t, overlaid(t, "cert-manager", "", "monitor"), chart("podMonitor: {enabled: true}\ncertManager: {enabled: true}\n"))
	same(t, overlaid(t, "backup-bucket", "", "monitor"), chart("podMonitor: {enabled: true}\n"+bucketValues))
}
