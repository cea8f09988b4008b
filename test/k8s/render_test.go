package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// overlays are those in deploy/k8s, and how many nodes each has.
var overlays = map[string]int32{"dev": 1, "team": 3, "ha": 5, "external-nats": 3}

// rendered is what an overlay comes to, or the chart at its values.
type rendered struct {
	name     string // of the overlay
	chart    bool
	objects  []runtime.Object
	settings map[string]string // of the ConfigMap
}

// decoder takes no field that Kubernetes does not know.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, batchv1.AddToScheme, monitoringv1.AddToScheme, certmanagerv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// render builds an overlay.
func render(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []runtime.Object
	d := decoder(t)
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := d.Decode(text, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", r.CurId(), err)
			continue
		}
		out = append(out, object)
	}
	return out
}

// each runs check for every overlay, and for the chart at its values.
func each(t *testing.T, check func(t *testing.T, r rendered)) {
	t.Helper()
	for name := range overlays {
		t.Run(name, func(t *testing.T) { check(t, overlay(t, name)) })
		t.Run("chart as "+name, func(t *testing.T) { check(t, chartOf(t, name)) })
	}
}

// overlay renders the overlay of that name.
func overlay(t *testing.T, name string) rendered {
	t.Helper()
	return rendered{name: name, objects: render(t, filepath.Join("../../deploy/k8s/overlays", name))}.withSettings()
}

// withSettings takes the settings out of their ConfigMap.
func (r rendered) withSettings() rendered {
	for _, c := range all[*corev1.ConfigMap](r) {
		if strings.HasPrefix(c.Name, "mneme-settings") {
			r.settings = c.Data
		}
	}
	return r
}

// metadata is what every object has.
func metadata(t *testing.T, o runtime.Object) metav1.Object {
	t.Helper()
	meta, ok := o.(metav1.Object)
	if !ok {
		t.Fatalf("%T has no metadata", o)
	}
	return meta
}

// all are the objects of one kind.
func all[T runtime.Object](r rendered) (out []T) {
	for _, o := range r.objects {
		if typed, ok := o.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// one is the only object of a kind.
func one[T runtime.Object](t *testing.T, r rendered) T {
	t.Helper()
	found := all[T](r)
	if len(found) != 1 {
		t.Fatalf("%s has %d of %T", r.name, len(found), *new(T))
	}
	return found[0]
}

// pod is what the StatefulSet makes.
func (r rendered) pod(t *testing.T) corev1.PodSpec {
	t.Helper()
	return one[*appsv1.StatefulSet](t, r).Spec.Template.Spec
}

// memnode is the only container of it.
func (r rendered) memnode(t *testing.T) corev1.Container {
	t.Helper()
	pod := r.pod(t)
	if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	return pod.Containers[0]
}

// env is a variable of memnode's, wherever it comes from; "" = there is none.
func (r rendered) env(t *testing.T, name string) string {
	t.Helper()
	for _, e := range r.memnode(t).Env {
		switch {
		case e.Name != name:
		case e.ValueFrom != nil && e.ValueFrom.FieldRef != nil:
			return "field " + e.ValueFrom.FieldRef.FieldPath
		case e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil:
			return fmt.Sprintf("secret %s %s", e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
		default:
			return e.Value
		}
	}
	return r.settings[name]
}

// Decoding must find what it is there for, or nothing that follows means anything.
func TestDecodingIsStrict(t *testing.T) {
	d := decoder(t)
	for what, text := range map[string]string{
		"a typo":        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {publishNotReadyAddress: true}\n",
		"a wrong type":  "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: many}]}\n",
		"a field twice": "apiVersion: v1\nkind: Service\nmetadata: {name: a, name: b}\n",
		"an old kind":   "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n",
	} {
		if _, _, err := d.Decode([]byte(text), nil, nil); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func TestOverlaysAreWhatTheirNamesSay(t *testing.T) {
	found, err := filepath.Glob("../../deploy/k8s/overlays/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range found {
		if _, ok := overlays[filepath.Base(dir)]; !ok {
			t.Errorf("%s is looked at by no test: add it to overlays", dir)
		}
	}
	each(t, func(t *testing.T, r rendered) {
		set := one[*appsv1.StatefulSet](t, r)
		n := overlays[r.name]
		if *set.Spec.Replicas != n || n%2 == 0 {
			t.Errorf("%d replicas, want %d", *set.Spec.Replicas, n)
		}
		wanted := ""
		if n > 1 {
			wanted = fmt.Sprint(n)
		}
		if got := r.env(t, "MNEME_BOOTSTRAP_EXPECT"); got != wanted {
			t.Errorf("%q nodes found the cluster, want %q", got, wanted)
		}
		for _, o := range r.objects {
			meta := metadata(t, o)
			if _, ok := o.(*corev1.Namespace); !ok && meta.GetNamespace() != "mneme" {
				t.Errorf("%s is in the namespace %q", meta.GetName(), meta.GetNamespace())
			}
		}
		if strings.Contains(r.memnode(t).Image, ":latest") || !strings.Contains(r.memnode(t).Image, ":") {
			t.Errorf("image %s", r.memnode(t).Image)
		}
		// Who takes an overlay away again must not take the claims and Secrets of its namespace with it.
		if found := all[*corev1.Namespace](r); len(found) > 0 {
			t.Errorf("%s is among the objects", found[0].Name)
		}
	})
	text, err := os.ReadFile(deployDir + "/k8s/base/namespace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := decoder(t).Decode(text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"enforce", "warn", "audit"} {
		if labels := metadata(t, object).GetLabels(); labels["pod-security.kubernetes.io/"+mode] != "restricted" {
			t.Errorf("the namespace has %v", labels)
		}
	}
}

// What is added to an overlay has the image that the overlay names.
func TestComponentsTakeTheImage(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(deployDir + "/k8s")
	if err != nil {
		t.Fatal(err)
	}
	if deploy, err = filepath.Rel(dir, deploy); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/operate/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(guide), "```yaml\n# kustomization.yaml\n")
	text, _, ends := strings.Cut(text, "```\n")
	if !found || !ends {
		t.Fatal("the guide has no overlay of one's own")
	}
	for file, text := range map[string]string{"kustomization.yaml": strings.ReplaceAll(text, "deploy/k8s", deploy), "declared.yaml": "namespaces: []\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects := render(t, dir)
	pods := podsOf("", objects)
	if len(pods) < 6 {
		t.Errorf("%d pods beside the nodes", len(pods))
	}
	images := map[string]bool{rendered{objects: objects}.memnode(t).Image: true}
	for _, p := range pods {
		for _, c := range p.containers() {
			images[c.Image] = true
		}
	}
	if len(images) != 1 || !images["registry.example.org/mneme:1"] {
		t.Errorf("images %v", images)
	}
}

// A variable of the manifests that memnode does not know would end every pod with 2.
func TestVariablesAreSettings(t *testing.T) {
	known := settings(t)
	each(t, func(t *testing.T, r rendered) {
		names := []string{}
		for _, e := range r.memnode(t).Env {
			names = append(names, e.Name)
		}
		for name := range r.settings {
			names = append(names, name)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "MNEME_") && !slices.Contains(known, name) {
				t.Errorf("memnode has no setting %s", name)
			}
		}
	})
}
