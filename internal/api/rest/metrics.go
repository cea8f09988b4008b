package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/spans"
)

// requestMetrics counts and times requests by route pattern, never by path:
// names of namespaces and records are no labels.
type requestMetrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newRequestMetrics(reg prometheus.Registerer, sides bulkheads) (*requestMetrics, error) {
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mneme_http_requests_total", Help: "HTTP requests answered, by route and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mneme_http_request_duration_seconds", Help: "Time to answer HTTP requests that are no streams.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}, []string{"route", "method"}),
	}
	for _, search := range []string{"/v1/namespaces/{ns}/search", "/v1/search"} { // an alert asks for a rise, which the first refusal is
		m.total.WithLabelValues(search, http.MethodPost, strconv.Itoa(http.StatusTooManyRequests))
	}
	if reg == nil {
		return m, nil
	}
	if err := errors.Join(reg.Register(m.total), reg.Register(m.seconds), reg.Register(sides)); err != nil {
		return nil, fmt.Errorf("rest: register metrics: %w", err)
	}
	return m, nil
}

// observe takes one answered request; rt is nil if no route matched.
func (m *requestMetrics) observe(rt *route, method string, status int, took time.Duration, span trace.Span) {
	name := "none"
	if rt != nil {
		name, method = rt.path, rt.method
	} else {
		method = knownMethod(method)
	}
	m.total.WithLabelValues(name, method, strconv.Itoa(status)).Inc()
	if rt != nil && !rt.stream {
		m.seconds.WithLabelValues(name, method).(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), spans.Exemplar(span))
	}
}

var (
	underWay = prometheus.NewDesc("mneme_http_reads_in_progress", "HTTP reads that are being worked on, by sort.", []string{"sort"}, nil)
	atMost   = prometheus.NewDesc("mneme_http_reads_limit", "HTTP reads that are worked on side by side at most, by sort; more wait, and are refused.", []string{"sort"}, nil)
)

// Describe implements prometheus.Collector.
func (b bulkheads) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, out) }

// Collect implements prometheus.Collector.
func (b bulkheads) Collect(out chan<- prometheus.Metric) {
	for sort, of := range map[string]*bulkhead{"gets": b.gets, "searches": b.searches, "pages": b.pages, "exports": b.exports, "streams": b.streams} {
		out <- prometheus.MustNewConstMetric(underWay, prometheus.GaugeValue, float64(of.slots.Taken()), sort)
		out <- prometheus.MustNewConstMetric(atMost, prometheus.GaugeValue, float64(of.slots.Limit()), sort)
	}
}

// knownMethod keeps clients from inventing labels.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
