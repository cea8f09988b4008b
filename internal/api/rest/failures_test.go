package rest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// TestBodyTooLongByItsOwnWordIsNotAskedFor: a Content-Length over the limit was still
// answered with 100 Continue, and the body sent for nothing.
func TestBodyTooLongByItsOwnWordIsNotAskedFor(t *testing.T) {
	b := newBench(t, nil)
	addr := strings.TrimPrefix(served(t, b, false), "http://")
	for path, length := range map[string]int{eventsPath: memory.MaxBatchBytes + 1, searchPath: maxSmallBody + 1} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", path, length); err != nil {
			t.Fatal(err)
		}
		if status, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(status, " 413 ") {
			t.Errorf("%s: %q %v", path, status, err)
		}
	}
}

// TestAbortedExportsFilledTheLog: each wrote a line of level ERROR, in the words of
// the connection.
func TestAbortedExportsFilledTheLog(t *testing.T) {
	b := newBench(t, nil)
	b.f.export = func(yield func(memory.ExportLine) error) (err error) {
		for err == nil {
			err = yield(memory.ExportLine{Capture: memory.Capture{Text: strings.Repeat("x", 1<<16)}})
		}
		return err
	}
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		b.s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/v1/namespaces/team/export")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	<-ended
	if log := b.written(); strings.Contains(log, "ERROR") || strings.Contains(log, "WARN") {
		t.Errorf("%.500s", log)
	}
}

// TestFailuresAreLoggedAtARate: callers can cause more of them than a log should hold.
func TestFailuresAreLoggedAtARate(t *testing.T) {
	at := day
	b := newBench(t, func(o *Options) { o.Now = func() time.Time { return at } })
	b.f.fail["Get"] = errDisk
	ask := func(n int) {
		for range n {
			if rec := b.do("GET", "/v1/namespaces/team/records/"+recordID, ""); rec.Code != 500 {
				t.Fatal(rec.Code)
			}
		}
	}
	ask(maxFailures + 40)
	if n := strings.Count(b.written(), "level=ERROR"); n != maxFailures {
		t.Errorf("%d lines in a minute", n)
	}
	at = at.Add(time.Minute)
	ask(1)
	if log := b.written(); strings.Count(log, "level=ERROR") != maxFailures+1 || !strings.Contains(log, "left_out=40") {
		t.Errorf("%s", log[max(0, len(log)-300):])
	}
	b.f.fail["Get"] = errors.Join(memory.Errorf(memory.CodeNotFound, "no"))
	if rec := b.do("GET", "/v1/namespaces/team/records/"+recordID, ""); rec.Code != 404 || strings.Count(b.written(), "level=") != maxFailures+1 {
		t.Errorf("a refusal is no failure: %d", rec.Code)
	}
}
