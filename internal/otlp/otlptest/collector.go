// Package otlptest is a collector of traces for tests: it takes OTLP/HTTP on loopback, and
// answers as it is told to.
package otlptest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector keeps what it gets. It is safe for concurrent use.
type Collector struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	answer  func(w http.ResponseWriter, r *http.Request) bool // false = take the request as usual
	bodies  bytes.Buffer                                      // unpacked
	headers []http.Header
	spans   []Span
}

// Span is one span, and the node that it is of.
type Span struct {
	*tracepb.Span
	Node string
}

// Attribute is an attribute as text; "" if there is none.
func (s Span) Attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			if n, ok := a.Value.Value.(*common.AnyValue_IntValue); ok {
				return strconv.FormatInt(n.IntValue, 10)
			}
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// Start returns a collector that runs until the test ends.
func Start(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// StartTLS is Start with a certificate of the test's.
func StartTLS(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{t: t}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	return c
}

// Answer has requests answered by f, if that returns true; nil = all are taken.
func (c *Collector) Answer(f func(w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	body, err := io.ReadAll(r.Body) // first: before, nobody notices that the sender has gone
	if answer != nil && answer(w, r) {
		return
	}
	if err == nil {
		err = c.take(r.Header, body)
	}
	if err != nil {
		c.t.Errorf("the collector cannot read what it was sent: %v", err)
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (c *Collector) take(header http.Header, raw []byte) error {
	if header.Get("Content-Encoding") == "gzip" {
		packed, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		if raw, err = io.ReadAll(packed); err != nil {
			return err
		}
	}
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &req); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies.Write(raw)
	c.headers = append(c.headers, header.Clone())
	for _, of := range req.ResourceSpans {
		node := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.instance.id" {
				node = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, Span{s, node})
			}
		}
	}
	return nil
}

// Spans are all that came.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span{}, c.spans...)
}

// Headers are those of the requests.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]http.Header{}, c.headers...)
}

// Bytes is everything that came, as it stood on the wire but unpacked.
func (c *Collector) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.bodies.Bytes())
}
