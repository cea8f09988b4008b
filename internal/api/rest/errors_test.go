package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mneme/memory"
)

func newRequest(t *testing.T, method, path string, body []byte) *http.Request {
	t.Helper()
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Host = "localhost"
	return r
}

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

// Every route that calls something must answer its failure with the problem.
func TestEveryRouteAnswersFailuresWithProblems(t *testing.T) {
	const ns = "/v1/namespaces/team"
	routes := []struct{ port, method, path, body string }{
		{"Capture", "POST", ns + "/events", `{"text":"x"}`}, {"Revise", "PATCH", ns + "/records/x", `{}`},
		{"Forget", "DELETE", ns + "/records/x", ""}, {"CreateNamespace", "POST", "/v1/namespaces", `{"name":"a"}`},
		{"ChangeNamespace", "PATCH", ns, `{"settings":{}}`}, {"DeleteNamespace", "DELETE", ns, ""},
		{"Search", "POST", ns + "/search", `{"query":"q"}`}, {"Get", "GET", ns + "/records/x", ""}, {"Get", "GET", ns + "/records?uri=a", ""},
		{"List", "GET", ns + "/records", ""}, {"History", "GET", ns + "/records/x/history", ""}, {"Timeline", "GET", ns + "/records/x/timeline", ""},
		{"Audit", "GET", ns + "/audit", ""}, {"AuditedReads", "GET", ns + "/audit/reads", ""}, {"Events", "GET", ns + "/events", ""}, {"Export", "GET", ns + "/export", ""},
		{"ChangeGraph", "POST", ns + "/graph?as=me", `{"operations":[{"delete_entities":["a"]}]}`}, {"Graph", "GET", ns + "/graph", ""}, {"StreamGraph", "GET", ns + "/graph/export", ""},
		{"Namespaces", "GET", "/v1/namespaces", ""}, {"Namespace", "GET", ns, ""}, {"Status", "GET", "/v1/status", ""}, {"Cluster", "GET", "/v1/cluster", ""},
		{"Doctor", "GET", "/v1/admin/doctor", ""}, {"Rebuild", "POST", "/v1/admin/rebuild", ""}, {"VerifyLog", "POST", "/v1/admin/log/verify", ""},
		{"RepairLog", "POST", "/v1/admin/log/repair", ""}, {"Rejected", "GET", "/v1/admin/rejected", ""}, {"Quarantine", "GET", "/v1/admin/quarantine", ""},
		{"Upgrade", "GET", "/v1/admin/upgrade", ""}, {"FinishUpgrade", "POST", "/v1/admin/upgrade", ""},
		{"PutInQuarantine", "POST", "/v1/admin/quarantine", `{"position":"p0.1.2.3"}`},
		{"AcceptClock", "POST", "/v1/admin/clock/accept", ""}, {"RemoveNode", "POST", "/v1/admin/cluster/remove", `{"node":"n3"}`},
		{"TransferLead", "POST", "/v1/admin/cluster/transfer", `{"node":"n3"}`}, {"DrainNode", "POST", "/v1/admin/cluster/drain", `{}`}, {"BackupLog", "GET", "/v1/admin/backup/log", ""}, {"BackupKeys", "POST", "/v1/admin/backup/keys", ""},
		{"DestroyedKeys", "GET", "/v1/admin/backup/destroyed", ""},
	}
	for _, rt := range routes {
		for _, code := range memory.Codes() {
			b := newBench(t, nil)
			b.f.fail[rt.port] = fmt.Errorf("wrapped: %w", memory.Errorf(code, "because of reasons").WithHint("do this"))
			rec := b.do(rt.method, rt.path, rt.body)
			p := problemOf(t, rec)
			if p.Code != code || rec.Code != code.HTTPStatus() || p.Hint != "do this" || p.Title != code.Title() {
				t.Errorf("%s %s failing with %s: %d %+v", rt.method, rt.path, code, rec.Code, p)
			}
			internal := code == memory.CodeInternal
			if internal == strings.Contains(p.Detail, "reasons") {
				t.Errorf("%s: detail %q", code, p.Detail)
			}
			if internal != strings.Contains(b.log.String(), "reasons") {
				t.Errorf("%s: log %q", code, b.log)
			}
		}
	}
}

func TestErrorsWithoutACode(t *testing.T) {
	tests := map[string]struct {
		err  error
		code memory.Code
	}{
		"deadline": {fmt.Errorf("read: %w", context.DeadlineExceeded), memory.CodeTimeout},
		"canceled": {context.Canceled, memory.CodeTimeout},
		"other":    {errDisk, memory.CodeInternal},
	}
	for name, tt := range tests {
		b := newBench(t, nil)
		b.f.fail["Status"] = tt.err
		rec := b.do("GET", "/v1/status", "")
		p := problemOf(t, rec)
		if p.Code != tt.code || strings.Contains(rec.Body.String(), "secret") {
			t.Errorf("%s: %+v", name, p)
		}
		if tt.code == memory.CodeInternal && (!strings.Contains(p.Hint, rec.Header().Get("X-Request-Id")) || !strings.Contains(b.log.String(), rec.Header().Get("X-Request-Id"))) {
			t.Errorf("%s: hint %q and log %q do not share the request id", name, p.Hint, b.log)
		}
	}
}

// TestAMemoryByItsURIWentPastTheAudit: what is for a prompt is listed or searched for.
func TestAMemoryByItsURIWentPastTheAudit(t *testing.T) {
	b := newBench(t, nil)
	for query, want := range map[string]int{"uri=notes/a&purpose=inject": 400, "uri=notes/a": 200, "purpose=inject": 200, "purpose=other": 400} {
		if rec := b.do("GET", "/v1/namespaces/team/records?"+query, ""); rec.Code != want {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		code  memory.Code
		after time.Duration
		want  string
	}{
		{memory.CodeOverloaded, 0, "1"}, {memory.CodeUnavailable, 0, "1"}, {memory.CodeOverloaded, 1500 * time.Millisecond, "2"},
		{memory.CodeQuota, time.Minute, "60"}, {memory.CodeInvalid, 0, ""}, {memory.CodeLogDiverged, 0, ""},
	} {
		b := newBench(t, nil)
		e := memory.Errorf(tt.code, "x")
		e.RetryAfter = tt.after
		b.f.fail["Status"] = e
		if got := b.do("GET", "/v1/status", "").Header().Get("Retry-After"); got != tt.want {
			t.Errorf("%s after %s: %q, want %q", tt.code, tt.after, got, tt.want)
		}
	}
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	b := newBench(t, nil)
	for _, path := range []string{"/nope", "/v1", "/v1/namespaces/a/b/c", "/v1/namespaces/"} {
		if rec := b.do("GET", path, ""); rec.Code != 404 || problemOf(t, rec).Code != memory.CodeNotFound {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	for path, allow := range map[string]string{"/v1/status": "GET, HEAD", "/v1/namespaces/a": "DELETE, GET, HEAD, PATCH", "/v1/admin/rebuild": "POST"} {
		rec := b.do("PUT", path, "")
		if p := problemOf(t, rec); rec.Code != 405 || rec.Header().Get("Allow") != allow || !strings.Contains(p.Hint, allow) {
			t.Errorf("%s: %d Allow %q %+v", path, rec.Code, rec.Header().Get("Allow"), p)
		}
	}
}

func TestStreamsHaveNoHead(t *testing.T) {
	b := newBench(t, nil)
	for _, path := range []string{eventsPath, "/v1/admin/backup/log", "/v1/namespaces/team/export"} {
		if rec := b.do("HEAD", path, ""); rec.Code != 405 || rec.Header().Get("Allow") != "GET" || b.lastCall() != "" {
			t.Errorf("%s: %d %v, called %s", path, rec.Code, rec.Header(), b.lastCall())
		}
	}
}

func TestPanicsAreHidden(t *testing.T) {
	b := newBench(t, nil)
	b.f.status = func() (memory.Status, error) { panic("secret state") }
	rec := b.do("GET", "/v1/status", "")
	if p := problemOf(t, rec); p.Code != memory.CodeInternal || strings.Contains(rec.Body.String(), "secret") || strings.Contains(rec.Body.String(), "goroutine") {
		t.Errorf("%s", rec.Body)
	}
	for _, want := range []string{"secret state", "goroutine", rec.Header().Get("X-Request-Id")} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestBrokenBody(t *testing.T) {
	b := newBench(t, nil)
	r := httptest.NewRequest("POST", "/v1/namespaces", iotest.ErrReader(errors.New("reset")))
	r.Host = "localhost"
	rec := newRecorder()
	b.s.ServeHTTP(rec, r)
	if p := problemOf(t, rec); p.Code != memory.CodeInvalid || !strings.Contains(p.Detail, "broke off") {
		t.Errorf("%+v", p)
	}
}

func TestRequestsHaveADeadline(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Timeout = time.Millisecond })
	b.f.capture = func(ctx context.Context, _ []memory.Capture, _ memory.Wait) (memory.CaptureResponse, error) {
		<-ctx.Done()
		return memory.CaptureResponse{}, ctx.Err()
	}
	if p := problemOf(t, b.do("POST", eventsPath, `{"text":"x"}`)); p.Code != memory.CodeOutcomeUnknown {
		t.Errorf("a write that was cut short: %+v", p)
	}
	if len(b.f.rejected) != 0 {
		t.Errorf("rejected %+v", b.f.rejected)
	}
}

func TestUnencodableAnswerIsInternal(t *testing.T) {
	b := newBench(t, nil)
	b.f.status = func() (memory.Status, error) { return memory.Status{UptimeS: nan()}, nil }
	if p := problemOf(t, b.do("GET", "/v1/status", "")); p.Code != memory.CodeInternal {
		t.Errorf("%+v", p)
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestNotReady(t *testing.T) {
	b := newBench(t, nil)
	b.f.ready = false
	if p := problemOf(t, b.do("GET", "/readyz", "")); p.Status != 503 || !strings.Contains(p.Detail, "state: behind") {
		t.Errorf("%+v", p)
	}
	rec := b.do("GET", "/readyz?verbose", "")
	if rec.Code != 503 || !strings.Contains(rec.Body.String(), `"ready":false,"checks":[{"name":"log","state":"warn"`) || !strings.Contains(rec.Body.String(), `{"name":"leader","state":"warn"`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if got := firstFailure(nil); got != "" {
		t.Errorf("failure of nothing: %q", got)
	}
}
