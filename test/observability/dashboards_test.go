package observability

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/prometheus/prometheus/promql/parser"
)

func dashboards(t *testing.T) map[string]page {
	t.Helper()
	files, err := filepath.Glob(top("deploy", "observability", "dashboards", "*.json"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	out := map[string]page{}
	for _, file := range files {
		name := filepath.Base(file)
		var p page
		if err := json.Unmarshal([]byte(read(t, "deploy", "observability", "dashboards", name)), &p); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = p
	}
	return out
}

// each calls f with each panel that has queries.
func (p page) each(f func(panel)) {
	var look func([]panel)
	look = func(all []panel) {
		for _, one := range all {
			look(one.Panels)
			if len(one.Targets) > 0 {
				f(one)
			}
		}
	}
	look(p.Panels)
}

// TestDashboardsFitGrafanasSchema reads them by the types that Grafana publishes of its
// dashboards, panels and queries, which take no field that is not there.
func TestDashboardsFitGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for name := range dashboards(t) {
		var d dashboard.Dashboard
		text := []byte(read(t, "deploy", "observability", "dashboards", name))
		if err := d.UnmarshalJSONStrict(text); isError(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := json.Unmarshal(text, &d); err != nil { // the strict one leaves out a panel without an error
			t.Fatalf("%s: %v", name, err)
		}
		if err := d.Validate(); isError(err) {
			t.Errorf("%s: %v", name, err)
		}
		places, ids := map[[2]uint32]string{}, map[uint32]bool{}
		for _, one := range d.Panels {
			p := one.Panel
			if p == nil {
				continue // a row
			}
			if p.Id == nil || ids[*p.Id] {
				t.Errorf("%s: %s has no id of its own", name, *p.Title)
			} else {
				ids[*p.Id] = true
			}
			if bad := notOffered(p.Options); bad != "" {
				t.Errorf("%s: %s: a panel of type %s: %s", name, *p.Title, p.Type, bad)
			}
			if c := p.FieldConfig; c != nil && c.Defaults.Thresholds != nil && len(c.Defaults.Thresholds.Steps) == 0 {
				t.Errorf("%s: %s has thresholds without steps", name, *p.Title)
			}
			g := p.GridPos
			if g == nil || g.X+g.W > 24 {
				t.Errorf("%s: %s does not fit: %+v", name, *p.Title, g)
				continue
			}
			for x := range g.W {
				for y := range g.H {
					at := [2]uint32{g.X + x, g.Y + y}
					if places[at] != "" {
						t.Errorf("%s: %s lies on %s", name, *p.Title, places[at])
						x, y = g.W, g.H
					}
					places[at] = *p.Title
				}
			}
		}
		if len(ids) < 5 {
			t.Errorf("%s has %d panels", name, len(ids))
		}
	}
}

// notOffered names an option that has a word which Grafana does not know. The types take any.
func notOffered(options any) string {
	known := func(word any, of ...any) string {
		if slices.Contains(of, word) {
			return ""
		}
		return fmt.Sprintf("%q is none of %q", word, of)
	}
	switch o := options.(type) {
	case *timeseries.Options:
		return known(o.Legend.DisplayMode, common.LegendDisplayModeList, common.LegendDisplayModeTable, common.LegendDisplayModeHidden) +
			known(o.Legend.Placement, common.LegendPlacementBottom, common.LegendPlacementRight) +
			known(o.Tooltip.Mode, common.TooltipDisplayModeSingle, common.TooltipDisplayModeMulti, common.TooltipDisplayModeNone)
	case *stat.Options:
		return known(o.GraphMode, common.BigValueGraphModeNone, common.BigValueGraphModeLine, common.BigValueGraphModeArea) +
			known(o.ColorMode, common.BigValueColorModeNone, common.BigValueColorModeValue, common.BigValueColorModeBackground, common.BigValueColorModeBackgroundSolid) +
			known(o.TextMode, common.BigValueTextModeAuto, common.BigValueTextModeName, common.BigValueTextModeNone, common.BigValueTextModeValue, common.BigValueTextModeValueAndName) +
			known(o.Orientation, common.VizOrientationAuto, common.VizOrientationHorizontal, common.VizOrientationVertical)
	}
	return fmt.Sprintf("its options are %T, those of no panel that is looked at", options)
}

// isError tells errors from a list without any, which these types return as well.
func isError(err error) bool {
	list := (cog.BuildErrors)(nil)
	return err != nil && (!errors.As(err, &list) || len(list) > 0)
}

// A dimension is what a number means.
type dimension string

const (
	number    dimension = "number"
	perSecond dimension = "a second"
	seconds   dimension = "seconds"
	moment    dimension = "seconds since 1970"
	moments   dimension = "milliseconds since 1970" // as Grafana wants them
	inBytes   dimension = "bytes"
	share     dimension = "ratio"
)

// unitsOf are the units of Grafana in which a dimension may be shown.
var unitsOf = map[dimension][]string{
	number: {units.Short, units.NoUnit}, perSecond: {units.OpsPerSecond}, seconds: {units.Seconds}, moments: {units.DateTimeFromNow},
	inBytes: {units.BytesIEC}, share: {units.PercentUnit, units.Short, units.NoUnit}, moment: {},
}

// dimensionOf is what the values of an expression mean, by the suffixes of its metrics.
func dimensionOf(e parser.Expr) dimension {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return dimensionOf(e.Expr)
	case *parser.StepInvariantExpr:
		return dimensionOf(e.Expr)
	case *parser.MatrixSelector:
		return dimensionOf(e.VectorSelector)
	case *parser.VectorSelector:
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(e.Name, "_total"), "_bucket"), "_sum")
		for _, s := range []struct {
			suffix string
			is     dimension
		}{{"_timestamp_seconds", moment}, {"process_start_time_seconds", moment}, {"_seconds", seconds}, {"_bytes", inBytes}, {"_ratio", share}} {
			if strings.HasSuffix(name, s.suffix) {
				return s.is
			}
		}
		return number
	case *parser.AggregateExpr:
		if e.Op == parser.COUNT {
			return number
		}
		return dimensionOf(e.Expr)
	case *parser.Call:
		switch e.Func.Name {
		case "time":
			return moment
		case "vector":
			return number
		case "rate", "irate":
			switch of := dimensionOf(e.Args[0]); of {
			case number:
				return perSecond
			case seconds:
				if strings.Contains(e.Args[0].String(), "_bucket") {
					return seconds
				}
				return share
			default:
				return of + " " + perSecond
			}
		case "histogram_quantile":
			return dimensionOf(e.Args[1])
		}
		return dimensionOf(e.Args[0])
	case *parser.BinaryExpr:
		l, r := dimensionOf(e.LHS), dimensionOf(e.RHS)
		switch {
		case e.Op == parser.DIV && l == r:
			return share
		case e.Op == parser.SUB && l == moment && r == moment:
			return seconds
		case e.Op == parser.MUL && l == moment && e.RHS.String() == "1000":
			return moments
		case e.Op == parser.MUL || e.Op == parser.DIV:
			return l + dimension(" "+e.Op.String()+" ") + r
		}
		return l
	}
	return number
}

// TestDashboardsShowUnitsThatFit holds the unit of each panel against what its queries give. Only
// where they give several may it be a plain number.
func TestDashboardsShowUnitsThatFit(t *testing.T) {
	for name, p := range dashboards(t) {
		p.each(func(one panel) {
			unit, are := one.FieldConfig.Defaults.Unit, map[dimension]bool{}
			for _, target := range one.Targets {
				e, err := promql.ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
				if err != nil {
					t.Fatalf("%s: %s: %v", name, one.Title, err)
				}
				are[dimensionOf(e)] = true
			}
			if len(are) > 1 && slices.Contains(unitsOf[number], unit) {
				return
			}
			for is := range are {
				if !slices.Contains(unitsOf[is], unit) {
					t.Errorf("%s: %s shows %s in the unit %q", name, one.Title, is, unit)
				}
			}
		})
	}
}

// unshown are panels that a healthy cluster of a test shows nothing in, and why.
var unshown = map[string]string{
	"Mneme: search: Recall": "the guard measures from 4,096 vectors on; TestRecallThatIsTooLowIsAlerted has as many",
}

// TestPanelsShowWhatNodesTell has a cluster do all that panels show, and evaluates each panel's
// queries on what Prometheus scraped of it, with the values that the variables have there.
func TestPanelsShowWhatNodesTell(t *testing.T) {
	tr := newTrio(t, 60*24*time.Hour)
	p, lead := tr.p, tr.leader()
	p.captured(tr.nodes[lead], "a memory of the harbour")
	busy := func() {
		for i, n := range tr.nodes {
			for k := range 5 {
				p.captured(n, fmt.Sprintf("memory %d of the harbour", k))
			}
			p.ask(n, captures+"?wait=accepted", fields{"agent": "a", "id": "same", "text": "said again"})
			p.ask(n, captures, fields{"agent": "a", "id": "same", "text": fmt.Sprint("contradicted ", i)})
			p.ask(n, captures, fields{"agent": "a"})                                              // refused
			p.ask(n, "/v1/namespaces/nowhere/events", fields{"agent": "a", "text": "to nowhere"}) // failed
			p.ask(n, "/v1/namespaces/nowhere/search", fields{"query": "x"})                       // failed
			p.search(n, nil)
			p.search(n, fields{"mode": "text"})
		}
	}
	again := (lead + 1) % 3 // its state lies in tables after that
	tr.shut(again)
	tr.open(again)
	for range 4 {
		busy()
		p.scrape()
	}
	looked := 0
	for name, d := range dashboards(t) {
		values := map[string]string{"__rate_interval": "1m"}
		for _, v := range d.Templating.List {
			values[v.Name] = p.resolve(v.Query)
			if v.Type == "query" && values[v.Name] == "" && v.Name != "cluster" { // nobody names the cluster here
				t.Errorf("%s: the variable %s has no value", name, v.Name)
			}
			if v.AllValue != "" { // all are chosen
				values[v.Name] = v.AllValue
			}
		}
		d.each(func(one panel) {
			for _, target := range one.Targets {
				looked++
				title := d.Title + ": " + one.Title
				n := p.shows(title, put(target.Expr, values))
				if why := unshown[title]; n == 0 && why == "" {
					t.Errorf("%s: nothing: %s", title, put(target.Expr, values))
				} else if n > 0 && why != "" {
					t.Errorf("%s shows something, for all that %s", title, why)
				}
			}
		})
	}
	t.Logf("%d queries", looked)
}

var variable = regexp.MustCompile(`\$\{?(\w+)\}?`)

func put(expr string, values map[string]string) string {
	return variable.ReplaceAllStringFunc(expr, func(v string) string { return values[variable.FindStringSubmatch(v)[1]] })
}

var labelValues = regexp.MustCompile(`^label_values\((\w+)(?:\{[^}]*\})?, *(\w+)\)$`)

// resolve is what Grafana makes of a variable whose values are all chosen.
func (p *prometheus) resolve(query string) string {
	m := labelValues.FindStringSubmatch(query)
	if m == nil {
		return query
	}
	found := map[string]bool{}
	for _, one := range p.of.all {
		if one.of.Get("__name__") == m[1] {
			found[one.of.Get(m[2])] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), "|")
}

// shows is how many series of an expression have a number.
func (p *prometheus) shows(title, expr string) (n int) {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.of, nil, expr, p.at)
	if err != nil {
		p.t.Errorf("%s: %v", title, err)
		return 0
	}
	defer q.Close()
	vector, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Errorf("%s: %v", title, err)
	}
	for _, s := range vector {
		if !math.IsNaN(s.F) {
			n++
		}
	}
	return n
}
