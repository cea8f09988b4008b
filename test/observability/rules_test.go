package observability

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// rule is an alert of deploy/observability/alerts.yaml.
type rule struct {
	name, expr          string
	lasts               time.Duration
	labels, annotations map[string]string
}

func alerts(t *testing.T) (out []rule) {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, "deploy", "observability", "alerts.yaml")), false, model.UTF8Validation, promql, nil)
	for _, err := range errs {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			out = append(out, rule{r.Alert, r.Expr, time.Duration(r.For), r.Labels, r.Annotations})
		}
	}
	return out
}

// series keeps samples as Prometheus would, in memory. It implements storage.Queryable and
// storage.Querier.
type series struct {
	mu  sync.Mutex
	all map[string]*one
}

type one struct {
	of      labels.Labels
	samples []chunks.Sample
}

func newSeries() *series { return &series{all: map[string]*one{}} }

func (s *series) put(of labels.Labels, at time.Time, v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := of.String()
	if s.all[key] == nil {
		s.all[key] = &one{of: of}
	}
	s.all[key].samples = append(s.all[key].samples, point{at.UnixMilli(), v})
}

type point struct {
	t int64
	v float64
}

func (p point) T() int64                      { return p.t }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.v }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

func (s *series) Querier(int64, int64) (storage.Querier, error) { return s, nil }

func (s *series) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out found
	for _, one := range s.all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.of.Get(m.Name)) }) {
			out.all = append(out.all, storage.NewListSeries(one.of, one.samples))
		}
	}
	return &out
}

func (s *series) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (s *series) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (s *series) Close() error { return nil }

type found struct {
	all []storage.Series
	at  int
}

func (f *found) Next() bool                        { f.at++; return f.at <= len(f.all) }
func (f *found) At() storage.Series                { return f.all[f.at-1] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

func newEngine() *engine.Engine {
	return engine.NewEngine(engine.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promql})
}

// actives are the series for which the expression of a rule holds, and since when.
type actives map[string]time.Time

// lasted is how long it has held for one of them, -1 if for none.
func (a actives) lasted(at time.Time) time.Duration {
	longest := time.Duration(-1)
	for _, since := range a {
		longest = max(longest, at.Sub(since))
	}
	return longest
}

// step evaluates a rule after a scrape.
func (r rule) step(t *testing.T, ng *engine.Engine, of *series, at time.Time, before actives) actives {
	t.Helper()
	q, err := ng.NewInstantQuery(t.Context(), of, nil, r.expr, at)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(t.Context())
	if res.Err != nil {
		t.Fatalf("%s: %v", r.name, res.Err)
	}
	vector, err := res.Vector()
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	now := actives{}
	for _, s := range vector {
		key := s.Metric.String()
		if now[key] = at; !before[key].IsZero() {
			now[key] = before[key]
		}
	}
	return now
}

// shortened is an expression that looks back as many times less.
func shortened(t *testing.T, expr string, times int) string {
	t.Helper()
	e, err := promql.ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if m, ok := n.(*parser.MatrixSelector); ok {
			m.Range /= time.Duration(times)
		}
		return nil
	})
	return e.String()
}

// fires evaluates a rule each minute, and returns the labels of what fires at the end.
func fires(t *testing.T, r rule, of *series, from, to time.Time) (firing []string) {
	t.Helper()
	ng := newEngine()
	defer ng.Close()
	var active actives
	for at := from; !at.After(to); at = at.Add(time.Minute) {
		active = r.step(t, ng, of, at, active)
	}
	for key, since := range active {
		if to.Sub(since) >= r.lasts {
			firing = append(firing, key)
		}
	}
	return firing
}

// story is what a metric does, minute by minute. Where it is NaN there is no sample.
type story map[string]func(minute int) float64

func always(v float64) func(int) float64 { return func(int) float64 { return v } }
func rising(by float64) func(int) float64 {
	return func(i int) float64 { return by * float64(i) }
}

const (
	day     = 86400
	minutes = 90 // that a story takes
)

// start is when stories begin.
var start = time.Unix(1_800_000_000, 0)

// until is a metric that is there for some minutes only.
func until(last int, v float64) func(int) float64 {
	return func(i int) float64 {
		if i > last {
			return math.NaN()
		}
		return v
	}
}

// tell returns the labels of what fires when a story has been told.
func tell(t *testing.T, r rule, told story) []string {
	t.Helper()
	samples := newSeries()
	for name, value := range told {
		of, err := promql.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []time.Time{start.Add(-3 * 24 * time.Hour), start} { // there were samples then, too
			for i := range minutes + 1 {
				if v := value(i); !math.IsNaN(v) {
					samples.put(of, from.Add(time.Duration(i)*time.Minute), v)
				}
			}
		}
	}
	return fires(t, r, samples, start, start.Add(minutes*time.Minute))
}

// stories are those on which each alert fires, and those, close to them, on which it keeps quiet.
func stories() map[string][2]story {
	const of, two = `{job="mneme",instance="n1",shard="0"}`, `{job="mneme",instance="n2",shard="0"}`
	const node = `{job="mneme",instance="n1"}`
	buckets := func(name, label string, slow float64) story {
		s := story{}
		for _, le := range []string{"0.512", "1.024", "2.048", "+Inf"} {
			by := 100.0
			if le == "0.512" || le == "1.024" {
				by -= slow
			}
			s[name+`{job="mneme",instance="n1",`+label+`,le="`+le+`"}`] = rising(by)
		}
		return s
	}
	flagged := func(name, of string) [2]story { return [2]story{{name + of: always(1)}, {name + of: always(0)}} }
	cases := map[string][2]story{
		"MnemeNodeDown":     {{"up" + node: always(0)}, {"up" + node: always(1), `up{job="other",instance="n1"}`: always(0)}},
		"MnemeNotScraped":   {{`up{job="other",instance="n1"}`: always(1)}, {"up" + node: always(0)}},
		"MnemeNodeMissing":  {group(3, 1, 1), group(3, 1, 1, 1)},
		"MnemeNodeRestarts": {{"process_start_time_seconds" + node: func(i int) float64 { return float64(i / 10) }}, {"process_start_time_seconds" + node: func(i int) float64 { return float64(i / 30) }}},
		"MnemeNodeNotReady": {{"mneme_ready" + node: always(0)}, {"mneme_ready" + node: always(1)}},
		"MnemeDiskLow":      {{"mneme_disk_free_bytes" + node: always(3e8), "mneme_disk_reserve_bytes" + node: always(2.6e8)}, {"mneme_disk_free_bytes" + node: always(3e9), "mneme_disk_reserve_bytes" + node: always(2.6e8)}},
		"MnemeDiskFull":     {{"mneme_disk_free_bytes" + node: always(2e8), "mneme_disk_reserve_bytes" + node: always(2.6e8)}, {"mneme_disk_free_bytes" + node: always(3e8), "mneme_disk_reserve_bytes" + node: always(2.6e8)}},
		"MnemeDiskFills":    {falling(100e9, 80e6), falling(100e9, 20e6)},
		"MnemeMemoryHigh":   {{"process_resident_memory_bytes" + node: always(1.9e9), "mneme_memory_limit_bytes" + node: always(2e9)}, {"process_resident_memory_bytes" + node: always(1.7e9), "mneme_memory_limit_bytes" + node: always(2e9)}},
		"MnemeCertificateEnds": {{`mneme_certificate_expires_timestamp_seconds{job="mneme",instance="n1",for="nodes"}`: inDays(10)},
			{`mneme_certificate_expires_timestamp_seconds{job="mneme",instance="n1",for="nodes"}`: inDays(20)}},
		"MnemeCertificateEnded": {{`mneme_certificate_expires_timestamp_seconds{job="mneme",instance="n1",for="nodes"}`: inDays(-1)},
			{`mneme_certificate_expires_timestamp_seconds{job="mneme",instance="n1",for="nodes"}`: inDays(3)}},
		"MnemeClockRefused": flagged("mneme_clock_refused", node),
		"MnemeErasureStuck": {{"mneme_erasing" + node: always(1), "mneme_erasing_since_timestamp_seconds" + node: always(float64(start.Unix() - 7200))},
			{"mneme_erasing" + node: always(0), "mneme_erasing_since_timestamp_seconds" + node: always(0)}},
		"MnemeMessagesDropped": {{"mneme_nats_dropped_total" + node: rising(1)}, {"mneme_nats_dropped_total" + node: always(7)}},
		"MnemeShardWithoutLeader": {{"mneme_shard_leader" + of: always(0), "mneme_shard_leader" + two: always(0)},
			{"mneme_shard_leader" + of: always(0), "mneme_shard_leader" + two: always(1)}},
		"MnemeWritesStopped": flagged("mneme_writes_stopped", of),
		"MnemeShardHalted":   flagged("mneme_shard_halted", of),
		"MnemeLogDiverged":   flagged("mneme_log_diverged", of),
		"MnemeLogDamaged": {{"mneme_log_scrub_problem" + of: always(0), "mneme_log_lost_messages" + of: always(2)},
			{"mneme_log_scrub_problem" + of: always(0), "mneme_log_lost_messages" + of: always(0)}},
		"MnemeLogCopyDamaged": flagged("mneme_log_copy_problem", node),
		"MnemeNodeBuiltAnew":  {{"mneme_data_set_aside_timestamp_seconds" + node: inDays(-0.5)}, {"mneme_data_set_aside_timestamp_seconds" + node: always(0)}},
		"MnemeLogUnreachable": {{"mneme_log_up" + of: always(0)}, {"mneme_log_up" + of: always(1)}},
		"MnemeLogNotRead": {{"mneme_log_scrub_finished_timestamp_seconds" + of: inDays(-5), "mneme_log_scrub_finished_timestamp_seconds" + two: always(0)},
			{"mneme_log_scrub_finished_timestamp_seconds" + of: inDays(-1), "mneme_log_scrub_finished_timestamp_seconds" + two: always(0)}},
		"MnemeLogCopyMissing": {{"mneme_log_copies_current" + of: always(2), "mneme_log_copies_current" + two: always(2), "mneme_log_copies_wanted" + of: always(3)},
			{"mneme_log_copies_current" + of: func(i int) float64 { return float64(2 + i%2) }, "mneme_log_copies_wanted" + of: always(3)}}, // it is behind for moments
		"MnemeForeignFrames":  {{"mneme_log_void_frames_total" + of: rising(1)}, {"mneme_log_void_frames_total" + of: always(3)}},
		"MnemeReplicaBehind":  {{"mneme_raft_applied_index" + of: always(5000), "mneme_raft_applied_index" + two: always(10)}, {"mneme_raft_applied_index" + of: always(5000), "mneme_raft_applied_index" + two: always(4900)}},
		"MnemeLeaderChanges":  {{"mneme_raft_leader_changes_total" + of: rising(1)}, {"mneme_raft_leader_changes_total" + of: rising(0.1)}},
		"MnemeStateBuiltAnew": {{"mneme_state_set_aside_timestamp_seconds" + of: inDays(-0.5)}, {"mneme_state_set_aside_timestamp_seconds" + of: always(0)}},
		"MnemeStoreFaults":    {{"mneme_store_background_faults_total" + of: rising(1)}, {"mneme_store_background_faults_total" + of: always(1)}},
		"MnemeStoreStalls":    {{"mneme_store_write_stall_seconds_total" + of: rising(60)}, {"mneme_store_write_stall_seconds_total" + of: rising(1)}},
		"MnemeQueueFull":      {{"mneme_queue_items" + of: always(19000), "mneme_queue_limit_items" + of: always(20000)}, {"mneme_queue_items" + of: always(900), "mneme_queue_limit_items" + of: always(20000)}},
		"MnemeCapturesFail": {{`mneme_capture_errors_total{job="mneme",instance="n1",code="overloaded"}`: rising(60)},
			{`mneme_capture_errors_total{job="mneme",instance="n1",code="invalid"}`: rising(600)}},
		"MnemeCapturesSlow": {buckets("mneme_capture_duration_seconds_bucket", `wait="applied"`, 10), buckets("mneme_capture_duration_seconds_bucket", `wait="applied"`, 0)},
		"MnemeSearchesFail": {{`mneme_search_errors_total{job="mneme",instance="n1",code="internal"}`: rising(60)},
			{`mneme_search_errors_total{job="mneme",instance="n1",code="not_found"}`: rising(600)}},
		"MnemeSearchesSlow":  {buckets("mneme_search_duration_seconds_bucket", `mode="hybrid"`, 10), buckets("mneme_search_duration_seconds_bucket", `mode="hybrid"`, 0)},
		"MnemeEmbedderFails": {{"mneme_backfill_failing_namespaces" + of: always(2)}, {"mneme_backfill_failing_namespaces" + of: always(0)}},
		"MnemeRecallTooLow": {{`mneme_vector_guard_tripped{job="mneme",instance="n1",engine="coder"}`: always(1)},
			{`mneme_vector_guard_tripped{job="mneme",instance="n1",engine="coder"}`: always(0)}},
	}
	maps.Copy(cases, map[string][2]story{
		"MnemeBackupOld":   {cron("kube_cronjob_status_last_successful_time", "mneme-backup", 3), cron("kube_cronjob_status_last_successful_time", "mneme-backup", 1)},
		"MnemeBackupFails": {job("mneme-backup-29000000", 0.5, 1), job("mneme-backup-29000000", 2, 1)},
		"MnemeDrillFails":  {job("mneme-backup-drill-29000000", 3, 1), job("mneme-backup-drill-29000000", 3, 0)},
	})
	return cases
}

// inDays is a time that many days after the start.
func inDays(days float64) func(int) float64 { return always(float64(start.Unix()) + days*day) }

// falling is the free space of a disk that falls by so many bytes a minute.
func falling(from, by float64) story {
	return story{`mneme_disk_free_bytes{job="mneme",instance="n1"}`: func(i int) float64 { return from - by*float64(i) },
		`mneme_disk_reserve_bytes{job="mneme",instance="n1"}`: always(2.6e8)}
}

// job and cron are what kube-state-metrics shows.
func job(name string, age, failed float64) story {
	return story{`kube_job_failed{namespace="agents",condition="true",job_name="` + name + `"}`: always(failed), `kube_job_created{namespace="agents",job_name="` + name + `"}`: inDays(-age)}
}

func cron(metric, name string, age float64) story {
	return story{metric + `{namespace="agents",cronjob="` + name + `"}`: inDays(-age)}
}

// TestAlertsFireAndKeepQuiet has each alert fire on what it is for, and keep quiet on what is
// close to that.
func TestAlertsFireAndKeepQuiet(t *testing.T) {
	further := []struct {
		alert string
		fires bool
		told  story
	}{
		{"MnemeBackupOld", true, cron("kube_cronjob_created", "team-a-backup", 3)}, // it never succeeded
		{"MnemeBackupOld", false, merged(cron("kube_cronjob_created", "backup", 30), cron("kube_cronjob_status_last_successful_time", "backup", 1))},
		{"MnemeBackupOld", false, cron("kube_cronjob_status_last_successful_time", "backup-of-others", 30)},
		{"MnemeBackupFails", false, job("mneme-backup-drill-29000000", 0.5, 1)},
		{"MnemeBackupFails", false, job("mneme-backup-verify-29000000", 0.5, 1)},
		{"MnemeBackupFails", true, job("mneme-backup-full-29000000", 0.5, 1)},
		{"MnemeBackupFails", true, job("mneme-backup-prune-29000000", 0.5, 1)},
		{"MnemeBackupFails", true, job("mneme-backup-older-29000000", 0.5, 1)}, // an older one is bad: no alarm by night
		{"MnemeDrillFails", false, job("mneme-backup-older-29000000", 0.5, 1)},
		{"MnemeDrillFails", true, job("mneme-backup-verify-29000000", 0.5, 1)},
		{"MnemeDrillFails", false, job("mneme-backup-29000000", 0.5, 1)},
		{"MnemeCapturesFail", true, story{`mneme_rejected_total{job="mneme",instance="n1",code="unavailable"}`: rising(60), `mneme_capture_errors_total{job="mneme",instance="n1",code="unavailable"}`: always(0)}},
		{"MnemeCapturesFail", false, story{`mneme_rejected_total{job="mneme",instance="n1",code="invalid"}`: rising(60)}},
		{"MnemeSearchesFail", true, story{`mneme_http_requests_total{job="mneme",instance="n1",route="/v1/namespaces/{ns}/search",method="POST",status="429"}`: rising(60)}},
		{"MnemeSearchesFail", false, story{`mneme_http_requests_total{job="mneme",instance="n1",route="/v1/namespaces/{ns}/events",method="POST",status="429"}`: rising(60)}},
		{"MnemeLogNotRead", true, story{`mneme_log_scrub_finished_timestamp_seconds{job="mneme",instance="n1",shard="0"}`: always(0)}},
		{"MnemeDiskFills", false, merged(falling(100e9, 0), story{`mneme_disk_free_bytes{job="mneme",instance="n1"}`: func(i int) float64 { // much was written once
			if i > 10 {
				return 50e9
			}
			return 100e9
		}})},
		{"MnemeLogNotRead", true, story{`mneme_log_copy_checked_timestamp_seconds{job="mneme",instance="n1"}`: inDays(-4)}},
		{"MnemeLogNotRead", false, story{`mneme_log_copy_checked_timestamp_seconds{job="mneme",instance="n1"}`: always(0)}}, // it keeps none
		{"MnemeLogNotRead", false, story{`mneme_log_copy_checked_timestamp_seconds{job="mneme",instance="n1"}`: inDays(-1)}},
		{"MnemeNodeMissing", true, group(3, 1, 1, 0)},                                            // its target is there, it does not answer
		{"MnemeNodeMissing", false, group(3, 1, 1, 1, 1)},                                        // a fourth one does not vote yet
		{"MnemeNodeMissing", false, merged(group(2, 1, 1), story{`up{job="other"}`: always(1)})}, // one was removed
		{"MnemeNodeMissing", false, merged(group(3, 1, 1), story{`up{job="mneme",instance="n3"}`: func(i int) float64 { // it was moved
			if i > 80 && i < 86 {
				return 0
			}
			return 1
		}})},
		{"MnemeNotScraped", true, story{`up{job="mneme",instance="n1"}`: until(70, 1)}},
		{"MnemeNotScraped", false, merged(story{`up{job="mneme",instance="n1"}`: until(70, 1)}, group(1, 0, 1))},
	}
	cases := stories()
	for _, f := range further {
		all := alerts(t)
		r := all[slices.IndexFunc(all, func(r rule) bool { return r.name == f.alert })]
		if got := len(tell(t, r, f.told)) > 0; got != f.fires {
			t.Errorf("%s: fires %v, on %v", r.name, got, slices.Collect(maps.Keys(f.told)))
		}
	}
	for _, r := range alerts(t) {
		c, ok := cases[r.name]
		if !ok {
			t.Errorf("%s has no case", r.name)
		}
		delete(cases, r.name)
		for quiet, told := range c {
			if got := len(tell(t, r, told)) > 0; got == (quiet == 1) {
				t.Errorf("%s: fires %v, on %v", r.name, got, slices.Collect(maps.Keys(told)))
			}
		}
	}
	for name := range cases {
		t.Errorf("there is no alert %s", name)
	}
}

// group is a Raft group of so many voters, of which these are targets that answer, or do not.
func group(voters float64, up ...float64) story {
	out := story{}
	for i, v := range up {
		node := fmt.Sprintf(`{job="mneme",instance="n%d"`, i+1)
		out["up"+node+"}"] = always(v)
		if v == 1 {
			out["mneme_raft_voters"+node+`,shard="0"}`] = always(voters)
		}
	}
	return out
}

func merged(some ...story) story {
	out := story{}
	for _, s := range some {
		maps.Copy(out, s)
	}
	return out
}
