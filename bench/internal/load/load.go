// Package load sends captures and searches to a node, as a bench program wants
// them: so many at once, or so many a second.
//
// Not its job: running the node (proc), finding texts (corpus), counting.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/bench/internal/corpus"
	"mneme/client"
	"mneme/memory"
)

// What every load has in common.
const (
	Namespace = "default"
	Agent     = "bench"
	BatchSize = 100 // captures in a request
	InFlight  = 64  // NATS requests
	TextSize  = 500 // bytes
	TalkSize  = 20  // captures of a conversation
	OpLimit   = 30 * time.Second
)

// NewClient makes a client that keeps enough connections for Parallel use.
func NewClient(addr string) (*client.Client, func(), error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	c, err := client.New(addr, client.Options{UserAgent: "mneme-bench", Agent: Agent, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return nil, nil, err
	}
	return c, transport.CloseIdleConnections, nil
}

// Parallel runs do(0..n-1) on workers goroutines and returns the first error,
// after which no further call begins.
func Parallel(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Paced calls do(i, due) rate times a second until d is over or ctx ends,
// each in a goroutine of its own so that a slow call does not delay the next;
// due is when it was to begin. More than limit calls at once are an error: the
// rate is not kept. It returns once all calls have.
func Paced(ctx context.Context, rate int, d time.Duration, limit int, do func(i int, due time.Time) error) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var running atomic.Int64
	failed := make(chan error, 1)
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range int(d.Seconds() * float64(rate)) {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-failed:
			return err
		case <-timer.C:
		}
		if running.Add(1) > int64(limit) {
			return fmt.Errorf("%d calls at once: the node does not keep up with %d/s", limit, rate)
		}
		wg.Go(func() {
			defer running.Add(-1)
			if err := do(i, due); err != nil {
				select {
				case failed <- err:
				default: // the first one is enough
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// Batches sends n texts, made by text, in batches over REST.
func Batches(ctx context.Context, c *client.Client, workers, n, size int, text func(i int) string) error {
	return Captures(ctx, c, workers, n, size, func(i int) memory.Capture { return memory.Capture{Agent: Agent, Text: text(i)} })
}

// Talks sends n texts as Batches does, so many of them in a row as one conversation.
func Talks(ctx context.Context, c *client.Client, workers, n, size int, text func(i int) string) error {
	return Captures(ctx, c, workers, n, size, func(i int) memory.Capture {
		return memory.Capture{Agent: Agent, Text: text(i), Conversation: fmt.Sprintf("talk-%d", i/TalkSize)}
	})
}

// Captures sends n captures in batches over REST.
func Captures(ctx context.Context, c *client.Client, workers, n, size int, capture func(i int) memory.Capture) error {
	return Parallel(ctx, workers, (n+size-1)/size, func(ctx context.Context, at int) error {
		items := make([]memory.Capture, 0, size)
		for i := at * size; i < min(n, (at+1)*size); i++ {
			items = append(items, capture(i))
		}
		return Batch(ctx, c, items)
	})
}

// Batch sends one batch and checks that each of it became a record.
func Batch(ctx context.Context, c *client.Client, items []memory.Capture) error {
	ctx, cancel := context.WithTimeout(ctx, OpLimit)
	defer cancel()
	answer, err := c.CaptureBatch(ctx, Namespace, items, client.CaptureOptions{Wait: memory.WaitApplied})
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	for _, r := range answer.Results {
		if r.Status != memory.StatusCreated {
			return fmt.Errorf("capture: status %s: %+v", r.Status, r.Error)
		}
	}
	return nil
}

// Requests sends n texts of TextSize bytes as NATS requests, which have ids from first on.
func Requests(ctx context.Context, url string, texts *corpus.Corpus, first, n int) error {
	nc, err := nats.Connect(url, nats.Name("mneme-bench"), nats.MaxReconnects(0))
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	defer nc.Close()
	subject := "mem.in." + Namespace + "." + Agent + ".capture"
	return Parallel(ctx, InFlight, n, func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, OpLimit)
		defer cancel()
		msg := &nats.Msg{Subject: subject, Data: []byte(texts.Sized(first+i, TextSize)), Header: nats.Header{}}
		msg.Header.Set(nats.MsgIdHdr, fmt.Sprintf("request-%d", first+i))
		msg.Header.Set("Content-Type", "text/plain") // a text may begin as JSON does
		answer, err := nc.RequestMsgWithContext(ctx, msg)
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		return CheckAck(answer.Data)
	})
}

// ErrNotAcked is wrapped by what CheckAck returns.
var ErrNotAcked = errors.New("not acknowledged as created")

// Search asks one query, without the floor: random words of a text are no question, and what
// is measured is the work for a whole answer. It returns how long the answer took, at the client.
func Search(ctx context.Context, c *client.Client, query string, mode memory.Mode) (time.Duration, memory.SearchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, OpLimit)
	defer cancel()
	began := time.Now()
	answer, err := c.Search(ctx, Namespace, memory.SearchRequest{Query: query, Mode: mode, MinScore: new(float64)})
	if err != nil {
		return 0, answer, fmt.Errorf("search %q: %w", query, err)
	}
	return time.Since(began), answer, nil
}
