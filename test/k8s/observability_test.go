package k8s

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const observability = "../../deploy/observability"

// ruleHead is what prometheusrule.yaml has before the rules.
const ruleHead = `# The rules of alerts.yaml for the Prometheus operator. Not written by hand: go test -run
# PrometheusRule -rewrite, in test/k8s, writes it anew.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: mneme
  labels:
    app.kubernetes.io/name: mneme
    app.kubernetes.io/part-of: mneme
spec:
`

// The PrometheusRule has the rules of alerts.yaml, and the ConfigMap all dashboards.
func TestPrometheusRuleIsTheAlerts(t *testing.T) {
	alerts, err := os.ReadFile(observability + "/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, found := strings.Cut(string(alerts), "\ngroups:\n")
	if !found {
		t.Fatal("alerts.yaml has no groups")
	}
	want := ruleHead + "  groups:\n"
	for line := range strings.Lines(rules) {
		if strings.TrimSpace(line) != "" {
			line = "  " + line
		}
		want += line
	}
	file := observability + "/prometheusrule.yaml"
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if has, err := os.ReadFile(file); err != nil || string(has) != want {
		t.Errorf("%s is not what alerts.yaml says (%v): go test -run PrometheusRule . -rewrite", file, err)
	}

	r := rendered{objects: render(t, observability)}
	var plain monitoringv1.PrometheusRuleSpec
	if err := yaml.Unmarshal(alerts, &plain); err != nil {
		t.Fatal(err)
	}
	rule := one[*monitoringv1.PrometheusRule](t, r)
	if got, want := said(t, marshalled(t, rule.Spec)), said(t, marshalled(t, plain)); got != want || len(plain.Groups) < 4 {
		t.Errorf("the rules are\n%s\nand those of alerts.yaml\n%s", got, want)
	}
	boards := one[*corev1.ConfigMap](t, r)
	files, err := filepath.Glob(observability + "/dashboards/*.json")
	if err != nil || len(files) != len(boards.Data) || boards.Labels["grafana_dashboard"] != "1" || rule.Namespace != boards.Namespace {
		t.Errorf("%d dashboards in %s/%s, %v, of %d: %v", len(boards.Data), boards.Namespace, boards.Name, boards.Labels, len(files), err)
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
