package rest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"mneme/memory"
)

func batchOf(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// TestAnswersToBatchesWereNotCounted: 1,900 connections that sent 1,000 wrong items
// each, in 59 KB, held 3.4 GB. There has to be room for the answer before anything is
// written, since what a write did has to be told.
func TestAnswersToBatchesWereNotCounted(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxResults = 1_000_000 })
	b.remote = true
	writes, end := make(chan struct{}), make(chan struct{})
	b.f.capture = func(_ context.Context, items []memory.Capture, _ memory.Wait) (memory.CaptureResponse, error) {
		writes <- struct{}{}
		<-end
		return memory.CaptureResponse{Position: "p0.1.1.0", Results: make([]memory.CaptureResult, len(items))}, nil
	}
	url := served(t, b, false)
	defer http.DefaultClient.CloseIdleConnections()
	send := func(n int) int {
		resp, err := http.Post(url+eventsPath, "application/json", strings.NewReader(batchOf(n, `{"agent":"a","text":"x"}`)))
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	first := make(chan int)
	go func() { first <- send(1000) }()
	<-writes
	if rec := b.do("POST", eventsPath, batchOf(1000, "1")); rec.Code != http.StatusTooManyRequests || problemOf(t, rec).Hint == "" {
		t.Errorf("a second batch: %d %.300s", rec.Code, rec.Body)
	}
	if rec := b.do("POST", eventsPath, batchOf(100, "1")); rec.Code != 200 {
		t.Errorf("a small batch: %d %.300s", rec.Code, rec.Body)
	}
	b.remote = false
	if rec := b.do("POST", eventsPath, batchOf(1000, "1")); rec.Code != 200 {
		t.Errorf("through the admin socket: %d %.300s", rec.Code, rec.Body)
	}
	close(end)
	if status := <-first; status != 200 {
		t.Errorf("the first batch: %d", status)
	}
	eventually(t, "the answer is still counted", func() bool { return b.s.results.used.Load() == 0 })
}

// TestHintOfABatchIsGivenOnce: each of 1,000 items was told what the known fields are.
func TestHintOfABatchIsGivenOnce(t *testing.T) {
	b := newBench(t, nil)
	rec := b.do("POST", eventsPath, batchOf(1000, `{"agent":"a","txt":"x"}`))
	if n := strings.Count(rec.Body.String(), "known fields are"); rec.Code != 200 || n != 1 {
		t.Errorf("%d, the hint is given %d times", rec.Code, n)
	}
	if rec.Body.Len() > 1000*resultBytes {
		t.Errorf("%d bytes are answered", rec.Body.Len())
	}
}
