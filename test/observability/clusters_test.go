package observability

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// within are the labels that name a cluster of Mneme. Of kube-state-metrics the job says nothing.
var within = []string{"job", "namespace", "cluster"}

// acrossClusters finds where an expression takes nodes of several clusters together.
func acrossClusters(t *testing.T, expr string) (bad []string) {
	t.Helper()
	e, err := promql.ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	need := within
	if strings.Contains(expr, "kube_") {
		need = without(within, []string{"job"})
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		var by []string
		switch n := n.(type) {
		case *parser.AggregateExpr:
			if n.Without {
				return nil
			}
			by = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching == nil || !n.VectorMatching.On {
				return nil
			}
			by = n.VectorMatching.MatchingLabels
		default:
			return nil
		}
		if missing := without(need, by); len(missing) > 0 {
			bad = append(bad, fmt.Sprintf("%s does not keep %v", n, missing))
		}
		return nil
	})
	return bad
}

// ofAnyCluster finds where a query of a dashboard asks beyond the clusters that are chosen, or takes
// equal shards and nodes of several of them as one.
func ofAnyCluster(t *testing.T, expr string) (bad []string) {
	t.Helper()
	e, err := promql.ParseExpr(expr)
	if err != nil {
		return nil // check says so
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			if !slices.ContainsFunc(n.LabelMatchers, func(m *labels.Matcher) bool {
				return m.Name == "cluster" && m.Type == labels.MatchRegexp && m.Value == "$cluster"
			}) {
				bad = append(bad, fmt.Sprintf("%s asks for any cluster", n))
			}
		case *parser.AggregateExpr:
			ofOne := slices.ContainsFunc([]string{"shard", "instance"}, func(l string) bool { return slices.Contains(n.Grouping, l) })
			if missing := without([]string{"namespace", "cluster"}, n.Grouping); ofOne && len(missing) > 0 {
				bad = append(bad, fmt.Sprintf("%s does not keep %v", n, missing))
			}
		case *parser.BinaryExpr:
			if v := n.VectorMatching; v != nil && v.On && len(without(within, v.MatchingLabels)) > 0 {
				bad = append(bad, fmt.Sprintf("%s does not keep %v", n, within))
			}
		}
		return nil
	})
	return bad
}

func TestCheckBitesAcrossClusters(t *testing.T) {
	for expr, want := range map[string]bool{
		`max by (job, shard) (a) == 0`: true,
		`sum(a)`:                       true,
		`max by (job, namespace, cluster, shard) (a) == 0`:             false,
		`a - on (job, namespace) b`:                                    true,
		`a - on (job, namespace, cluster) b`:                           false,
		`a / b > 1`:                                                    false,
		`max by (namespace, cluster, cronjob) (kube_cronjob_created)`:  false,
		`max by (namespace, cronjob) (kube_cronjob_created) - time()`:  true,
		`a and on (cluster, job_name) time() - kube_job_created < 100`: true,
	} {
		if bad := acrossClusters(t, expr); (len(bad) > 0) != want {
			t.Errorf("%s: %v", expr, bad)
		}
	}
	for expr, want := range map[string]bool{
		`sum(a{cluster=~"$cluster"})`: false, `a`: true, `max by (shard) (a{cluster=~"$cluster"})`: true,
		`a{cluster=~"$cluster"} - b`: true, `max by (namespace, cluster, shard) (a{cluster=~"$cluster"})`: false,
	} {
		if bad := ofAnyCluster(t, expr); (len(bad) > 0) != want {
			t.Errorf("%s: %v", expr, bad)
		}
	}
}

// in is a story that is told of a cluster with these labels.
func in(t *testing.T, told story, of map[string]string) story {
	t.Helper()
	out := story{}
	for name, value := range told {
		is, err := promql.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		b := labels.NewBuilder(is)
		for label, v := range of {
			b.Set(label, v)
		}
		out[b.Labels().String()] = value
	}
	return out
}

// TestAlertsTellClustersApart tells Prometheus of two clusters of Mneme, in all ways in which they
// may be told apart. Of a sick one and a well one the alert names the sick one, of two that are
// well it names none.
func TestAlertsTellClustersApart(t *testing.T) {
	gone := story{`up{job="mneme",instance="n1"}`: until(70, 1)}
	told := stories()
	told["MnemeNotScraped"] = [2]story{gone, {`up{job="mneme",instance="n1"}`: always(1)}}
	// What is well with one node must not look like being behind or short beside a bigger cluster.
	big := map[string]story{
		"MnemeReplicaBehind": {`mneme_raft_applied_index{job="mneme",instance="n1",shard="0"}`: always(9e6)},
		"MnemeNodeMissing":   group(5, 1, 1, 1, 1, 1),
	}
	for what, which := range map[string][2]map[string]string{
		"by namespaces of Kubernetes": {{"namespace": "prod"}, {"namespace": "dev"}},
		"by the label cluster":        {{"cluster": "prod"}, {"cluster": "dev"}},
		"in one namespace":            {{"namespace": "prod", "cluster": "prod/mneme"}, {"namespace": "prod", "cluster": "prod/memory"}},
		"as the PodMonitors do":       {{"namespace": "prod", "cluster": "prod/mneme"}, {"namespace": "dev", "cluster": "dev/mneme"}},
	} {
		t.Run(what, func(t *testing.T) {
			for _, r := range alerts(t) {
				sick, well := told[r.name][0], told[r.name][1]
				for i, ill := range which {
					other := which[1-i]
					firing := tell(t, r, merged(in(t, sick, ill), in(t, well, other)))
					if len(firing) == 0 {
						t.Errorf("%s keeps quiet while %v is sick", r.name, ill)
					}
					for label, v := range ill {
						for _, f := range firing {
							if !strings.Contains(f, label+`="`+v+`"`) {
								t.Errorf("%s fires on %s, and %v is sick", r.name, f, ill)
							}
						}
					}
					beside := well
					if big[r.name] != nil {
						beside = big[r.name]
					}
					if firing := tell(t, r, merged(in(t, well, ill), in(t, beside, other))); len(firing) > 0 {
						t.Errorf("%s fires on %v, and both are well", r.name, firing)
					}
				}
			}
		})
	}
}

// TestAlertsCompareWithinClusters holds every aggregation and every match against the labels that
// name a cluster.
func TestAlertsCompareWithinClusters(t *testing.T) {
	for _, r := range alerts(t) {
		for _, bad := range acrossClusters(t, r.expr) {
			t.Errorf("%s: %s", r.name, bad)
		}
	}
}
