package k8s

import (
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime"

	"mneme/test/k8s/internal/chart"
)

const deployDir = "../../deploy"

// valuesOf are the values by which the chart is an overlay.
func valuesOf(t *testing.T, overlay string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployDir, "helm/values", overlay+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// release is how the chart is installed.
type release struct {
	name, values string
	revision     int
	lookup       engine.ClientProvider // what there is already; nil = nothing
}

func (r release) chart() chart.Release {
	return chart.Release{Deploy: deployDir, Name: r.name, Values: r.values, Revision: r.revision, Lookup: r.lookup}
}

// chartObjects are the objects that the chart comes to, decoded strictly: those that are
// installed, and the hooks.
func chartObjects(t *testing.T, r release) (installed, hooks []runtime.Object) {
	t.Helper()
	documents, err := r.chart().Documents()
	if err != nil {
		t.Fatal(err)
	}
	d := decoder(t)
	for _, document := range documents {
		object, _, err := d.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Errorf("%v\n%s", err, document)
			continue
		}
		if metadata(t, object).GetAnnotations()["helm.sh/hook"] != "" {
			hooks = append(hooks, object)
		} else {
			installed = append(installed, object)
		}
	}
	return installed, hooks
}

// chartOf is the chart at the values of an overlay.
func chartOf(t *testing.T, overlay string) rendered {
	t.Helper()
	r := rendered{name: overlay, chart: true}
	r.objects, _ = chartObjects(t, release{name: "mneme", values: valuesOf(t, overlay)})
	return r.withSettings()
}
