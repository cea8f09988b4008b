package main

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

const (
	namespace = "default"
	agent     = "bench"
	batch     = 100 // captures in a request
	inFlight  = 64  // NATS requests
	textSize  = 500 // bytes
	opLimit   = 30 * time.Second
)

// newClient makes a client that keeps enough connections for parallel use.
func newClient(addr string) (*client.Client, func(), error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	c, err := client.New(addr, client.Options{UserAgent: "mneme-bench", Agent: agent, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return nil, nil, err
	}
	return c, transport.CloseIdleConnections, nil
}

// parallel runs do(0..n-1) on workers goroutines and returns the first error,
// after which no further call begins.
func parallel(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
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

// paced calls do(i, due) rate times a second until d is over or ctx ends,
// each in a goroutine of its own so that a slow call does not delay the next;
// due is when it was to begin. More than limit calls at once are an error: the
// rate is not kept. It returns once all calls have.
func paced(ctx context.Context, rate int, d time.Duration, limit int, do func(i int, due time.Time) error) error {
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

// captureBatches sends n texts, made by text, in batches over REST.
func captureBatches(ctx context.Context, c *client.Client, workers, n, size int, text func(i int) string) error {
	return parallel(ctx, workers, (n+size-1)/size, func(ctx context.Context, at int) error {
		items := make([]memory.Capture, 0, size)
		for i := at * size; i < min(n, (at+1)*size); i++ {
			items = append(items, memory.Capture{Agent: agent, Text: text(i)})
		}
		return captureBatch(ctx, c, items)
	})
}

func captureBatch(ctx context.Context, c *client.Client, items []memory.Capture) error {
	ctx, cancel := context.WithTimeout(ctx, opLimit)
	defer cancel()
	answer, err := c.CaptureBatch(ctx, namespace, items, client.CaptureOptions{Wait: memory.WaitApplied})
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

// captureRequests sends n texts of textSize bytes as NATS requests.
func captureRequests(ctx context.Context, url string, texts *corpus.Corpus, n int) error {
	nc, err := nats.Connect(url, nats.Name("mneme-bench"), nats.MaxReconnects(0))
	if err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	defer nc.Close()
	subject := "mem.in." + namespace + "." + agent + ".capture"
	return parallel(ctx, inFlight, n, func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, opLimit)
		defer cancel()
		msg := &nats.Msg{Subject: subject, Data: []byte(texts.Sized(i, textSize)), Header: nats.Header{}}
		msg.Header.Set(nats.MsgIdHdr, fmt.Sprintf("request-%d", i))
		answer, err := nc.RequestMsgWithContext(ctx, msg)
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
		return checkAck(answer.Data)
	})
}

// errNotAcked is wrapped by what checkAck returns.
var errNotAcked = errors.New("not acknowledged as created")
