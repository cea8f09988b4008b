package rest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mneme/memory"
)

// crowd is a reader whose pages are being made until the test lets them end.
type crowd struct {
	Reader
	now, most atomic.Int64
	end       chan struct{}
}

func (c *crowd) List(ctx context.Context, _ memory.Access, _ memory.ListRequest) (memory.RecordList, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for m := c.most.Load(); n > m && !c.most.CompareAndSwap(m, n); m = c.most.Load() {
	}
	<-c.end
	return memory.RecordList{Records: []memory.Record{record()}}, nil
}

// TestPagesBeingMadeWereUnbounded: an answer was counted only once it had been made
// and encoded. 300 connections held 8 GB.
func TestPagesBeingMadeWereUnbounded(t *testing.T) {
	const asked, limit = 100, 5
	c := &crowd{end: make(chan struct{})}
	b := newBench(t, func(o *Options) { c.Reader, o.Reader, o.MaxPages, o.ReadWait = o.Reader, c, limit, time.Millisecond })
	url := served(t, b, false)
	defer http.DefaultClient.CloseIdleConnections()
	var all sync.WaitGroup
	var refused atomic.Int64
	statuses := make(chan int, asked)
	for range asked {
		all.Go(func() {
			resp, err := http.Get(url + "/v1/namespaces/team/records")
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusTooManyRequests {
				refused.Add(1)
			}
			statuses <- resp.StatusCode
		})
	}
	// Without a bound all are being made, and none is refused.
	eventually(t, "more are neither made nor refused", func() bool { return c.now.Load()+refused.Load() == asked })
	close(c.end)
	all.Wait()
	close(statuses)
	got := map[int]int{}
	for status := range statuses {
		got[status]++
	}
	if c.most.Load() != limit || got[200] != limit || got[429] != asked-limit {
		t.Errorf("%d pages were made side by side; statuses %v", c.most.Load(), got)
	}
}

// TestReadsOfOneSortKeepNoOtherAway fills the bulkhead of each sort in turn: only what
// belongs to that sort is refused, with a remedy, and nothing through the admin
// socket.
func TestReadsOfOneSortKeepNoOtherAway(t *testing.T) {
	b := newBench(t, func(o *Options) { o.ReadWait = time.Nanosecond; o.MaxStreams = 1 })
	const ns = "/v1/namespaces/team"
	reads := map[*bulkhead][]string{
		b.s.bulkheads.gets:     {ns, ns + "/embedder", ns + "/records/" + recordID, ns + "/records?uri=a"},
		b.s.bulkheads.pages:    {"/v1/namespaces", ns + "/records", ns + "/audit", ns + "/audit/reads", ns + "/records/" + recordID + "/history", ns + "/records/" + recordID + "/timeline"},
		b.s.bulkheads.searches: {ns + "/search"},
		b.s.bulkheads.exports:  {ns + "/export"},
		b.s.bulkheads.streams:  {ns + "/events?follow=false"},
		nil:                    {"/livez", "/readyz", "/v1/status", "/metrics", "/", "/v1/admin/version"},
	}
	ask := func(path string) (int, string) {
		method, body := "GET", ""
		if strings.HasSuffix(path, "/search") {
			method, body = "POST", `{"query":"x"}`
		}
		rec := b.do(method, path, body)
		return rec.Code, rec.Body.String()
	}
	for full := range reads {
		if full == nil {
			continue
		}
		for full.slots.Take() {
		}
		for g, paths := range reads {
			for _, path := range paths {
				b.remote = path != "/v1/admin/version"
				status, body := ask(path)
				if refused := status == http.StatusTooManyRequests; refused != (g == full) || refused && !strings.Contains(body, `"hint"`) || !refused && status != 200 {
					t.Errorf("%s while there are too many %s: %d %s", path, full.what, status, body)
				}
				if b.remote = false; g == full {
					if status, body := ask(path); status != 200 {
						t.Errorf("%s through the admin socket: %d %s", path, status, body)
					}
				}
			}
		}
		for full.slots.Taken() > 0 {
			full.slots.Leave()
		}
	}
}

// TestReadWaitsForItsTurn: a page that comes while others are made is refused when
// none has ended within the time, and not at once.
func TestReadWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.MaxPages = 1 })
		g := b.s.bulkheads.pages
		leave, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan error, 1)
		ask := func() {
			leave, err := g.enter(t.Context())
			if err == nil {
				leave()
			}
			entered <- err
		}
		begun := time.Now()
		go ask()
		if err := <-entered; memory.CodeOf(err) != memory.CodeOverloaded || time.Since(begun) != b.s.ReadWait {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		go ask()
		synctest.Wait()
		if len(entered) != 0 {
			t.Fatal("it did not wait")
		}
		leave()
		if err := <-entered; err != nil || g.slots.Taken() != 0 {
			t.Errorf("%v, %d turns are taken", err, g.slots.Taken())
		}
	})
}
