package node

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write the generated tables of docs anew")

// shown is a metric as /metrics shows it.
type shown struct{ name, kind, help, labels string }

// unit is the unit that the name ends with, as the conventions of Prometheus have it.
func (m shown) unit() string {
	switch name := strings.TrimSuffix(m.name, "_total"); {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return "seconds since 1970"
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case strings.HasSuffix(name, "_bytes"):
		return "bytes"
	case strings.HasSuffix(name, "_ratio"):
		return "0 to 1"
	}
	return "–"
}

var sample = regexp.MustCompile(`^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)

// parseMetrics reads the metrics of the node itself, in order of their names.
func parseMetrics(t *testing.T, text string) []shown {
	t.Helper()
	found := map[string]*shown{}
	of := func(name string) *shown {
		if found[name] == nil {
			found[name] = &shown{name: name}
		}
		return found[name]
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		words := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP mneme_"):
			of(words[2]).help = words[3]
		case strings.HasPrefix(line, "# TYPE mneme_"):
			of(words[2]).kind = words[3]
		case strings.HasPrefix(line, "mneme_"):
			m := sample.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("not a sample: %s", line)
			}
			name := m[1]
			if found[name] == nil { // one whose own name ends like a part of a histogram
				name = strings.SplitN(strings.SplitN(line, "{", 2)[0], " ", 2)[0]
			}
			var labels []string
			for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
				if l[1] != "le" {
					labels = append(labels, l[1])
				}
			}
			slices.Sort(labels)
			of(name).labels = strings.Join(labels, ", ")
		}
	}
	out := make([]shown, 0, len(found))
	for _, m := range found {
		if m.help == "" || m.kind == "" {
			t.Errorf("%+v has no help or no type", *m)
		}
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b shown) int { return strings.Compare(a.name, b.name) })
	return out
}

// table prints metrics as a table of docs.
func metricsTable(all []shown) string {
	var b strings.Builder
	b.WriteString("| metric | type | unit | labels | |\n|---|---|---|---|---|\n")
	for _, m := range all {
		labels := m.labels
		if labels == "" {
			labels = "–"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, m.unit(), labels, m.help)
	}
	return b.String()
}

// generated replaces what stands between the marks of a document, or compares it.
func generated(t *testing.T, document, table string) {
	t.Helper()
	const begin, end = "<!-- generated: begin -->\n", "<!-- generated: end -->"
	path := filepath.Join("..", "..", filepath.FromSlash(document))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	have, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no %q … %q", document, begin, end)
	}
	if have == table {
		return
	}
	if !*rewrite {
		have := strings.Split(have, "\n")
		for _, line := range strings.Split(table, "\n") {
			if !slices.Contains(have, line) {
				t.Errorf("%s lacks: %s", document, line)
			}
		}
		want := strings.Split(table, "\n")
		for _, line := range have {
			if !slices.Contains(want, line) {
				t.Errorf("%s has what is not so: %s", document, line)
			}
		}
		t.Fatalf("%s is not what is; go test %s -run '^%s$' -rewrite writes it", document, "./internal/node", t.Name())
	}
	if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// scrape reads /metrics of a node that has done each thing that is counted.
func scrape(t *testing.T) string {
	t.Helper()
	cfg, certs := overTLS(t, t.TempDir(), false)
	cfg.Process.MemoryLimit = func() uint64 { return 2 << 30 }
	traced(t, &cfg, "http://127.0.0.1:1", 0)
	n := open(t, cfg)
	must(t, n, "deploys happen on Tuesdays")
	find(t, n, "deploys")
	trust := trusting(t, certs, "")
	if _, err := fetch(t, n.HTTPURL()+"/v1/status", trust); err != nil {
		t.Fatal(err)
	}
	text, err := fetch(t, n.HTTPURL()+"/metrics", trust)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMetricsAreDocumented holds docs/operate/metrics.md against a running node: each
// metric that it shows is in the table with its type, unit and labels, and each in the table
// is shown.
func TestMetricsAreDocumented(t *testing.T) {
	text := scrape(t)
	all := parseMetrics(t, text)
	if len(all) < 60 {
		t.Errorf("only %d metrics", len(all))
	}
	generated(t, "docs/operate/metrics.md", metricsTable(all))
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "mneme_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestLabelsAreBounded: neither namespaces nor agents, of which there is no end, make series.
func TestLabelsAreBounded(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	series := func() int {
		text, err := fetch(t, n.HTTPURL()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(text, "\nmneme_")
	}
	use := func(name string) {
		status, body := post(t, n, "/v1/namespaces", `{"name":"`+name+`"}`)
		if status != 201 {
			t.Fatal(status, body)
		}
		post(t, n, "/v1/namespaces/"+name+"/events", `{"agent":"`+name+`","text":"something","conversation":"`+name+`"}`)
		post(t, n, "/v1/namespaces/"+name+"/search", `{"query":"something"}`)
		post(t, n, "/v1/namespaces/"+name+"/search", `{"query":""}`)
	}
	use("first")
	series() // the request for metrics makes a series itself
	before := series()
	for i := range 20 {
		use(fmt.Sprintf("ns%d", i))
	}
	if after := series(); after != before {
		t.Errorf("%d series became %d with 20 more namespaces", before, after)
	}
}

// TestMetricsCountWhatHappens looks at what requests leave behind.
func TestMetricsCountWhatHappens(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	must(t, n, "deploys happen on Tuesdays")
	find(t, n, "deploys")
	if _, err := n.reads.Search(t.Context(), memory.Access{Namespace: "nowhere"}, memory.SearchRequest{Query: "x"}); err == nil {
		t.Fatal("a search of no namespace")
	}
	text, err := fetch(t, n.HTTPURL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`mneme_capture_duration_seconds_count{wait="applied"} 1`, `mneme_search_duration_seconds_count{mode="hybrid"} 1`,
		`mneme_search_errors_total{code="not_found"} 1`, `mneme_capture_errors_total{code="overloaded"} 0`, `mneme_records{shard="0"} 1`,
		`mneme_shard_leader{shard="0"} 1`, `mneme_raft_leader_known{shard="0"} 1`, `mneme_raft_leader_changes_total{shard="0"} 1`,
		`mneme_writer_terms_total{shard="0"} 1`, `mneme_log_up{shard="0"} 1`, `mneme_writes_stopped{shard="0"} 0`, `mneme_ready 1`,
		`mneme_raft_voters{shard="0"} 1`, `mneme_namespaces 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			name, _, _ := strings.Cut(line, "{")
			t.Errorf("no %s; there is\n%s", line, grep(text, name))
		}
	}
	for _, shard := range []string{"log_append", "apply"} {
		if strings.Contains(text, "mneme_"+shard+`_duration_seconds_count{shard="0"} 0`) {
			t.Errorf("no frame was measured: %s", grep(text, shard))
		}
	}
}

func grep(text, word string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

var scrapeOf = flag.Int("scrape.namespaces", 0, "measure a scrape with so many namespaces")

// TestScrapeTime measures what docs/operate/metrics.md says of the cost of a scrape. Without
// -scrape.namespaces it only shows that it can.
func TestScrapeTime(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	for i := range max(*scrapeOf, 3) {
		name := fmt.Sprintf("ns%d", i)
		post(t, n, "/v1/namespaces", `{"name":"`+name+`"}`)
		post(t, n, "/v1/namespaces/"+name+"/events", `{"agent":"a","text":"something"}`)
	}
	var took []time.Duration
	for range 20 {
		began := time.Now()
		text, err := fetch(t, n.HTTPURL()+"/metrics", nil)
		if err != nil || !strings.Contains(text, "mneme_records") {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d namespaces: median %s, longest %s", max(*scrapeOf, 3), took[len(took)/2], took[len(took)-1])
}
