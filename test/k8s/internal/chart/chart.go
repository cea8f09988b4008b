// Package chart renders the chart in deploy/helm as helm does, by its engine.
package chart

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Release is how the chart is installed, in the namespace mneme.
type Release struct {
	Deploy   string // folder deploy of the checkout
	Name     string
	Values   string // YAML; the chart's own where it says nothing
	Revision int    // from 2 on it is an upgrade; 0 is 1
	Lookup   engine.ClientProvider
}

// Files gives the output of each template by its path. Values that the schema or the chart
// refuses are an error.
func (r Release) Files() (map[string]string, error) {
	loaded, err := loader.Load(filepath.Join(r.Deploy, "helm/mneme"))
	if err != nil {
		return nil, err
	}
	if err := loaded.Validate(); err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(r.Values), &given); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: r.Name, Namespace: "mneme", Revision: max(1, r.Revision), IsInstall: r.Revision <= 1, IsUpgrade: r.Revision > 1}
	values, err := util.ToRenderValues(loaded, given, options, nil)
	if err != nil {
		return nil, err
	}
	if r.Lookup != nil {
		return engine.RenderWithClientProvider(loaded, values, r.Lookup)
	}
	return engine.Render(loaded, values)
}

// Documents gives what Files does as one document for each object.
func (r Release) Documents() ([]string, error) {
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(file) != ".yaml" {
			continue
		}
		for _, document := range strings.Split("\n"+files[file], "\n---\n") {
			if strings.Contains(document, "kind:") {
				out = append(out, strings.TrimSpace(document))
			}
		}
	}
	return out, nil
}
