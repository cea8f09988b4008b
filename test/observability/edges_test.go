package observability

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// course is what an alert measures, minute by minute, and when the alert fires on it: its
// threshold lies between quiet and fires, and how long it looks back and waits shows in the
// minutes from and to.
type course struct {
	told         func(v level) story
	quiet, fires []float64
	well, sick   float64
	ill          [2]int // the minutes in which it is sick; 30 to 150 if nothing is said
	from, to     int    // the first and the last minute in which it fires; none if both are 0
	before       int    // the minutes of which there are samples before the first; 60 if nothing is said
	length       int    // 240 if nothing is said
}

// level is what is measured in a minute: of a gauge what it shows, of a counter by how much it grows.
type level = func(minute int) float64

// grows is a counter that grows by v in each minute.
func grows(v level) func(int) float64 {
	sums := map[int]float64{}
	return func(i int) (sum float64) {
		if was, ok := sums[i-1]; ok {
			sums[i] = was + v(i)
			return sums[i]
		}
		for k := -6 * 60; k <= i; k++ {
			sum += v(k)
		}
		sums[i] = sum
		return sum
	}
}

// ago is a time that lies v units back in each minute.
func ago(v level, unit time.Duration) func(int) float64 {
	return func(i int) float64 { return float64(start.Unix()+int64(i)*60) - v(i)*unit.Seconds() }
}

func times(v level, by float64) func(int) float64 {
	return func(i int) float64 { return v(i) * by }
}

// minutesFiring tells a course, and returns the minutes in which the alert fires and the labels
// that it fires with.
func (c course) minutesFiring(t *testing.T, r rule, v level) (out []int, with map[string]bool) {
	t.Helper()
	samples := newSeries()
	for name, value := range c.told(v) {
		of, err := promql.ParseMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := -c.before; i <= c.length; i++ {
			if x := value(i); !math.IsNaN(x) {
				samples.put(of, start.Add(time.Duration(i)*time.Minute), x)
			}
		}
	}
	ng, active := newEngine(), actives(nil)
	defer ng.Close()
	with = map[string]bool{}
	for i := range c.length + 1 {
		at := start.Add(time.Duration(i) * time.Minute)
		active = r.step(t, ng, samples, at, active)
		if active.lasted(at) >= r.lasts {
			out = append(out, i)
			for key := range active {
				with[key] = true
			}
		}
	}
	return out, with
}

func (c course) withDefaults() course {
	if c.before == 0 {
		c.before = 60
	}
	if c.length == 0 {
		c.length = 240
	}
	if c.ill == [2]int{} {
		c.ill = [2]int{30, 150}
	}
	return c
}

// courses are those of each alert. Where one is like another in its threshold or in how it waits,
// only what is left is told.
func courses() map[string][]course {
	const one, two = `{job="mneme",instance="n1"}`, `{job="mneme",instance="n2"}`
	const shard, shard2 = `{job="mneme",instance="n1",shard="0"}`, `{job="mneme",instance="n2",shard="0"}`
	is := func(name string) func(level) story { return func(v level) story { return story{name: v} } }
	held := func(told func(level) story, quiet, fires float64, waits int) course { // of a gauge, which is seen at once
		return course{told: told, quiet: []float64{quiet}, fires: []float64{fires}, well: quiet, sick: fires, from: 30 + waits, to: 149}
	}
	once := func(name string, to int) []course { // one is enough
		return []course{{told: func(v level) story { return story{name: grows(v)} }, quiet: []float64{0}, sick: 1, ill: [2]int{30, 31}, from: 30, to: to}}
	}
	disk := func(v level) story {
		return story{"mneme_disk_free_bytes" + one: times(v, 256<<20), "mneme_disk_reserve_bytes" + one: always(256 << 20)}
	}
	fills := func(v level) story {
		lost := grows(v)
		return story{"mneme_disk_free_bytes" + one: func(i int) float64 { return 100e9 - lost(i) }, "mneme_disk_reserve_bytes" + one: always(256 << 20)}
	}
	ends := func(v level) story {
		return story{`mneme_certificate_expires_timestamp_seconds{job="mneme",instance="n1",for="nodes"}`: ago(times(v, -1), 24*time.Hour)}
	}
	since := func(name string, unit time.Duration) func(level) story {
		return func(v level) story { return story{name: ago(v, unit)} }
	}
	return map[string][]course{
		"MnemeNodeDown":   {held(is("up"+one), 1, 0, 2)},
		"MnemeNotScraped": notScraped(),
		"MnemeNodeMissing": {held(func(v level) story {
			return merged(group(3, 1, 1), story{`up{job="mneme",instance="n3"}`: v, `mneme_raft_voters{job="mneme",instance="n2",shard="0"}`: always(1)}) // it has not heard
		}, 1, 0, 10)},
		"MnemeNodeRestarts": {{told: func(v level) story { // in minute 30, 33, …
			return story{"process_start_time_seconds" + one: func(i int) float64 { return max(0, min(v(i), math.Floor(float64(i-27)/3))) }}
		}, quiet: []float64{3}, well: 4, sick: 4, from: 39, to: 88}},
		"MnemeNodeNotReady": {held(is("mneme_ready"+one), 1, 0, 5)},
		"MnemeDiskLow":      {held(disk, 4, 3.99, 5), {told: disk, quiet: []float64{0.99}, fires: []float64{1}}},
		"MnemeDiskFull":     {held(disk, 1, 0.99, 1)},
		"MnemeDiskFills": {{told: fills, quiet: []float64{50e6}, fires: []float64{51e6}, sick: 400e6, from: 176, to: 197, before: 360},
			{told: func(v level) story { // MnemeDiskLow tells of what is below four times the reserve
				return story{"mneme_disk_free_bytes" + one: func(i int) float64 { return v(i)*(256<<20) + 6e5*float64(240-i) }, "mneme_disk_reserve_bytes" + one: always(256 << 20)}
			}, quiet: []float64{3.55}, fires: []float64{4.02}, before: 360}},
		"MnemeMemoryHigh":       {held(memory(one), 0.9, 0.901, 5)},
		"MnemeCertificateEnds":  {held(ends, 14, 13.999, 60)},
		"MnemeCertificateEnded": {held(ends, 1, 0.999, 5)},
		"MnemeClockRefused":     {held(is("mneme_clock_refused"+one), 0, 1, 2)},
		"MnemeErasureStuck":     {held(erasing(one, 1), 3600, 3601, 5), {told: erasing(one, 0), quiet: []float64{7200}}},
		"MnemeMessagesDropped":  once("mneme_nats_dropped_total"+one, 38),
		"MnemeShardWithoutLeader": {held(func(v level) story {
			return story{"mneme_shard_leader" + shard: always(0), "mneme_shard_leader" + shard2: v}
		}, 1, 0, 1)},
		"MnemeWritesStopped":  {held(is("mneme_writes_stopped"+shard), 0, 1, 2)},
		"MnemeShardHalted":    {held(is("mneme_shard_halted"+shard), 0, 1, 1)},
		"MnemeLogDiverged":    {held(is("mneme_log_diverged"+shard), 0, 1, 0)},
		"MnemeLogDamaged":     {held(is("mneme_log_scrub_problem"+shard), 0, 1, 0), held(is("mneme_log_lost_messages"+shard), 0, 1, 0)},
		"MnemeLogCopyDamaged": {held(is("mneme_log_copy_problem"+one), 0, 1, 0)},
		"MnemeLogUnreachable": {held(is("mneme_log_up"+shard), 1, 0, 2)},
		"MnemeLogNotRead":     notRead(shard, one),
		"MnemeLogCopyMissing": {held(func(v level) story {
			return story{"mneme_log_copies_current" + shard: v, "mneme_log_copies_wanted" + shard: always(3),
				"mneme_log_copies_current" + shard2: always(0), "mneme_log_copies_wanted" + shard2: always(1)} // it knows nothing of it
		}, 3, 2, 15)},
		"MnemeForeignFrames": once("mneme_log_void_frames_total"+shard, 88),
		"MnemeReplicaBehind": {held(func(v level) story {
			return story{"mneme_raft_applied_index" + shard: times(v, 1), "mneme_raft_applied_index" + shard2: always(0)}
		}, 1000, 1001, 5)},
		"MnemeLeaderChanges": {{told: func(v level) story { return story{"mneme_raft_leader_changes_total" + shard: grows(v)} },
			quiet: []float64{0.33}, fires: []float64{0.34}, sick: 1, ill: [2]int{30, 40}, from: 35, to: 48}},
		"MnemeStateBuiltAnew": {held(since("mneme_state_set_aside_timestamp_seconds"+shard, time.Second), 86400, 86399, 0)},
		"MnemeNodeBuiltAnew":  {held(since("mneme_data_set_aside_timestamp_seconds"+one, time.Second), 86400, 86399, 0)},
		"MnemeStoreFaults":    once("mneme_store_background_faults_total"+shard, 43),
		"MnemeStoreStalls": {{told: func(v level) story { return story{"mneme_store_write_stall_seconds_total" + shard: grows(v)} },
			quiet: []float64{5.9}, fires: []float64{6.1}, sick: 60, from: 41, to: 157}},
		"MnemeQueueFull":     {held(queue(shard), 0.8, 0.801, 2)},
		"MnemeCapturesFail":  fails("mneme_capture_errors_total", "overloaded,unavailable,no_space,log_diverged,outcome_unknown,timeout,internal", "mneme_rejected_total", "overloaded,unavailable"),
		"MnemeSearchesFail":  append(fails("mneme_search_errors_total", "overloaded,unavailable,timeout,internal", "", ""), refused()...),
		"MnemeCapturesSlow":  slow("mneme_capture_duration_seconds_bucket", `wait="applied"`, `wait="accepted"`),
		"MnemeSearchesSlow":  slow("mneme_search_duration_seconds_bucket", `mode="text"`, ""),
		"MnemeEmbedderFails": {held(is("mneme_backfill_failing_namespaces"+shard), 0, 1, 10)},
		"MnemeRecallTooLow":  {held(is(`mneme_vector_guard_tripped{job="mneme",instance="n1",engine="coder"}`), 0, 1, 10)},
		"MnemeBackupOld": {held(since(`kube_cronjob_status_last_successful_time{namespace="agents",cronjob="mneme-backup"}`, time.Hour), 26, 26.001, 10),
			held(since(`kube_cronjob_created{namespace="agents",cronjob="mneme-backup"}`, time.Hour), 26, 26.001, 10)},
		"MnemeBackupFails": {held(failed("mneme-backup-29000000"), 86400, 86399, 0), {told: failed("mneme-backup-verify-29000000"), quiet: []float64{0}}},
		"MnemeDrillFails":  {held(failed("mneme-backup-drill-29000000"), 7*86400, 7*86400-1, 0), {told: failed("mneme-backup-29000000"), quiet: []float64{0}}},
	}
}

// memory is a process that has taken a share of its limit.
func memory(of string) func(level) story {
	return func(v level) story {
		return story{"process_resident_memory_bytes" + of: times(v, 2e9), "mneme_memory_limit_bytes" + of: always(2e9)}
	}
}

// queue is a queue of which a share is taken.
func queue(of string) func(level) story {
	return func(v level) story {
		return story{"mneme_queue_items" + of: times(v, 20000), "mneme_queue_limit_items" + of: always(20000)}
	}
}

// erasing has begun so many seconds ago.
func erasing(of string, now float64) func(level) story {
	return func(v level) story {
		return story{"mneme_erasing" + of: always(now), "mneme_erasing_since_timestamp_seconds" + of: ago(v, time.Second)}
	}
}

// failed is a job that was made so many seconds ago.
func failed(name string) func(level) story {
	return func(v level) story {
		return story{`kube_job_failed{namespace="agents",condition="true",job_name="` + name + `"}`: always(1), `kube_job_created{namespace="agents",job_name="` + name + `"}`: ago(v, time.Second)}
	}
}

// notScraped: the last sample is believed for five minutes; beside another cluster it is missed for six hours.
func notScraped() []course {
	there := func(of string) func(level) story {
		return func(v level) story {
			return story{"up" + of: func(i int) float64 {
				if v(i) == 0 {
					return math.NaN()
				}
				return 1
			}}
		}
	}
	return []course{
		{told: there(`{job="mneme",instance="n1"}`), quiet: []float64{1}, fires: []float64{0}, well: 1, from: 39, to: 149},
		{told: func(v level) story {
			return merged(there(`{job="mneme",cluster="a",instance="n1"}`)(v), story{`up{job="mneme",cluster="b",instance="n1"}`: always(1)})
		}, quiet: []float64{1}, well: 1, ill: [2]int{30, 1000}, from: 39, to: 388, length: 420},
	}
}

// notRead: the log was read so many days ago, was never read since the node began, was read before a restart;
// and a node's own copy.
func notRead(shard, one string) []course {
	const finished, days = "mneme_log_scrub_finished_timestamp_seconds", 24 * time.Hour
	since := func(v level) story { return story{finished + shard: ago(v, days)} }
	once := func(minutes float64, more func(i int) float64) func(level) story {
		return func(level) story {
			return story{finished + shard: func(i int) float64 { return more(i) * (float64(start.Unix()) - minutes*60) }}
		}
	}
	never := func(v level) story {
		return story{finished + shard: func(i int) float64 {
			if float64(i) < -v(i)*1440 {
				return math.NaN()
			}
			return 0
		}}
	}
	own := func(v level) story { return story{"mneme_log_copy_checked_timestamp_seconds" + one: ago(v, days)} }
	return []course{
		{told: since, quiet: []float64{3}, fires: []float64{3.001}, before: 4600},
		{told: once(3*1440-30, always(1)), from: 91, to: 240, before: 4600},
		{told: never, quiet: []float64{2.8}, fires: []float64{3.01}, before: 4600},
		{told: once(2.5*1440, func(i int) float64 { return float64(min(1, max(0, -2000-i))) }), quiet: []float64{0}, before: 4600},
		{told: own, quiet: []float64{3}, fires: []float64{3.001}, well: 1, sick: 4, from: 90, to: 149},
	}
}

// everyCode are the codes of errors that a request may end with.
var everyCode = strings.Split("invalid,unauthenticated,forbidden,not_found,conflict,stale_position,lost_position,gone,too_large,quota,overloaded,unavailable,log_diverged,no_space,outcome_unknown,timeout,internal", ",")

// fails counts failures by their codes, of two nodes: those of the node's count, at six a minute.
func fails(name, codes, other, others string) (out []course) {
	for _, counted := range [][2]string{{name, codes}, {other, others}} {
		if counted[0] == "" {
			continue
		}
		for _, code := range everyCode {
			c := course{told: func(v level) story {
				half := times(v, 0.5)
				return story{counted[0] + `{job="mneme",instance="n1",code="` + code + `"}`: grows(half), counted[0] + `{job="mneme",instance="n2",code="` + code + `"}`: grows(half)}
			}}
			if slices.Contains(strings.Split(counted[1], ","), code) {
				c.quiet, c.fires, c.sick, c.from, c.to = []float64{5.9}, []float64{6.1}, 60, 35, 152
			} else {
				c.quiet = []float64{600}
			}
			out = append(out, c)
		}
	}
	return out
}

// refused are searches that are answered by 429 before they are one, and what else is answered.
func refused() (out []course) {
	for route, counts := range map[string]bool{"/v1/search": true, "/v1/namespaces/{ns}/search": true, "/v1/namespaces/{ns}/records": false, "/v1/namespaces/{ns}/search/x": false} {
		for status, counted := range map[string]bool{"429": true, "200": false, "400": false, "503": false} {
			c := course{told: func(v level) story {
				return story{`mneme_http_requests_total{job="mneme",instance="n1",route="` + route + `",method="POST",status="` + status + `"}`: grows(v)}
			}}
			if counts && counted {
				c.quiet, c.fires, c.sick, c.from, c.to = []float64{5.9}, []float64{6.1}, 60, 35, 152
			} else {
				c.quiet = []float64{600}
			}
			out = append(out, c)
		}
	}
	return out
}

// slow is a histogram of which a share takes more than 1.024 seconds, all of it on one of two nodes, and one of which a share takes less
// than 0.512 and the rest less than 1.024; other is a label that does not count.
func slow(name, label, other string) []course {
	told := func(label string, up ...func(v float64) float64) func(level) story {
		return func(v level) story {
			s := story{}
			for i, le := range []string{"0.512", "1.024", "2.048", "+Inf"} {
				of := func(share float64) float64 { return up[min(i, len(up)-1)](share) }
				s[name+`{job="mneme",instance="n1",`+label+`,le="`+le+`"}`] = grows(func(m int) float64 { return 50 * (2*of(v(m)) - of(0)) })
				s[name+`{job="mneme",instance="n2",`+label+`,le="`+le+`"}`] = grows(func(m int) float64 { return 50 * of(0) })
			}
			return s
		}
	}
	less, all, itself := func(v float64) float64 { return 1 - v }, func(float64) float64 { return 1 }, func(v float64) float64 { return v }
	out := []course{
		{told: told(label, less, less, all), quiet: []float64{0.009}, fires: []float64{0.011}, sick: 0.5, from: 40, to: 152},
		{told: told(label, itself, all), quiet: []float64{0.93}, fires: []float64{0.6}},
	}
	if other != "" {
		out = append(out, course{told: told(other, less, less, all), quiet: []float64{0.5}})
	}
	return out
}

var guarded = regexp.MustCompile(`\{\{ *with [^}]*\}\}.*?\{\{ *end *\}\}`)

// TestAlertsFireAtTheirEdges holds the threshold of each alert between two values that are close to
// each other, how far it looks back and how long it waits by the minutes in which it begins and ends,
// and what its summary shows of labels against those that it fires with.
func TestAlertsFireAtTheirEdges(t *testing.T) {
	all := courses()
	for _, r := range alerts(t) {
		told := all[r.name]
		if len(told) == 0 {
			t.Errorf("%s has no course", r.name)
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			fired := false
			for i, c := range told {
				c = c.withDefaults()
				for _, v := range c.quiet {
					if at, _ := c.minutesFiring(t, r, always(v)); len(at) > 0 {
						t.Errorf("course %d: fires on %v from minute %d on", i, v, at[0])
					}
				}
				for _, v := range c.fires {
					if at, _ := c.minutesFiring(t, r, always(v)); len(at) == 0 || at[len(at)-1] != c.length {
						t.Errorf("course %d: keeps quiet on %v", i, v)
					}
				}
				if c.to == 0 {
					continue
				}
				at, with := c.minutesFiring(t, r, func(i int) float64 {
					if i >= c.ill[0] && i < c.ill[1] {
						return c.sick
					}
					return c.well
				})
				fired = fired || len(at) > 0
				if want := c.to - c.from + 1; len(at) != want || at[0] != c.from || at[want-1] != c.to {
					t.Errorf("course %d: fires in the minutes %v, want %d to %d", i, at, c.from, c.to)
				}
				for _, m := range label.FindAllStringSubmatch(guarded.ReplaceAllString(r.annotations["summary"], ""), -1) {
					for labels := range with {
						if m[1] != "" && !strings.Contains(labels, m[1]+`="`) {
							t.Errorf("course %d: %q shows the label %s, and it fires with %s", i, r.annotations["summary"], m[1], labels)
						}
					}
				}
			}
			if !fired {
				t.Errorf("no course says in which minutes it fires")
			}
		})
		delete(all, r.name)
	}
	for name := range all {
		t.Errorf("there is no alert %s", name)
	}
}
