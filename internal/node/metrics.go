package node

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mneme/internal/index/vector"
	"mneme/memory"
)

// metrics makes the registry of /metrics: the process, Go, what is measured along the way,
// and what the node knows, read when asked. docs/operate/metrics.md lists all of them, and
// TestMetricsAreDocumented writes and checks that list. Only OpenMetrics has a place for the
// traces that are examples of a time.
func (n *Node) metrics() (*prometheus.Registry, http.Handler) {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{n})
	r.MustRegister(n.front.times.all()...)
	return r, promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second, EnableOpenMetrics: n.cfg.Traces != nil})
}

// family is a metric that is read when asked.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gaugeOf(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("mneme_"+name, help, labels, nil), prometheus.GaugeValue}
}

func countOf(name, help string, labels ...string) family {
	return family{prometheus.NewDesc("mneme_"+name, help, labels, nil), prometheus.CounterValue}
}

// readings takes the values of one scrape.
type readings chan<- prometheus.Metric

func (to readings) put(f family, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, v, labels...)
}

// Metrics of the node.
var (
	ofBuild     = gaugeOf("build_info", "1, with the version of the program.", "version", "goversion")
	ofReady     = gaugeOf("ready", "1 while the node serves reads.")
	ofSpaces    = gaugeOf("namespaces", "Namespaces that there are, as this node knows.")
	ofFree      = gaugeOf("disk_free_bytes", "Free space of the data directory's disk.")
	ofReserve   = gaugeOf("disk_reserve_bytes", "Below so much free space the node takes no writes.")
	ofMemory    = gaugeOf("memory_limit_bytes", "Memory that the container may take before the kernel ends it; missing where there is no limit.")
	ofCertEnd   = gaugeOf("certificate_expires_timestamp_seconds", "When a certificate of this node ends, by whom it is shown to (clients or nodes).", "for")
	ofCopyBad   = gaugeOf("log_copy_problem", "1 while files of this node's own copy of the log do not check; 0 where it keeps none beside other nodes.")
	ofCopyAt    = gaugeOf("log_copy_checked_timestamp_seconds", "When this node's own copy of the log was last read and found sound; 0 if not since the start, and where it keeps none beside other nodes.")
	ofAnew      = gaugeOf("data_set_aside_timestamp_seconds", "When this node last set aside what it had and joined its cluster with nothing; 0 if nothing lies there.")
	ofClock     = gaugeOf("clock_refused", "1 while the node's clock is not used to write.")
	ofErasing   = gaugeOf("erasing", "1 while what was erased has not left all files yet.")
	ofErasingAt = gaugeOf("erasing_since_timestamp_seconds", "Since when what was erased is being taken out of the files; 0 if nothing is.")
	ofRejected  = countOf("rejected_total", "Messages refused before the log, by the code of the error.", "code")
	ofRecall    = gaugeOf("vector_recall_ratio", "Share of the nearest vectors that the engine finds, as its guard measured; of the worst shard, 0 if it has not run.", "engine")
	ofTripped   = gaugeOf("vector_guard_tripped", "1 while the recall is too low, so that searches scan exactly.", "engine")
	ofDropped   = countOf("nats_dropped_total", "Captures over NATS dropped without an answer, because they came faster than they could be refused.")
	ofForeign   = countOf("nats_foreign_replies_total", "Answers over NATS dropped because their reply subject was no inbox.")
)

// collector reads what the node knows.
type collector struct{ n *Node }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// scrapeLog bounds how long all shards' logs may take to say how long they are.
const scrapeLog = 2 * time.Second

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	to := readings(out)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLog)
	defer cancel()
	c.collectNode(to)
	c.collectTraces(to)
	for _, s := range c.n.served {
		shardCollector{s, strconv.Itoa(int(s.id)), to}.collect(ctx)
	}
}

func (c collector) collectNode(to readings) {
	n := c.n
	to.put(ofBuild, 1, n.cfg.Version, runtime.Version())
	ready, _ := n.doctor.Ready()
	to.put(ofReady, asFlag(ready))
	var copied memory.CopyStatus
	if st := n.upkeep.copy.Status(); st != nil {
		copied = *st
	}
	to.put(ofCopyBad, asFlag(copied.Damage != ""))
	to.put(ofCopyAt, unixSeconds(copied.CheckedAt))
	to.put(ofAnew, unixSeconds(n.dir.lastAside()))
	to.put(ofClock, asFlag(len(n.doctor.checkClock()) > 0))
	v := n.directory().state.View()
	to.put(ofSpaces, float64(len(v.Namespaces())))
	if err := v.Close(); err != nil {
		n.cfg.Logger.Error("view could not be closed", "err", err)
	}
	if free, ok := n.space.available(); ok {
		to.put(ofFree, float64(free))
	}
	to.put(ofReserve, float64(n.space.reserve))
	if limit := n.cfg.Process.MemoryLimit; limit != nil {
		if bytes := limit(); bytes > 0 {
			to.put(ofMemory, float64(bytes))
		}
	}
	for _, cert := range n.doctor.certificates() {
		to.put(ofCertEnd, unixSeconds(cert.ExpiresAt), cert.For)
	}
	erasing := n.eraser.Status()
	to.put(ofErasing, asFlag(erasing != nil))
	if erasing == nil {
		erasing = &memory.ErasingStatus{}
	}
	to.put(ofErasingAt, unixSeconds(erasing.Since))
	refused := n.rejections.List(0).Counts
	for _, code := range memory.Codes() {
		to.put(ofRejected, float64(refused[string(code)]), string(code))
	}
	vectors := n.vectorStatus()
	to.put(ofRecall, vectors.RecallGuard.Recall, vectors.Engine)
	to.put(ofTripped, asFlag(vectors.RecallGuard.State == string(vector.GuardTripped)), vectors.Engine)
	if bus := n.front.bus.Load(); bus != nil {
		to.put(ofForeign, float64(bus.ForeignReplies()))
		to.put(ofDropped, float64(bus.Dropped()))
	}
}

func asFlag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
