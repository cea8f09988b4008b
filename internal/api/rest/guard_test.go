package rest

import (
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"mneme/internal/auth"
	"mneme/memory"
)

func TestHosts(t *testing.T) {
	tests := []struct {
		listen string
		hosts  []string
		host   string
		ok     bool
	}{
		{"127.0.0.1:8787", nil, "127.0.0.1:8787", true},
		{"127.0.0.1:8787", nil, "127.0.0.1:9999", true},
		{"127.0.0.1:8787", nil, "localhost", true},
		{"127.0.0.1:8787", nil, "LocalHost.:8787", true},
		{"127.0.0.1:8787", nil, "[::1]:8787", true},
		{"127.0.0.1:8787", nil, "[::1]", true},
		{"127.0.0.1:8787", nil, "evil.example:8787", false},
		{"127.0.0.1:8787", nil, "localhost.evil.example", false},
		{"127.0.0.1:8787", nil, "127.0.0.1.evil.example", false},
		{"127.0.0.1:8787", nil, "10.0.0.5:8787", false},
		{"127.0.0.1:8787", nil, "", false},
		{"10.0.0.5:8787", nil, "10.0.0.5:8787", true},
		{"10.0.0.5:8787", nil, "10.0.0.6:8787", false},
		{"node.lan:8787", nil, "NODE.lan:8787", true},
		{"0.0.0.0:8787", nil, "10.0.0.5:8787", true},
		{":8787", nil, "[fe80::1]:8787", true},
		{"[::]:8787", nil, "node.lan", false},
		{"0.0.0.0:8787", []string{"node.lan."}, "node.lan:80", true},
		{"127.0.0.1:8787", []string{"*"}, "anything", true},
		{"", nil, "localhost", true},
	}
	for _, tt := range tests {
		b := newBench(t, func(o *Options) { o.ListenAddr, o.AllowedHosts = tt.listen, tt.hosts })
		rec := b.do("GET", "/v1/status", "", "Host", tt.host)
		if (rec.Code == 200) != tt.ok || !tt.ok && problemOf(t, rec).Code != memory.CodeForbidden {
			t.Errorf("listen %s, host %s: %d %s", tt.listen, tt.host, rec.Code, rec.Body)
		}
	}
	b := newBench(t, nil)
	if rec := b.do("GET", "/readyz", "", "Host", "10.1.2.3:8787"); rec.Code != 200 {
		t.Errorf("a probe by address: %d", rec.Code)
	}
	if rec := b.do("GET", "/nope", "", "Host", "evil.example"); rec.Code != 403 {
		t.Errorf("an unknown path for a foreign host: %d", rec.Code)
	}
}

func TestOrigins(t *testing.T) {
	tests := []struct {
		name, method string
		headers      []string
		status       int
		allow        string
	}{
		{"none", "GET", nil, 200, ""},
		{"own", "GET", []string{"Origin", "http://127.0.0.1:8787"}, 200, ""},
		{"other port", "GET", []string{"Origin", "http://127.0.0.1:3000"}, 403, ""},
		{"foreign", "GET", []string{"Origin", "https://evil.example"}, 403, ""},
		{"null", "GET", []string{"Origin", "null"}, 403, ""},
		{"broken", "GET", []string{"Origin", "http://[::"}, 403, ""},
		{"allowed", "GET", []string{"Origin", "https://app.example"}, 200, "https://app.example"},
		{"allowed, case", "GET", []string{"Origin", "https://APP.example"}, 200, "https://APP.example"},
		{"cross-site write", "DELETE", []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"cross-site read", "GET", []string{"Sec-Fetch-Site", "cross-site"}, 200, ""},
		{"preflight", "OPTIONS", []string{"Origin", "https://app.example", "Access-Control-Request-Method", "DELETE"}, 204, "https://app.example"},
		{"foreign preflight", "OPTIONS", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "DELETE"}, 403, ""},
		{"no preflight", "OPTIONS", []string{"Origin", "https://app.example"}, 405, "https://app.example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, func(o *Options) { o.AllowedOrigins = []string{"https://app.example/"} })
			rec := b.do(tt.method, "/v1/namespaces/team", "", tt.headers...)
			if rec.Code != tt.status || rec.Header().Get("Access-Control-Allow-Origin") != tt.allow {
				t.Errorf("%d %q %s", rec.Code, rec.Header().Get("Access-Control-Allow-Origin"), rec.Body)
			}
			if tt.status == 403 && b.lastCall() != "" {
				t.Errorf("called %s", b.lastCall())
			}
		})
	}
}

func TestTokens(t *testing.T) {
	const token = "a-token-of-24-characters"
	gate, err := auth.NewGate(auth.ModeToken, token)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(o *Options) { o.Auth = gate; o.AllowedOrigins = []string{"https://app.example"} })
	b.remote = true
	for _, path := range []string{"/livez", "/readyz", "/", "/openapi.json"} {
		if rec := b.do("GET", path, ""); rec.Code != 200 {
			t.Errorf("%s without a token: %d", path, rec.Code)
		}
	}
	for _, path := range []string{"/v1/status", "/metrics", "/v1/namespaces/a/records/b", "/nope"} {
		rec := b.do("GET", path, "")
		if p := problemOf(t, rec); rec.Code != 401 || p.Code != memory.CodeUnauthenticated || rec.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a token: %d %+v", path, rec.Code, p)
		}
	}
	if b.lastCall() != "" {
		t.Errorf("called %s", b.lastCall())
	}
	if rec := b.do("GET", "/v1/status", "", "Authorization", "Bearer "+token); rec.Code != 200 {
		t.Errorf("with the token: %d", rec.Code)
	}
	if rec := b.do("OPTIONS", "/v1/status", "", "Origin", "https://app.example", "Access-Control-Request-Method", "GET"); rec.Code != http.StatusNoContent {
		t.Errorf("preflight: %d", rec.Code)
	}
}

func TestMetricsNameRoutesNotPaths(t *testing.T) {
	b := newBench(t, nil)
	b.do("GET", "/v1/namespaces/very-private/records/x", "")
	b.do("GET", "/v1/namespaces/very-private/export", "")
	b.do("BREW", "/teapot", "")
	b.f.fail["Status"] = memory.Errorf(memory.CodeOverloaded, "x")
	b.do("GET", "/v1/status", "")
	families, err := b.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range families {
		for _, m := range f.Metric {
			got[f.GetName()+labels(m)] = true
		}
	}
	for _, want := range []string{
		"mneme_http_requests_total method=GET route=/v1/namespaces/{ns}/records/{id} status=200",
		"mneme_http_requests_total method=GET route=/v1/status status=429",
		"mneme_http_requests_total method=other route=none status=404",
		"mneme_http_request_duration_seconds method=GET route=/v1/status",
	} {
		if !got[want] {
			t.Errorf("no %s in %v", want, got)
		}
	}
	if got["mneme_http_request_duration_seconds method=GET route=/v1/namespaces/{ns}/export"] {
		t.Error("a stream was timed")
	}
}

func labels(m *dto.Metric) string {
	var sb strings.Builder
	for _, l := range m.Label {
		sb.WriteString(" " + l.GetName() + "=" + l.GetValue())
	}
	return sb.String()
}
