package observability

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/panels.txt anew")

// labelled are values of the labels that metrics have beside those of every target.
var labelled = map[string][]string{
	"shard": {"0", "1", "2"}, "code": {"invalid", "unavailable"}, "wait": {"accepted", "applied"}, "mode": {"hybrid", "text"}, "sort": {"gets", "searches"},
	"engine": {"mneme"}, "for": {"clients", "nodes"}, "route": {"/v1/search", "/v1/status"}, "method": {"GET"}, "status": {"200", "404", "503"}, "why": {"queue"},
	"le": {"0.256", "0.512", "1.024", "2.048", "4.096", "+Inf"}, "version": {"1"}, "goversion": {"1"},
}

// below is the share of what a histogram counts that is below each bound, on a node in the middle.
var below = map[string]float64{"0.256": 0.3, "0.512": 0.6, "1.024": 0.92, "2.048": 0.97, "4.096": 1, "+Inf": 1}

// madeUp are three nodes of the cluster that is looked at, one of another cluster, and one of another
// job. Each metric has a number of its own, so that no other one can take its place, which grows by
// one for the node, by ten for the shard and by a hundred for what else there is of labels.
func madeUp(t *testing.T) *series {
	t.Helper()
	out, metrics := newSeries(), shown(t)
	for _, target := range []map[string]string{
		{"job": "mneme", "cluster": "prod", "namespace": "agents", "instance": "n1"},
		{"job": "mneme", "cluster": "prod", "namespace": "agents", "instance": "n2"},
		{"job": "mneme", "cluster": "prod", "namespace": "agents", "instance": "n3"},
		{"job": "mneme", "cluster": "dev", "namespace": "agents", "instance": "n1"},
		{"job": "other", "cluster": "prod", "namespace": "agents", "instance": "n1"},
	} {
		for name, m := range metrics {
			if strings.HasPrefix(name, "kube_") {
				continue
			}
			for _, of := range everyLabel(t, m.labels) {
				is := maps.Clone(of)
				maps.Copy(is, target)
				is[labels.MetricName] = name
				for i := range 11 {
					out.put(labels.FromMap(is), start.Add(time.Duration(i-10)*time.Minute), shownOf(name, m.kind, target["instance"], of, float64(i)))
				}
			}
		}
	}
	return out
}

func everyLabel(t *testing.T, names []string) []map[string]string {
	t.Helper()
	out := []map[string]string{{}}
	for _, name := range names {
		if labelled[name] == nil {
			t.Fatalf("there is a label %s, of which the made-up samples know no values", name)
		}
		var more []map[string]string
		for _, of := range out {
			for _, value := range labelled[name] {
				with := maps.Clone(of)
				with[name] = value
				more = append(more, with)
			}
		}
		out = more
	}
	return out
}

// yesNo are metrics that are 1 or 0.
var yesNo = regexp.MustCompile(`^(up|mneme_(ready|writes_stopped|shard_halted|shard_leader|log_diverged|log_scrub_problem|log_up|vector_guard_tripped))$`)

// shownOf is what a node shows in a minute. Of three shards the second one has no leader; what else is 1
// or 0 of a shard is so by turns, of a node it is 1.
func shownOf(name, kind, instance string, of map[string]string, minute float64) float64 {
	node, shard, rest := float64(instance[1]-'0'), 0.0, 0.0
	for label, value := range of {
		switch label {
		case "le":
		case "shard":
			shard, _ = strconv.ParseFloat(value, 64)
		default:
			rest += float64(slices.Index(labelled[label], value))
		}
	}
	base := strings.NewReplacer("_bucket", "", "_sum", "", "_count", "").Replace(name)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(base))
	is := float64(1000*(100+sum.Sum32()%900)) + node + 10*(shard+1) + 100*(rest+1)
	switch {
	case name == "mneme_shard_leader":
		if shard != 1 && node == shard+1 {
			return 1
		}
		return 0
	case yesNo.MatchString(name) && of["shard"] == "":
		return 1
	case yesNo.MatchString(name):
		return float64((int(node) + int(shard) + int(sum.Sum32())) % 2)
	case name == "mneme_raft_leader_contact_timestamp_seconds" && node == shard+1:
		return 0 // the leader itself
	case strings.HasSuffix(name, "_timestamp_seconds"), name == "process_start_time_seconds":
		return float64(start.Unix()) - is/1000
	case name != base && of["le"] != "":
		is *= math.Pow(below[of["le"]], 1+(node-2+shard+rest)/10)
	case name != base && strings.HasSuffix(name, "_sum"):
		is *= 0.7
	}
	if kind == "counter" {
		return is * minute * 60 / 1000 // a thousandth of it a second
	}
	return is
}

// TestPanelsShowWhatTheySay evaluates each query of each panel on made-up samples, with two of three
// nodes and two of three shards chosen, and compares with testdata/panels.txt: a panel that says "95 %"
// or "limit" must show that. Look at each line that changes when it is written anew by -rewrite.
func TestPanelsShowWhatTheySay(t *testing.T) {
	p := &prometheus{t: t, of: madeUp(t), engine: newEngine(), at: start}
	defer p.engine.Close()
	chosen := map[string]string{"__rate_interval": "5m", "job": "mneme", "cluster": "prod", "instance": "n1|n2", "shard": "0|1"}
	var out strings.Builder
	all := dashboards(t)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		d := all[file]
		d.each(func(one panel) {
			for _, target := range one.Targets {
				for _, window := range windows.FindAllStringSubmatch(target.Expr, -1) {
					if window[1] != "$__rate_interval" {
						t.Errorf("%s: %s looks back %s, and not as far as what is shown has points", file, one.Title, window[1])
					}
				}
				fmt.Fprintf(&out, "%s: %s (%s)\n", d.Title, one.Title, one.FieldConfig.Defaults.Unit)
				for _, line := range p.legend(one.Title, put(target.Expr, chosen), target.LegendFormat) {
					fmt.Fprintf(&out, "\t%s\n", line)
				}
			}
		})
	}
	file := filepath.Join("testdata", "panels.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(text), "\n"), strings.Split(out.String(), "\n")
	panel := ""
	for i := range min(len(want), len(got)) {
		if !strings.HasPrefix(got[i], "\t") {
			panel = got[i]
		}
		if want[i] != got[i] {
			t.Fatalf("%s shows %q, and %s has %q: go test -run TestPanelsShow . -rewrite, if that is meant", panel, got[i], file, want[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d lines, and %s has %d", len(got), file, len(want))
	}
}

var windows = regexp.MustCompile(`\[([^\]]+)\]`)

// legend is what a query shows: the legend of each series, and its number.
func (p *prometheus) legend(title, expr, format string) (out []string) {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.of, nil, expr, p.at)
	if err != nil {
		p.t.Fatalf("%s: %v", title, err)
	}
	defer q.Close()
	vector, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatalf("%s: %s: %v", title, expr, err)
	}
	for _, s := range vector {
		of := s.Metric.Map()
		name := label.ReplaceAllStringFunc(format, func(shown string) string {
			value, ok := of[strings.Trim(shown, "{} ")]
			if !ok {
				p.t.Errorf("%s: the legend %q names a label that %s has not", title, format, s.Metric)
			}
			return value
		})
		out = append(out, fmt.Sprintf("%s = %.10g", name, s.F))
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(out) || len(out) == 0 {
		p.t.Errorf("%s shows %q: nothing, or the same twice", title, out)
	}
	return out
}
