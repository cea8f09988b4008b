package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is one request as a server saw it.
type seen struct {
	Method, Path, Query, Agent, IfMatch, Auth, Accept, Body string
}

// recorder answers requests one by one with its answers and keeps them.
type recorder struct {
	mu      sync.Mutex
	got     []seen
	answers []http.HandlerFunc // the last one repeats
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	rec.mu.Lock()
	rec.got = append(rec.got, seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Mneme-Agent"),
		r.Header.Get("If-Match"), r.Header.Get("Authorization"), r.Header.Get("Accept"), string(b)})
	answer := rec.answers[min(len(rec.got), len(rec.answers))-1]
	rec.mu.Unlock()
	answer(w, r)
}

func (rec *recorder) requests() []seen {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return append([]seen(nil), rec.got...)
}

// serve starts a server and a client for it.
func serve(t *testing.T, opts Options, answers ...http.HandlerFunc) (*Client, *recorder) {
	t.Helper()
	rec := &recorder{answers: answers}
	srv := httptest.NewUnstartedServer(rec)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	c, err := New(srv.URL, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		srv.Close()
	})
	return c, rec
}

func reply(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

// typed answers with a media type, as what is read as it comes does.
func typed(media, s string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		text(s)(w, r)
	}
}

func feed(s string) http.HandlerFunc { return typed(eventStream, s) }

func ndjson(s string) http.HandlerFunc { return typed("application/x-ndjson", s) }

func refuse(err *memory.Error, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(err.Code.HTTPStatus())
		_ = json.NewEncoder(w).Encode(memory.ProblemOf(err))
	}
}

func lose(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestEachMethodSendsItsRequest(t *testing.T) {
	ctx := t.Context()
	three, zero := 3, 0
	at := time.Date(2024, 5, 8, 1, 2, 3, 0, time.FixedZone("", 3600))
	txt := "new"
	for _, c := range []struct {
		name   string
		call   func(*Client) error
		answer any
		want   seen
	}{
		{"search", func(c *Client) error { _, err := c.Search(ctx, "ns", memory.SearchRequest{Query: "q"}); return err }, memory.SearchResponse{},
			seen{Method: "POST", Path: "/v1/namespaces/ns/search", Body: `{"query":"q","as":"me"}`}},
		{"search as", func(c *Client) error {
			_, err := c.Search(ctx, "ns", memory.SearchRequest{Query: "q", As: "x"})
			return err
		}, memory.SearchResponse{},
			seen{Method: "POST", Path: "/v1/namespaces/ns/search", Body: `{"query":"q","as":"x"}`}},
		{"get", func(c *Client) error { _, err := c.Get(ctx, "ns", "a/b", GetOptions{Version: 2}); return err }, memory.Record{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/records/a%2Fb", Query: "as=me&version=2"}},
		{"dots", func(c *Client) error { _, err := c.Get(ctx, "ns", "..", GetOptions{}); return err }, memory.Record{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/records/%2E%2E", Query: "as=me"}},
		{"uri", func(c *Client) error {
			_, err := c.GetByURI(ctx, "ns", "a/b", ReadOptions{As: "x", AtLeast: "p1", Consistency: memory.ConsistencyLinearizable})
			return err
		}, memory.RecordList{Records: []memory.Record{{}}},
			seen{Method: "GET", Path: "/v1/namespaces/ns/records", Query: "as=x&at_least=p1&consistency=linearizable&uri=mem%3A%2F%2Fns%2Fa%2Fb"}},
		{"list", func(c *Client) error {
			_, err := c.List(ctx, "ns", ListOptions{ListRequest: memory.ListRequest{Cursor: "c", Limit: 5, Filter: memory.Filter{Kinds: []memory.Kind{"fact", "error"},
				Tags: []string{"t", "u"}, Agents: []string{"a"}, Conversation: "k", Since: &at, Until: &at, Scope: memory.ScopeTeam}}})
			return err
		}, memory.RecordList{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/records", Query: "agent=a&as=me&conversation=k&cursor=c&kind=fact&kind=error&limit=5&scope=team&since=2024-05-08T00%3A02%3A03Z&tag=t&tag=u&until=2024-05-08T00%3A02%3A03Z"}},
		{"history", func(c *Client) error { _, err := c.History(ctx, "ns", "r", ReadOptions{}); return err }, memory.History{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/records/r/history", Query: "as=me"}},
		{"timeline", func(c *Client) error {
			_, err := c.Timeline(ctx, "ns", "r", TimelineOptions{Before: &zero, After: &three})
			return err
		}, memory.Timeline{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/records/r/timeline", Query: "after=3&as=me&before=0"}},
		{"revise", func(c *Client) error {
			_, err := c.Revise(ctx, "ns", "r", memory.Revision{Text: &txt}, WriteOptions{As: "x", IfVersion: 4})
			return err
		}, memory.RevisionResponse{},
			seen{Method: "PATCH", Path: "/v1/namespaces/ns/records/r", Agent: "x", IfMatch: "4", Body: `{"text":"new"}`}},
		{"forget", func(c *Client) error { _, err := c.Forget(ctx, "ns", "r", WriteOptions{}); return err }, memory.ForgetResponse{},
			seen{Method: "DELETE", Path: "/v1/namespaces/ns/records/r", Agent: "me"}},
		{"audit", func(c *Client) error {
			_, err := c.Audit(ctx, "ns", AuditOptions{AuditRequest: memory.AuditRequest{Cursor: "c", From: "p1", Limit: 9, Since: &at, Until: &at, Actor: "bob"}})
			return err
		}, memory.AuditPage{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/audit", Query: "actor=bob&as=me&cursor=c&from=p1&limit=9&since=2024-05-08T00%3A02%3A03Z&until=2024-05-08T00%3A02%3A03Z"}},
		{"change graph", func(c *Client) error {
			_, err := GraphOf(c, "ns").Change(ctx, memory.GraphChange{ID: "k", Operations: []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{}}}})
			return err
		}, memory.GraphChanged{}, seen{Method: "POST", Path: "/v1/namespaces/ns/graph", Body: `{"id":"k","agent":"me","operations":[{"create_entities":[]}]}`}},
		{"graph", func(c *Client) error {
			_, err := GraphOf(c, "ns").Read(ctx, memory.GraphRequest{}, ReadOptions{})
			return err
		}, memory.Graph{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/graph", Query: "as=me"}},
		{"search graph", func(c *Client) error {
			_, err := GraphOf(c, "ns").Read(ctx, memory.GraphRequest{Query: &txt}, ReadOptions{As: "x", AtLeast: "p1"})
			return err
		}, memory.Graph{}, seen{Method: "GET", Path: "/v1/namespaces/ns/graph", Query: "as=x&at_least=p1&query=new"}},
		{"open graph", func(c *Client) error {
			_, err := GraphOf(c, "ns").Read(ctx, memory.GraphRequest{Names: []string{"a b", "c"}}, ReadOptions{})
			return err
		}, memory.Graph{}, seen{Method: "GET", Path: "/v1/namespaces/ns/graph", Query: "as=me&name=a+b&name=c"}},
		{"open nothing", func(c *Client) error {
			_, err := GraphOf(c, "ns").Read(ctx, memory.GraphRequest{Names: []string{}}, ReadOptions{})
			return err
		}, memory.Graph{}, seen{Method: "GET", Path: "/v1/namespaces/ns/graph", Query: "as=me&name="}},
		{"create", func(c *Client) error {
			_, err := c.CreateNamespace(ctx, memory.CreateNamespace{Name: "ns"})
			return err
		}, memory.Namespace{},
			seen{Method: "POST", Path: "/v1/namespaces", Agent: "me", Body: `{"name":"ns"}`}},
		{"namespaces", func(c *Client) error { _, err := c.Namespaces(ctx); return err }, memory.NamespaceList{},
			seen{Method: "GET", Path: "/v1/namespaces", Query: "limit=200"}},
		{"namespace", func(c *Client) error { _, err := c.Namespace(ctx, "ns"); return err }, memory.Namespace{},
			seen{Method: "GET", Path: "/v1/namespaces/ns"}},
		{"patch", func(c *Client) error {
			_, err := c.PatchNamespace(ctx, "ns", memory.PatchNamespace{Settings: map[string]*string{"a": &txt, "b": nil}})
			return err
		}, memory.Namespace{},
			seen{Method: "PATCH", Path: "/v1/namespaces/ns", Agent: "me", Body: `{"settings":{"a":"new","b":null}}`}},
		{"delete", func(c *Client) error { return c.DeleteNamespace(ctx, "ns") }, map[string]string{"name": "ns", "position": "p1"},
			seen{Method: "DELETE", Path: "/v1/namespaces/ns", Agent: "me"}},
		{"embedder", func(c *Client) error { _, err := c.Embedder(ctx, "ns"); return err }, memory.EmbedderStatus{},
			seen{Method: "GET", Path: "/v1/namespaces/ns/embedder"}},
		{"switch", func(c *Client) error {
			_, err := c.SwitchEmbedder(ctx, "ns", memory.SwitchEmbedder{Provider: "ollama", Model: "m:v1"})
			return err
		}, memory.EmbedderStatus{},
			seen{Method: "POST", Path: "/v1/namespaces/ns/embedder", Agent: "me", Body: `{"provider":"ollama","model":"m:v1"}`}},
		{"cancel", func(c *Client) error { _, err := c.CancelSwitch(ctx, "ns"); return err }, memory.EmbedderStatus{},
			seen{Method: "DELETE", Path: "/v1/namespaces/ns/embedder/building", Agent: "me"}},
		{"status", func(c *Client) error { _, err := c.Status(ctx); return err }, memory.Status{}, seen{Method: "GET", Path: "/v1/status"}},
		{"cluster", func(c *Client) error { _, err := c.Cluster().Status(ctx); return err }, memory.ClusterStatus{}, seen{Method: "GET", Path: "/v1/cluster"}},
		{"remove", func(c *Client) error {
			_, err := c.Cluster().Remove(ctx, memory.RemoveNode{Node: "n3", Force: true})
			return err
		}, memory.NodeRemoval{}, seen{Method: "POST", Path: "/v1/admin/cluster/remove", Agent: "me", Body: `{"node":"n3","force":true}`}},
		{"transfer", func(c *Client) error {
			_, err := c.Cluster().Transfer(ctx, memory.TransferLead{Node: "n3"})
			return err
		}, memory.LeadTransfer{}, seen{Method: "POST", Path: "/v1/admin/cluster/transfer", Agent: "me", Body: `{"node":"n3"}`}},
		{"drain", func(c *Client) error {
			_, err := c.Cluster().Drain(ctx, memory.DrainNode{Undo: true})
			return err
		}, memory.NodeDrain{}, seen{Method: "POST", Path: "/v1/admin/cluster/drain", Agent: "me", Body: `{"undo":true}`}},
		{"put in quarantine", func(c *Client) error {
			_, err := c.Cluster().Quarantine(ctx, memory.PutInQuarantine{Position: "p0.1.2.3", Reason: "why"})
			return err
		}, memory.InQuarantine{}, seen{Method: "POST", Path: "/v1/admin/quarantine", Agent: "me", Body: `{"position":"p0.1.2.3","reason":"why"}`}},
		{"version", func(c *Client) error { _, err := c.Version(ctx); return err }, memory.VersionInfo{}, seen{Method: "GET", Path: "/v1/admin/version"}},
		{"doctor", func(c *Client) error { _, err := c.Doctor(ctx); return err }, memory.DoctorReport{}, seen{Method: "GET", Path: "/v1/admin/doctor"}},
		{"rejected", func(c *Client) error { _, err := c.Rejected(ctx); return err }, memory.RejectedList{}, seen{Method: "GET", Path: "/v1/admin/rejected"}},
		{"quarantine", func(c *Client) error { _, err := c.Quarantine(ctx); return err }, memory.QuarantineList{}, seen{Method: "GET", Path: "/v1/admin/quarantine"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, rec := serve(t, Options{Token: "tok", Agent: "me"}, reply(c.answer))
			if err := c.call(cl); err != nil {
				t.Fatal(err)
			}
			got := rec.requests()
			c.want.Auth, c.want.Accept = "Bearer tok", "application/json, application/problem+json"
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("sent\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// TestANameThatIsMissingWasNotFound: "" had the node say that there is nothing at
// /v1/namespaces//events.
func TestANameThatIsMissingWasNotFound(t *testing.T) {
	c, asked := serve(t, Options{}, reply(memory.Record{}))
	ctx := t.Context()
	for what, call := range map[string]func() error{
		"a namespace": func() error { _, err := c.Capture(ctx, "", memory.Capture{Text: "x"}, CaptureOptions{}); return err },
		"an id":       func() error { _, err := c.Get(ctx, "ns", "", GetOptions{}); return err },
	} {
		if err := call(); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), "is not "+what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(asked.requests()); n != 0 {
		t.Errorf("the node was asked %d times", n)
	}
}

func TestProblemsBecomeErrors(t *testing.T) {
	for _, code := range memory.Codes() {
		if code == memory.CodeInternal {
			continue // its details stay on the server
		}
		cl, _ := serve(t, Options{}, refuse(memory.Errorf(code, "no %s", code).WithHint("do this"), "Retry-After", "7"))
		_, err := cl.Status(t.Context())
		var e *memory.Error
		if !errors.As(err, &e) || e.Code != code || e.Message != "no "+string(code) || e.Hint != "do this" || e.RetryAfter != 7*time.Second {
			t.Errorf("%s: got %#v", code, err)
		}
	}
}

func TestAnswersOfOthersBecomeErrors(t *testing.T) {
	for status, code := range map[int]memory.Code{400: memory.CodeInvalid, 401: memory.CodeUnauthenticated, 403: memory.CodeForbidden, 404: memory.CodeNotFound,
		409: memory.CodeConflict, 410: memory.CodeGone, 412: memory.CodeConflict, 413: memory.CodeTooLarge, 418: memory.CodeInvalid, 429: memory.CodeOverloaded,
		500: memory.CodeInternal, 502: memory.CodeUnavailable, 503: memory.CodeUnavailable, 504: memory.CodeTimeout, 507: memory.CodeNoSpace} {
		cl, _ := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>no</html>")
		})
		_, err := cl.Status(t.Context())
		e := memory.AsError(err)
		if e.Code != code || !strings.Contains(e.Message, cl.Addr()) || e.RetryAfter != 0 {
			t.Errorf("%d: got %v (%s)", status, err, e.Code)
		}
	}
}

func TestAnUnreachableNodeIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	cl, err := New(addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Close() }()
	for name, call := range map[string]func() error{
		"read":  func() error { _, err := cl.Status(t.Context()); return err },
		"write": func() error { _, err := cl.Capture(t.Context(), "ns", memory.Capture{}, CaptureOptions{}); return err },
	} {
		e := memory.AsError(call())
		if e.Code != memory.CodeUnavailable || !strings.Contains(e.Message, addr) || !strings.Contains(e.Hint, "memnode") {
			t.Errorf("%s: %s: %s, hint %s", name, e.Code, e.Message, e.Hint)
		}
	}
}

// TestGreetingOfNATSWasPrintedWhole as a status line that is malformed, with the advice
// to see whether memnode still runs there; a write was said to have an unknown outcome.
func TestGreetingOfNATSWasPrintedWhole(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1)) // a request has begun, so there is one way to read the greeting
			_, _ = io.WriteString(conn, `INFO {"server_id":"NDBHWV","version":"2.15.2"}`+"\r\n")
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	defer func() { _ = l.Close(); <-served }()
	cl, err := New(l.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Close() }()
	for name, call := range map[string]func() error{
		"read":  func() error { _, err := cl.Status(t.Context()); return err },
		"write": func() error { _, err := cl.Capture(t.Context(), "ns", memory.Capture{}, CaptureOptions{}); return err },
	} {
		e := memory.AsError(call())
		if e.Code != memory.CodeUnavailable || !strings.Contains(e.Message, "NATS") || strings.Contains(e.Message, "server_id") || !strings.Contains(e.Hint, "HTTP address") {
			t.Errorf("%s: %s: %s, hint %s", name, e.Code, e.Message, e.Hint)
		}
	}
}

func TestAReadThatLosesItsAnswerIsUnavailable(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{"lost": lose, "cut off": text(`{"cluster`), "not JSON": text("hello")} {
		cl, _ := serve(t, Options{}, h)
		if _, err := cl.Status(t.Context()); memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheContextEndsACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	block := func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}
	cl, _ := serve(t, Options{}, block)
	if _, err := cl.Status(ctx); memory.CodeOf(err) != memory.CodeTimeout || !errors.Is(err, context.Canceled) {
		t.Errorf("under way: %v", err)
	}
	if _, err := cl.Status(ctx); memory.CodeOf(err) != memory.CodeTimeout || !errors.Is(err, context.Canceled) {
		t.Errorf("before: %v", err)
	}
	dead, cancel2 := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel2()
	if _, err := cl.Status(dead); memory.CodeOf(err) != memory.CodeTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	ctx3, cancel3 := context.WithCancel(t.Context())
	cl3, rec := serve(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel3()
		<-r.Context().Done()
	})
	_, err := cl3.Capture(ctx3, "ns", memory.Capture{ID: "k"}, CaptureOptions{})
	if memory.CodeOf(err) != memory.CodeOutcomeUnknown || !errors.Is(err, context.Canceled) || !strings.Contains(memory.AsError(err).Hint, "k") {
		t.Errorf("write: %v", err)
	}
	if n := len(rec.requests()); n != 1 {
		t.Errorf("%d requests after the context ended", n)
	}
}

func TestGetByURIFindsNothing(t *testing.T) {
	cl, rec := serve(t, Options{}, reply(memory.RecordList{}))
	if _, err := cl.GetByURI(t.Context(), "ns", "a", ReadOptions{}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("error %v", err)
	}
	if _, err := cl.GetByURI(t.Context(), "ns", "mem://other/a", ReadOptions{}); memory.CodeOf(err) != memory.CodeInvalid || len(rec.requests()) != 1 {
		t.Errorf("another namespace: error %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{"": DefaultAddr, "host:1": "http://host:1", ":8": "http://127.0.0.1:8", "https://h/p/": "https://h/p", "localhost": "http://localhost:8787", "[::1]": "http://[::1]:8787", "http://web": "http://web",
		"h:1/v1": "http://h:1", "https://h/p/v1/": "https://h/p", " http://h:2/ ": "http://h:2", "[::1]:9": "http://[::1]:9", "unix:///run/mneme/admin.sock": "/run/mneme/admin.sock"} {
		c, err := New(in, Options{})
		if err != nil || c.Addr() != want {
			t.Errorf("New(%q): %v, want %s", in, err, want)
		}
	}
	for _, in := range []string{"ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#x", "http://[", "::", "unix://admin.sock", "unix://", "unix:/admin.sock", "unix:admin.sock"} {
		if _, err := New(in, Options{}); memory.CodeOf(err) != memory.CodeInvalid || strings.Contains(err.Error(), "u:p") {
			t.Errorf("New(%q): %v", in, err)
		}
	}
	if _, err := New("", Options{Agent: "No"}); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("a bad agent: %v", err)
	}
}

func TestLongActionsReportProgress(t *testing.T) {
	lines := `{"progress":{"done":1,"total":2}}` + "\n" + `{"progress":{"done":2,"total":2,"unit":"events"}}` + "\n" + `{"result":{"shards":[{"id":0,"state_hash":"h","ok":true,"epoch":3}]}}` + "\n"
	cl, rec := serve(t, Options{}, ndjson(lines))
	var got []memory.Progress
	keep := func(p memory.Progress) { got = append(got, p) }
	rb, err := cl.Rebuild(t.Context(), keep)
	if err != nil || rb.Shards[0].StateHash != "h" {
		t.Fatalf("rebuild %+v, %v", rb, err)
	}
	if want := []memory.Progress{{Done: 1, Total: 2}, {Done: 2, Total: 2, Unit: "events"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("progress %+v", got)
	}
	if v, err := cl.VerifyLog(t.Context(), nil); err != nil || !v.Shards[0].OK {
		t.Errorf("verify %+v, %v", v, err)
	}
	if r, err := cl.RepairLog(t.Context(), nil); err != nil || r.Shards[0].Epoch != 3 {
		t.Errorf("repair %+v, %v", r, err)
	}
	for i, path := range []string{"/v1/admin/rebuild", "/v1/admin/log/verify", "/v1/admin/log/repair"} {
		if r := rec.requests()[i]; r.Method != "POST" || r.Path != path || !strings.HasPrefix(r.Accept, "application/x-ndjson") {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func TestLongActionsFail(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		code memory.Code
	}{
		"at once":    {refuse(memory.Errorf(memory.CodeForbidden, "no")), memory.CodeForbidden},
		"later":      {ndjson(`{"progress":{"done":1}}{"error":{"detail":"full","code":"no_space"}}`), memory.CodeNoSpace},
		"cut off":    {ndjson(`{"progress":{"done":1}}` + "\n"), memory.CodeOutcomeUnknown},
		"not a line": {ndjson(`<html>`), memory.CodeOutcomeUnknown},
	} {
		cl, _ := serve(t, Options{}, c.h)
		if _, err := cl.RepairLog(t.Context(), nil); memory.CodeOf(err) != c.code {
			t.Errorf("%s: %v (%s)", name, err, memory.CodeOf(err))
		}
	}
	cl, _ := serve(t, Options{}, text(""))
	if _, err := cl.VerifyLog(t.Context(), nil); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a verify changes nothing: %v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestBackups(t *testing.T) {
	good := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Trailer", "Mneme-Position, Mneme-Frames")
		w.Header().Set("Mneme-Events", "12")
		_, _ = io.WriteString(w, r.URL.Path)
		w.Header().Set("Mneme-Position", "p9")
		w.Header().Set("Mneme-Frames", "many")
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	cl, _ := serve(t, Options{}, good, good, cut, good, refuse(memory.Errorf(memory.CodeForbidden, "no")))
	var b bytes.Buffer
	var last memory.Progress
	rep, err := cl.Backups().Log(t.Context(), &b, "", func(p memory.Progress) { last = p })
	if err != nil || b.String() != "/v1/admin/backup/log" || rep != (memory.BackupReport{Position: "p9", Events: 12, Bytes: int64(b.Len())}) {
		t.Errorf("log: %q, %+v, %v", b.String(), rep, err)
	}
	if last.Done != uint64(b.Len()) || last.Unit != "bytes" {
		t.Errorf("progress %+v", last)
	}
	b.Reset()
	if _, err := cl.Backups().Keys(t.Context(), &b, true, nil); err != nil || b.String() != "/v1/admin/backup/keys" {
		t.Errorf("keys: %q, %v", b.String(), err)
	}
	if _, err := cl.Backups().Log(t.Context(), io.Discard, "", nil); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("cut off: %v", err)
	}
	if _, err := cl.Backups().Log(t.Context(), fullDisk{}, "", nil); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("full disk: %v", err)
	}
	if _, err := cl.Backups().Log(t.Context(), io.Discard, "", nil); memory.CodeOf(err) != memory.CodeForbidden {
		t.Errorf("refused: %v", err)
	}
}
