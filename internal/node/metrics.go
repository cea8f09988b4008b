package node

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics makes the registry of /metrics: the process, Go, and what the node
// knows, read when asked.
func (n *Node) metrics() (*prometheus.Registry, http.Handler) {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &collector{n})
	return r, promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

type collector struct{ n *Node }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("mneme_"+name, help, labels, nil)
}

var (
	descRecords    = desc("records", "Living records.", "shard")
	descPending    = desc("pending_vectors", "Records that wait for their vectors.", "shard")
	descSeq        = desc("applied_sequence", "Last log sequence applied.", "shard")
	descLogLast    = desc("log_sequence", "Last sequence of the log.", "shard")
	descLogLost    = desc("log_lost_messages", "Messages the log's server reports lost.", "shard")
	descDiverged   = desc("log_diverged", "1 while writes are stopped because log and state disagree.", "shard")
	descScrubbed   = desc("log_scrubbed_sequence", "How far the slow reading of the whole log is.", "shard")
	descScrubEnd   = desc("log_scrub_finished_timestamp_seconds", "When the whole log was last read and found sound; 0 if not since the start.", "shard")
	descScrubFound = desc("log_scrub_problem", "1 if the last reading of the whole log found damage.", "shard")
	descHalted     = desc("shard_halted", "1 while the shard does not apply.", "shard")
	descAside      = desc("state_set_aside_timestamp_seconds", "When a node of several last set its state aside and built it again; 0 if nothing lies there.", "shard")
	descVoid       = desc("log_void_frames_total", "Messages of the log since the start that are no frames of its writer.", "shard")
	descFrames     = desc("frames_appended_total", "Frames appended to the log since the start.", "shard")
	descEvents     = desc("events_appended_total", "Events appended to the log since the start.", "shard")
	descDuplicates = desc("duplicates_total", "Captures answered as duplicates since the start.", "shard")
	descConflicts  = desc("conflicts_total", "Captures answered as conflicts since the start.", "shard")
	descAdopted    = desc("adopted_frames_total", "Frames adopted after unknown outcomes since the start.", "shard")
	descQueue      = desc("queue_items", "Events that wait for a frame.", "shard")
	descRejected   = desc("rejected_total", "Messages refused before the log since the start.", "code")
	descFree       = desc("disk_free_bytes", "Free space of the data directory's disk.")
	descCertEnd    = desc("certificate_expires_timestamp_seconds", "When a certificate of this node ends, by whom it is shown to.", "for")
	descGuard      = desc("vector_recall", "Recall that the guard measured; 0 if it has not run.", "engine", "state")
	descDropped    = desc("nats_dropped_total", "Captures over NATS dropped without an answer, because they came faster than they could be refused.")
	descForeign    = desc("nats_foreign_replies_total", "Answers over NATS dropped because their reply subject was no inbox.")
	descFeedDrops  = desc("feed_dropped_total", "Events not announced live because the publisher was slow.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, s := range c.n.served {
		c.collectShard(ctx, s, gauge, count)
	}
	for code, n := range c.n.rejections.List(0).Counts {
		count(descRejected, n, code)
	}
	if free, ok := c.n.space.available(); ok {
		gauge(descFree, float64(free))
	}
	for _, cert := range c.n.doctor.certificates() {
		gauge(descCertEnd, unixSeconds(cert.ExpiresAt), cert.For)
	}
	v := c.n.vectorStatus()
	gauge(descGuard, v.RecallGuard.Recall, v.Engine, v.RecallGuard.State)
	if bus := c.n.front.bus.Load(); bus != nil {
		count(descForeign, bus.ForeignReplies())
		count(descDropped, bus.Dropped())
	}
	var dropped uint64
	for _, s := range c.n.served {
		dropped += s.followers.feed.dropped.Load()
	}
	count(descFeedDrops, dropped)
}

func (c *collector) collectShard(ctx context.Context, of *served, gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string)) {
	shard := strconv.Itoa(int(of.id))
	s := c.n.operator.shardStatus(ctx, of)
	gauge(descRecords, float64(s.Records), shard)
	gauge(descPending, float64(s.PendingVectors), shard)
	gauge(descSeq, float64(of.state.Cursor().Seq), shard)
	gauge(descLogLast, float64(s.Log.Last), shard)
	gauge(descLogLost, float64(s.Log.Lost), shard)
	gauge(descDiverged, flag(s.Log.Diverged != ""), shard)
	gauge(descScrubbed, float64(s.Log.Scrub.Done), shard)
	gauge(descScrubEnd, unixSeconds(s.Log.Scrub.FinishedAt), shard)
	gauge(descScrubFound, flag(s.Log.Scrub.Problem != ""), shard)
	gauge(descHalted, flag(s.Halted != ""), shard)
	if of.peers != nil {
		gauge(descAside, unixSeconds(of.keepsAside()), shard)
	}
	count(descVoid, of.followers.voids.Load(), shard)
	w, err := of.replica.Writer()
	if err != nil {
		return
	}
	counters := w.Counters()
	count(descFrames, counters.Frames.Load(), shard)
	count(descEvents, counters.Events.Load(), shard)
	count(descDuplicates, counters.Duplicates.Load(), shard)
	count(descConflicts, counters.Conflicts.Load(), shard)
	count(descAdopted, counters.Adopted.Load(), shard)
	items, _ := w.QueueDepth()
	gauge(descQueue, float64(items), shard)
}

func flag(b bool) float64 {
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
