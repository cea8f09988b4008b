package rest

import (
	"cmp"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"mneme/internal/spans"
	"mneme/memory"
)

// TestSpansOfRequests: one for each that was let in and is neither a stream nor a probe, named by
// its route. It has failed if the server has.
func TestSpansOfRequests(t *testing.T) {
	const ns = "/v1/namespaces/team"
	for _, tc := range []struct {
		name, method, path, body string
		err                      error // of Namespace
		host                     string
		status                   int
		span                     string // "" = there is none
		failed                   string // its error.type
	}{
		{name: "fine", path: ns, status: 200, span: "GET /v1/namespaces/{ns}"},
		{name: "made", method: "POST", path: "/v1/namespaces", body: `{"name":"team"}`, status: 201, span: "POST /v1/namespaces"},
		{name: "broken body", method: "POST", path: "/v1/namespaces", body: `{"name":`, status: 400, span: "POST /v1/namespaces"},
		{name: "absent", path: ns, err: memory.Errorf(memory.CodeNotFound, "no"), status: 404, span: "GET /v1/namespaces/{ns}"},
		{name: "in conflict", path: ns, err: memory.Errorf(memory.CodeConflict, "no"), status: 409, span: "GET /v1/namespaces/{ns}"},
		{name: "internal", path: ns, err: memory.Errorf(memory.CodeInternal, "no"), status: 500, span: "GET /v1/namespaces/{ns}", failed: "500"},
		{name: "away", path: ns, err: memory.Errorf(memory.CodeUnavailable, "no"), status: 503, span: "GET /v1/namespaces/{ns}", failed: "503"},
		{name: "alive", path: "/livez", status: 200},
		{name: "ready", path: "/readyz", status: 200},
		{name: "metrics", path: "/metrics", status: 200},
		{name: "feed", path: ns + "/events", status: 200},
		{name: "export", path: ns + "/export", status: 200},
		{name: "long work", method: "POST", path: "/v1/admin/log/verify", status: 200},
		{name: "no route", path: "/nothing", status: 404},
		{name: "wrong method", method: "POST", path: ns, status: 405},
		{name: "strange host", path: ns, host: "elsewhere.example", status: 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			exported := tracetest.NewInMemoryExporter()
			provider := sdk.NewTracerProvider(sdk.WithSyncer(exported))
			defer func() { _ = provider.Shutdown(t.Context()) }()
			b := newBench(t, func(o *Options) { o.Traces = provider })
			b.f.fail["Namespace"] = tc.err
			method, headers := cmp.Or(tc.method, "GET"), []string(nil)
			if tc.host != "" {
				headers = []string{"Host", tc.host}
			}
			if rec := b.do(method, tc.path, tc.body, headers...); rec.Code != tc.status {
				t.Fatalf("%d %s, want %d", rec.Code, rec.Body, tc.status)
			}
			var got []string
			for _, s := range exported.GetSpans() {
				line := fmt.Sprintf("%s %v", s.Name, s.Status.Code)
				for _, a := range s.Attributes {
					switch a.Key {
					case spans.StatusCode, spans.ErrorType:
						line += fmt.Sprintf(" %s=%v", a.Key, a.Value.AsInterface())
					}
				}
				got = append(got, line)
			}
			want := []string{}
			if tc.span != "" {
				line := fmt.Sprintf("%s %v %s=%d", tc.span, codes.Unset, spans.StatusCode, tc.status)
				if tc.failed != "" {
					line = fmt.Sprintf("%s %v %s=%d %s=%s", tc.span, codes.Error, spans.StatusCode, tc.status, spans.ErrorType, tc.failed)
				}
				want = append(want, line)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
