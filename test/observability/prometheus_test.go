package observability

import (
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	engine "github.com/prometheus/prometheus/promql"
)

// patience bounds what would otherwise hang.
const patience = 2 * time.Minute

// Alerts are caused in seconds, not in minutes: a scrape is made each pace instead of each
// minute, and how long an expression has to hold shrinks with that.
const (
	pace  = 100 * time.Millisecond
	hurry = float64(pace) / float64(time.Minute)
)

// prometheus scrapes nodes and evaluates all rules after each scrape as the real one does:
// what is not shown any more ends at once.
type prometheus struct {
	t       *testing.T
	of      *series
	targets map[string]string // instance → URL of its metrics
	last    map[string]map[string]labels.Labels
	ahead   atomic.Int64 // how much later than here it is there
	client  *http.Client
	engine  *engine.Engine
	rules   []rule
	active  map[string]actives
	at      time.Time // of the last scrape
}

func watch(t *testing.T) *prometheus {
	p := &prometheus{t: t, of: newSeries(), targets: map[string]string{}, last: map[string]map[string]labels.Labels{},
		engine: newEngine(), rules: alerts(t), active: map[string]actives{},
		client: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	t.Cleanup(func() { _ = p.engine.Close() })
	return p
}

// now is the time there.
func (p *prometheus) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

// later lets time pass in which nothing happens.
func (p *prometheus) later(d time.Duration) {
	p.ahead.Add(int64(d))
	p.scrape()
}

// shorten has a rule look back and hold as many times less, for what takes as long as it says.
func (p *prometheus) shorten(name string, times int) {
	i := p.index(name)
	p.rules[i].expr = shortened(p.t, p.rules[i].expr, times)
}

func (p *prometheus) index(name string) int {
	i := slices.IndexFunc(p.rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		p.t.Helper()
		p.t.Fatalf("there is no alert %s", name)
	}
	return i
}

func (p *prometheus) scrape() {
	p.at = p.now()
	for instance, url := range p.targets {
		samples, err := p.read(url + "/metrics")
		up := 1.0
		if err != nil {
			up = 0
		}
		there := map[string]labels.Labels{}
		put := func(of labels.Labels, v float64) {
			there[of.String()] = of
			p.of.put(of, p.at, v)
		}
		for _, s := range samples {
			b := labels.NewBuilder(labels.EmptyLabels())
			for name, v := range s.Metric {
				b.Set(string(name), string(v))
			}
			b.Set("job", "mneme").Set("instance", instance)
			put(b.Labels(), float64(s.Value))
		}
		put(labels.FromStrings(labels.MetricName, "up", "job", "mneme", "instance", instance), up)
		for key, of := range p.last[instance] {
			if _, ok := there[key]; !ok {
				p.of.put(of, p.at, math.Float64frombits(value.StaleNaN))
			}
		}
		p.last[instance] = there
	}
	for _, r := range p.rules {
		p.active[r.name] = r.step(p.t, p.engine, p.of, p.at, p.active[r.name])
	}
}

// forget ends a target, as service discovery does.
func (p *prometheus) forget(instance string) {
	delete(p.targets, instance)
	for _, of := range p.last[instance] {
		p.of.put(of, p.now(), math.Float64frombits(value.StaleNaN))
	}
	delete(p.last, instance)
}

func (p *prometheus) read(url string) (out model.Vector, err error) {
	resp, err := p.client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	dec := &expfmt.SampleDecoder{Dec: expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header)), Opts: &expfmt.DecodeOptions{Timestamp: model.Now()}}
	for {
		var v model.Vector
		if err := dec.Decode(&v); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
}

// value is what a node shows of a metric, and whether it shows it.
func (p *prometheus) value(url, name string) (float64, bool) {
	p.t.Helper()
	samples, err := p.read(url + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range samples {
		if string(s.Metric[model.MetricNameLabel]) == name {
			return float64(s.Value), true
		}
	}
	return 0, false
}

// firing are the alerts that fire after the last scrape.
func (p *prometheus) firing() (out []string) {
	for _, r := range p.rules {
		if p.active[r.name].lasted(p.at) >= time.Duration(math.Round(float64(r.lasts)*hurry)) {
			out = append(out, r.name)
		}
	}
	return out
}

// await scrapes until something holds.
func (p *prometheus) await(what string, holds func() bool) {
	p.t.Helper()
	began := time.Now()
	give := began.Add(patience)
	defer func() {
		if took := time.Since(began); took > 3*time.Second {
			p.t.Logf("%s took %s", what, took.Round(time.Second))
		}
	}()
	for p.scrape(); !holds(); p.scrape() {
		if time.Now().After(give) {
			p.t.Fatalf("%s: it is not so; what fires: %v", what, p.firing())
		}
		time.Sleep(pace) // as Prometheus does between two scrapes
	}
}

// fired scrapes until all of these alerts fire at once.
func (p *prometheus) fired(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.index(name)
	}
	p.await(strings.Join(names, ", ")+" to fire", func() bool {
		firing := p.firing()
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(firing, name) })
	})
	p.t.Logf("%v fires; so do %v", names, without(p.firing(), names))
}

// quiet scrapes until none of these alerts is even pending.
func (p *prometheus) quiet(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.index(name)
	}
	loud := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(p.active[name]) == 0 })
	}
	p.scrape()
	what := fmt.Sprintf("%v to be quiet", loud())
	p.await(what, func() bool { return len(loud()) == 0 })
}

// timed are alerts that a busy machine may cause all by itself.
var timed = []string{"MnemeCapturesSlow", "MnemeSearchesSlow", "MnemeStoreStalls"}

// healthy scrapes until no alert is even pending, but those that a test names.
func (p *prometheus) healthy(but ...string) {
	p.t.Helper()
	p.quiet(without(p.names(), slices.Concat(timed, but))...)
}

// recovers is healthy once what counted before is long past. Something may count yet after an
// hour has passed, such as what a flood left in buffers: then it takes another hour.
func (p *prometheus) recovers(but ...string) {
	p.t.Helper()
	names := without(p.names(), slices.Concat(timed, but))
	loud := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(p.active[name]) == 0 })
	}
	p.await("the node to recover", func() bool {
		p.later(time.Hour)
		return len(loud()) == 0
	})
}

func (p *prometheus) names() (out []string) {
	for _, r := range p.rules {
		out = append(out, r.name)
	}
	return out
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(some, name) })
}
