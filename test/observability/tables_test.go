package observability

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

var promql = parser.NewParser(parser.Options{})

func top(parts ...string) string {
	return filepath.Join(append([]string{"..", ".."}, parts...)...)
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(top(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// metric is one that a node shows.
type metric struct {
	kind   string
	labels []string
}

// everywhere are labels that Prometheus gives to whatever it scrapes: namespace where it finds
// pods of Kubernetes, cluster where its configuration says so.
var everywhere = []string{"job", "instance", "namespace", "cluster"}

// shown reads the table of docs/operate/metrics.md, and adds what Prometheus itself and
// the libraries of Go and the process have.
func shown(t *testing.T) map[string]metric {
	t.Helper()
	out := map[string]metric{
		"up": {kind: "gauge"}, "process_start_time_seconds": {kind: "gauge"}, "process_resident_memory_bytes": {kind: "gauge"},
		"process_cpu_seconds_total": {kind: "counter"}, "process_open_fds": {kind: "gauge"}, "process_max_fds": {kind: "gauge"}, "go_goroutines": {kind: "gauge"},
		// Of kube-state-metrics, as its documentation of CronJobs and Jobs has them.
		"kube_cronjob_status_last_successful_time": {"gauge", []string{"namespace", "cronjob"}}, "kube_cronjob_created": {"gauge", []string{"namespace", "cronjob"}},
		"kube_job_failed": {"gauge", []string{"namespace", "job_name", "condition"}}, "kube_job_created": {"gauge", []string{"namespace", "job_name"}},
	}
	for line := range strings.Lines(read(t, "docs", "operate", "metrics.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " `mneme_") {
			continue
		}
		name, m := strings.Trim(cells[1], " `"), metric{kind: strings.TrimSpace(cells[2])}
		for l := range strings.SplitSeq(strings.Trim(cells[4], " –"), ", ") {
			if l != "" {
				m.labels = append(m.labels, l)
			}
		}
		if m.kind == "histogram" {
			out[name+"_sum"], out[name+"_count"] = metric{"counter", m.labels}, metric{"counter", m.labels}
			out[name+"_bucket"] = metric{"counter", append(slices.Clone(m.labels), "le")}
			continue
		}
		out[name] = m
	}
	if len(out) < 70 {
		t.Fatalf("only %d metrics in docs/operate/metrics.md", len(out))
	}
	return out
}

// check finds what an expression names that is not there, and returns the labels of the
// metrics that it names.
func check(metrics map[string]metric, expr string) (has []string, bad []string) {
	e, err := promql.ParseExpr(expr)
	if err != nil {
		return nil, []string{err.Error()}
	}
	has = slices.Clone(everywhere)
	var rated []parser.Node
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, known := metrics[v.Name]
		if !known {
			bad = append(bad, fmt.Sprintf("there is no metric %s", v.Name))
			return nil
		}
		may := append(slices.Clone(everywhere), m.labels...)
		has = append(has, m.labels...)
		for _, match := range v.LabelMatchers {
			if match.Name != labels.MetricName && !slices.Contains(may, match.Name) {
				bad = append(bad, fmt.Sprintf("%s has no label %s", v.Name, match.Name))
			}
		}
		for _, p := range path {
			if call, ok := p.(*parser.Call); ok && slices.Contains([]string{"rate", "increase", "irate"}, call.Func.Name) {
				rated = append(rated, v)
				if m.kind != "counter" {
					bad = append(bad, fmt.Sprintf("%s of %s, which is a %s", call.Func.Name, v.Name, m.kind))
				}
			}
		}
		if m.kind == "counter" && !slices.Contains(rated, parser.Node(v)) {
			bad = append(bad, fmt.Sprintf("%s is a counter: its rate says something, it itself does not", v.Name))
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			bad = append(bad, lacks(metrics, n.Expr, n.Grouping)...)
		case *parser.BinaryExpr:
			if v := n.VectorMatching; v != nil {
				bad = append(bad, lacks(metrics, n.LHS, v.MatchingLabels)...)
				bad = append(bad, lacks(metrics, n.RHS, v.MatchingLabels)...)
			}
		}
		return nil
	})
	return has, bad
}

// lacks finds labels that none of the metrics beneath a part of an expression has. A part without
// metrics has what it is given.
func lacks(metrics map[string]metric, part parser.Expr, by []string) (bad []string) {
	has, found := slices.Clone(everywhere), false
	parser.Inspect(part, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			has, found = append(has, metrics[n.Name].labels...), true
		case *parser.Call:
			if n.Func.Name == "label_replace" {
				has = append(has, strings.Trim(n.Args[1].String(), `"`))
			}
		}
		return nil
	})
	for _, l := range by {
		if found && !slices.Contains(has, l) {
			bad = append(bad, fmt.Sprintf("none of the metrics in %s has the label %s", part, l))
		}
	}
	return bad
}

func TestCheckBites(t *testing.T) {
	metrics := map[string]metric{"a": {"gauge", []string{"shard"}}, "b_total": {"counter", []string{"code"}}, "up": {kind: "gauge"}}
	for expr, want := range map[string]string{
		`a{shard="0"} > 1`:                  "",
		`sum by (shard) (a)`:                "",
		`sum by (code) (rate(b_total[5m]))`: "",
		`c`:                                 "there is no metric c",
		`a{code="x"}`:                       "a has no label code",
		`sum by (agent) (a)`:                "the label agent",
		`rate(a[5m])`:                       "which is a gauge",
		`b_total > 3`:                       "is a counter",
		`a and on (code) up`:                "the label code",
		`sum by (shard) (rate(b_total[5m])) + sum by (shard) (a)`: "none of the metrics in rate(b_total[5m]) has the label shard",
		`a + on (shard) up`:                    "none of the metrics in up has the label shard",
		`sum by (code) (rate(b_total[5m]`:      "unclosed",
		`rate(b_total{instance="x"}[5m]) > 0 `: "",
	} {
		_, bad := check(metrics, expr)
		if got := strings.Join(bad, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

var label = regexp.MustCompile(`\$labels\.(\w+)|\{\{ *(\w+) *\}\}`)

// used reports labels that a text shows and that an expression cannot have.
func used(text string, has []string) (bad []string) {
	for _, m := range label.FindAllStringSubmatch(text, -1) {
		if name := m[1] + m[2]; name != "end" && name != "else" && !slices.Contains(has, name) {
			bad = append(bad, fmt.Sprintf("%q shows the label %s", text, name))
		}
	}
	return bad
}

// page is what a dashboard consists of, as far as it is looked at.
type page struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Query, AllValue string }
	}
}

type panel struct {
	Title, Type, Description string
	Targets                  []struct{ Expr, LegendFormat string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Panels                   []panel
}

func TestDashboards(t *testing.T) {
	metrics, uids := shown(t), map[string]string{}
	for name, p := range dashboards(t) {
		if p.UID == "" || p.Title == "" || uids[p.UID] != "" {
			t.Errorf("%s: uid %q, title %q", name, p.UID, p.Title)
		}
		uids[p.UID] = name
		for _, v := range p.Templating.List {
			if m := labelValues.FindStringSubmatch(v.Query); v.Type == "query" {
				if m == nil {
					t.Errorf("%s: variable %s: %q", name, v.Name, v.Query)
				} else if of, ok := metrics[m[1]]; !ok || !slices.Contains(append(of.labels, everywhere...), m[2]) {
					t.Errorf("%s: variable %s: there is no %s with %s", name, v.Name, m[1], m[2])
				}
			}
		}
		panels := 0
		p.each(func(one panel) {
			for _, target := range one.Targets {
				panels++
				expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
				has, bad := check(metrics, expr)
				bad = append(bad, ofAnyCluster(t, expr)...)
				for _, b := range append(bad, used(target.LegendFormat, has)...) {
					t.Errorf("%s: %s: %s", name, one.Title, b)
				}
			}
		})
		if panels < 5 {
			t.Errorf("%s has %d queries", name, panels)
		}
	}
}

// TestAlertsAndTheirPages holds the rules against metrics and pages, each of which says
// what it looks like, what causes it and what to do.
func TestAlertsAndTheirPages(t *testing.T) {
	metrics, pages, causes := shown(t), map[string]bool{}, causing(t)
	for _, a := range alerts(t) {
		has, bad := check(metrics, a.expr)
		for key, text := range a.annotations {
			for _, b := range used(text, has) {
				bad = append(bad, key+": "+b)
			}
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.labels["severity"]) || a.annotations["summary"] == "" {
			bad = append(bad, "it has no severity or no summary")
		}
		runbook := a.annotations["runbook_url"]
		pages[filepath.Base(runbook)] = true
		text, err := os.ReadFile(top(filepath.FromSlash(runbook)))
		if err != nil {
			t.Errorf("%s: %v", a.name, err)
			continue
		}
		for _, part := range []string{"## Symptoms", "## Causes", "## What to do", "## Verified"} {
			if !strings.Contains(string(text), part+"\n") {
				bad = append(bad, runbook+" has no part "+part)
			}
		}
		if !strings.Contains(string(text), a.name) {
			bad = append(bad, runbook+" does not name it")
		}
		if at := strings.Index(string(text), "(README.md#a-shell-for-the-node)"); at < 0 && regexp.MustCompile(`(?m)^(memctl|nodelog) `).Match(text) {
			bad = append(bad, runbook+" prints memctl or nodelog, and does not lead to a shell in which they ask a pod")
		}
		_, verified, _ := strings.Cut(string(text), "## Verified\n")
		bad = append(bad, unverified(a.name, verified, causes)...)
		for _, b := range bad {
			t.Errorf("%s: %s", a.name, b)
		}
	}
	files, err := filepath.Glob(top("docs", "operate", "alerts", "Mneme*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !pages[filepath.Base(f)] {
			t.Errorf("no alert leads to %s; there are %v", f, slices.Sorted(maps.Keys(pages)))
		}
	}
}

var (
	testFunc = regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{\n.*?^}`)
	firedOf  = regexp.MustCompile(`\.fired\(([^)]*)\)`)
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
)

// causing are the tests of this package, and the alerts that each waits for to fire.
func causing(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range testFunc.FindAllStringSubmatch(string(text), -1) {
			out[f[1]] = []string{}
			for _, fired := range firedOf.FindAllStringSubmatch(f[0], -1) {
				for name := range strings.SplitSeq(fired[1], ",") {
					out[f[1]] = append(out[f[1]], strings.Trim(name, ` "`))
				}
			}
		}
	}
	return out
}

// unverified says what is wrong with how a page says that its alert was tried: it names tests
// that there are, the first of which causes the alert, or says that none does.
func unverified(alert, verified string, causes map[string][]string) (bad []string) {
	named := testName.FindAllString(verified, -1)
	for _, name := range named {
		if causes[name] == nil {
			bad = append(bad, "its page names "+name+", which is no test of this package")
		}
	}
	if len(named) == 0 {
		return append(bad, "its page names no test")
	}
	if !slices.Contains(causes[named[0]], alert) && !strings.Contains(verified, "on made-up samples of kube-state-metrics only") {
		bad = append(bad, fmt.Sprintf("its page says that %s causes it, which waits for %v", named[0], causes[named[0]]))
	}
	return bad
}

// TestPromtoolTakesTheRules asks Prometheus's own tool where it is installed.
func TestPromtoolTakesTheRules(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian, Ubuntu: apt-get install prometheus); the rules were read by its library all the same")
	}
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", top("deploy", "observability", "alerts.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
