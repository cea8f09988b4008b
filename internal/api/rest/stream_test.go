package rest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/auth"
	"mneme/memory"
)

// live serves a bench on a real connection.
func live(t *testing.T, change func(*Options)) (*bench, *httptest.Server) {
	t.Helper()
	b := newBench(t, change)
	srv := httptest.NewUnstartedServer(b.s)
	srv.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return auth.Local(ctx) }
	srv.Start()
	t.Cleanup(srv.Close)
	return b, srv
}

func newClient(t *testing.T, srv *httptest.Server) *client.Client {
	t.Helper()
	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func get(t *testing.T, url string, headers ...string) *http.Response {
	t.Helper()
	return fetch(t, http.MethodGet, url, headers...)
}

func fetch(t *testing.T, method, url string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return resp
}

func event(position string) memory.Event {
	return memory.Event{SpecVersion: "1.0", ID: "e", Source: "/namespaces/team", Type: "t", Data: []byte(`{"text":"a\nb"}`), Position: position}
}

func TestEventStream(t *testing.T) {
	b, srv := live(t, nil)
	b.f.events = func(_ context.Context, yield func(memory.Event) error) error {
		return errors.Join(yield(event("p0.1.1.0")), yield(event("")))
	}
	resp := get(t, srv.URL+eventsPath+"?from=p0.1.0.0&follow=false&as=me", "Last-Event-ID", "p0.1.0.9")
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "id: p0.1.1.0\ndata: {\"specversion\":\"1.0\",\"id\":\"e\",\"source\":\"/namespaces/team\",\"type\":\"t\",\"data\":{\"text\":\"a\\nb\"},\"position\":\"p0.1.1.0\"}\n\n" +
		"data: {\"specversion\":\"1.0\",\"id\":\"e\",\"source\":\"/namespaces/team\",\"type\":\"t\",\"data\":{\"text\":\"a\\nb\"}}\n\n"
	if string(body) != want || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s %q", resp.Header.Get("Content-Type"), body)
	}
	if call := b.lastCall(); call != `Events {"Namespace":"team","As":"me","AtLeast":"","Consistency":""} "p0.1.0.9" false` {
		t.Errorf("call %s", call)
	}
}

func TestEmptyEventStreamHasItsHeader(t *testing.T) {
	_, srv := live(t, nil)
	resp := get(t, srv.URL+eventsPath+"?follow=false")
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) != 0 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q %v %v", body, err, resp.Header)
	}
}

func TestQuietEventStreamBeatsAndEndsOnDrain(t *testing.T) {
	draining, drain := context.WithCancel(t.Context())
	defer drain()
	b, srv := live(t, func(o *Options) { o.Draining, o.Heartbeat = draining, time.Millisecond })
	b.f.events = func(ctx context.Context, _ func(memory.Event) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	resp := get(t, srv.URL+eventsPath)
	r := bufio.NewReader(resp.Body)
	for range 6 { // three comments
		line, err := r.ReadString('\n')
		if err != nil || line != ": \n" && line != "\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	drain()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("the end of a drained stream: %v", err)
	}
}

func TestEventStreamOfADrainingNodeIsRefused(t *testing.T) {
	draining, drain := context.WithCancel(t.Context())
	drain()
	b := newBench(t, func(o *Options) { o.Draining = draining })
	b.f.events = func(ctx context.Context, _ func(memory.Event) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	if p := problemOf(t, b.do("GET", eventsPath, "")); p.Code != memory.CodeUnavailable {
		t.Errorf("%+v", p)
	}
}

func TestEventStreamEndsWhenTheClientLeaves(t *testing.T) {
	b, srv := live(t, func(o *Options) { o.Heartbeat = time.Millisecond })
	ended := make(chan struct{})
	b.f.events = func(ctx context.Context, _ func(memory.Event) error) error {
		defer close(ended)
		<-ctx.Done()
		return ctx.Err()
	}
	resp := get(t, srv.URL+eventsPath)
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the reader still runs")
	}
}

func TestEventStreamThatFailsLaterSaysSo(t *testing.T) {
	for _, failure := range []error{memory.Errorf(memory.CodeLostPosition, "lost"), errDisk} {
		b := newBench(t, nil)
		b.f.events = func(_ context.Context, yield func(memory.Event) error) error {
			return errors.Join(yield(event("p0.1.1.0")), failure)
		}
		rec := b.do("GET", eventsPath, "")
		_, tail, found := strings.Cut(rec.Body.String(), "event: error\ndata: ")
		if !found || !strings.Contains(tail, `"code":"`+string(memory.CodeOf(failure))) || strings.Contains(tail, "secret") {
			t.Errorf("%s", rec.Body)
		}
	}
}

func TestClientReadsEvents(t *testing.T) {
	b, srv := live(t, nil)
	first := true
	b.f.events = func(_ context.Context, yield func(memory.Event) error) error {
		if !first {
			return memory.Errorf(memory.CodeLostPosition, "lost")
		}
		first = false
		return yield(event("p0.1.1.0"))
	}
	var got []string
	for ev, err := range newClient(t, srv).Events(t.Context(), "team", client.EventsOptions{From: "p0.1.0.0", Reconnect: time.Millisecond}) {
		if err != nil {
			if memory.CodeOf(err) != memory.CodeLostPosition {
				t.Fatal(err)
			}
			break
		}
		got = append(got, ev.Position)
	}
	if len(got) != 1 || !strings.Contains(b.lastCall(), `"p0.1.1.0" true`) {
		t.Errorf("got %v, resumed with %s", got, b.lastCall())
	}
}

func TestProgressIsSparseAndEndsWithTheResult(t *testing.T) {
	clock := time.Unix(0, 0)
	b := newBench(t, func(o *Options) { o.Now = func() time.Time { return clock } })
	b.f.long = func(progress func(done, total uint64)) error {
		for i := range uint64(100) {
			progress(i, 100)
		}
		clock = clock.Add(time.Second)
		progress(99, 100)
		progress(100, 100)
		return nil
	}
	rec := b.do("POST", "/v1/admin/rebuild", "")
	want := `{"progress":{"done":0,"total":100}}
{"progress":{"done":99,"total":100}}
{"progress":{"done":100,"total":100}}
{"result":{"shards":[{"id":0,"position":"","state_hash":"h","events":7,"took_ms":0}]}}
`
	if rec.Body.String() != want || rec.Header().Get("Content-Type") != mediaNDJSON {
		t.Errorf("%s", rec.Body)
	}
}

func TestLongActionThatFailsLaterSaysSo(t *testing.T) {
	for _, failure := range []error{memory.Errorf(memory.CodeNoSpace, "full"), errDisk} {
		b := newBench(t, nil)
		b.f.long = func(progress func(done, total uint64)) error {
			progress(1, 0)
			return failure
		}
		rec := b.do("POST", "/v1/admin/log/verify", "")
		last := rec.Body.String()[strings.Index(rec.Body.String(), "\n")+1:]
		if rec.Code != 200 || !strings.HasPrefix(last, `{"error":{`) || !strings.Contains(last, string(memory.CodeOf(failure))) || strings.Contains(last, "secret") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
}

func TestProgressAfterTheEndIsDropped(t *testing.T) {
	b := newBench(t, nil)
	var late func(done, total uint64)
	b.f.long = func(progress func(done, total uint64)) error { late = progress; return nil }
	rec := b.do("POST", "/v1/admin/log/repair", "")
	before := rec.Body.String()
	late(5, 5)
	if rec.Body.String() != before {
		t.Errorf("%s", rec.Body)
	}
}

func TestClientRunsLongActions(t *testing.T) {
	b, srv := live(t, nil)
	b.f.long = func(progress func(done, total uint64)) error { progress(3, 3); return nil }
	c := newClient(t, srv)
	var seen memory.Progress
	report, err := c.Rebuild(t.Context(), func(p memory.Progress) { seen = p })
	if err != nil || seen.Done != 3 || report.Shards[0].StateHash != "h" {
		t.Errorf("%+v %+v %v", report, seen, err)
	}
	if _, err := c.VerifyLog(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if report, err := c.RepairLog(t.Context(), nil); err != nil || report.Shards[0].Epoch != 2 {
		t.Errorf("%+v %v", report, err)
	}
	if v, err := c.Version(t.Context()); err != nil || v.Version != "1.2.3" {
		t.Errorf("%+v %v", v, err)
	}
}

func TestBackup(t *testing.T) {
	b, srv := live(t, nil)
	b.f.backup = func(w io.Writer) error {
		_, err := io.WriteString(w, "the bytes")
		return err
	}
	c := newClient(t, srv)
	var out strings.Builder
	report, err := c.Backups().Log(t.Context(), &out, "", nil)
	if err != nil || out.String() != "the bytes" || report != (memory.BackupReport{Position: "p0.1.9.0", Frames: 5, Events: 6, Bytes: 9, StateHash: "9f2c", PipelineVersion: 3}) {
		t.Errorf("%q %+v %v", out.String(), report, err)
	}
	if _, err := c.Backups().Log(t.Context(), io.Discard, "0.5.1.2.ab,1", nil); err != nil || b.lastCall() != `BackupLog "0.5.1.2.ab,1"` {
		t.Errorf("%v %s", err, b.lastCall())
	}
	if d, err := c.Backups().Destroyed(t.Context()); err != nil || d.ClusterID != "c" || len(d.Keys) != 1 {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := c.Backups().Keys(t.Context(), io.Discard, true, nil); err != nil || b.lastCall() != "BackupKeys true" {
		t.Errorf("%v %s", err, b.lastCall())
	}
	b.f.backup = nil
	resp := fetch(t, "POST", srv.URL+"/v1/admin/backup/keys")
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) != 0 || b.lastCall() != "BackupKeys false" || resp.Trailer.Get("Mneme-Frames") != "5" {
		t.Errorf("%q %v %s %v", body, err, b.lastCall(), resp.Trailer)
	}
	b.f.backup = func(io.Writer) error { return memory.Errorf(memory.CodeUnavailable, "not now") }
	resp = get(t, srv.URL+"/v1/admin/backup/log")
	if resp.StatusCode != 503 || resp.Header.Get("Trailer") != "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

func TestBackupThatFailsLaterIsBrokenOff(t *testing.T) {
	b, srv := live(t, nil)
	b.f.backup = func(w io.Writer) error {
		_, err := w.Write(make([]byte, 64<<10)) // more than the server's buffer
		return errors.Join(err, errDisk)
	}
	_, err := newClient(t, srv).Backups().Log(t.Context(), io.Discard, "", nil)
	if err == nil || !strings.Contains(memory.AsError(err).Hint, "not a backup") {
		t.Errorf("error = %v", err)
	}
}

func TestExport(t *testing.T) {
	b := newBench(t, nil)
	b.f.export = func(yield func(memory.ExportLine) error) error {
		line := memory.ExportLine{Capture: memory.Capture{Agent: "a", Text: "t"}, RecordID: recordID, Version: 1, Position: "p", CreatedAt: day}
		return errors.Join(yield(line), yield(line))
	}
	rec := b.do("GET", "/v1/namespaces/team/export?as=a", "")
	line := `{"agent":"a","text":"t","record_id":"` + recordID + `","version":1,"position":"p","created_at":"2026-01-02T03:04:05Z"}` + "\n"
	if rec.Body.String() != line+line {
		t.Errorf("%s", rec.Body)
	}
	b.f.export = nil
	if rec := b.do("GET", "/v1/namespaces/team/export", ""); rec.Code != 200 || rec.Header().Get("Content-Type") != mediaNDJSON || rec.Body.Len() != 0 {
		t.Errorf("empty: %d %v %s", rec.Code, rec.Header(), rec.Body)
	}
}

func TestExportThatFailsLaterIsBrokenOff(t *testing.T) {
	b, srv := live(t, nil)
	b.f.export = func(yield func(memory.ExportLine) error) error {
		return errors.Join(yield(memory.ExportLine{}), memory.Errorf(memory.CodeUnavailable, "stop"))
	}
	resp := get(t, srv.URL+"/v1/namespaces/team/export")
	if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the end of half an export: %v", err)
	}
}

func TestUnencodableLines(t *testing.T) {
	b := newBench(t, nil)
	b.f.export = func(yield func(memory.ExportLine) error) error {
		return yield(memory.ExportLine{Capture: memory.Capture{Metadata: []byte("{")}})
	}
	if p := problemOf(t, b.do("GET", "/v1/namespaces/team/export", "")); p.Code != memory.CodeInternal {
		t.Errorf("%+v", p)
	}
	b.f.events = func(_ context.Context, yield func(memory.Event) error) error {
		return yield(memory.Event{Data: []byte("{")})
	}
	if p := problemOf(t, b.do("GET", eventsPath, "")); p.Code != memory.CodeInternal {
		t.Errorf("%+v", p)
	}
}

// The deadline of a stream's last write must not reach the next request on the
// same connection.
func TestConnectionIsUsableAfterAStream(t *testing.T) {
	const limit = 30 * time.Millisecond
	_, srv := live(t, func(o *Options) { o.SendLimit = limit })
	reused := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused {
			reused++
		}
	}})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, path := range []string{"/v1/namespaces/team/export", "/v1/status", "/v1/namespaces/team/export", "/v1/status"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * limit) // the deadline of the last write passes
	}
	if reused != 3 {
		t.Errorf("the connection was used again %d times: this test shows nothing", reused)
	}
}

// TestExportThatWasEndedSaidNothing: a reader whose export was ended saw a broken
// stream, and not why.
func TestExportThatWasEndedSaidNothing(t *testing.T) {
	b, srv := live(t, nil)
	defer http.DefaultClient.CloseIdleConnections()
	b.f.export = func(yield func(memory.ExportLine) error) error {
		return errors.Join(yield(memory.ExportLine{RecordID: recordID}), memory.Errorf(memory.CodeUnavailable, "ended").WithHint("export again"))
	}
	resp, err := http.Get(srv.URL + "/v1/namespaces/team/export")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil || !strings.Contains(string(answer), recordID) || !strings.Contains(string(answer), "\n{\"error\":{") || !strings.Contains(string(answer), "export again") {
		t.Errorf("%v %s", err, answer)
	}
}
