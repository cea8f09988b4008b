package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"mneme/internal/peer"
	"mneme/internal/spans"
)

// Why a call has no answer. An error that is neither is the method's own.
var (
	// ErrNotReached: the other node has not seen the call.
	ErrNotReached = errors.New("the node was not reached")
	// ErrNoAnswer: the other node may have carried out the call, or not.
	ErrNoAnswer = errors.New("the node did not answer")
)

// Target is a node and where it is reached. Without Node, whoever is there is meant.
type Target struct{ Addr, Node string }

func (t Target) String() string {
	if t.Node == "" {
		return t.Addr
	}
	return t.Node + " at " + t.Addr
}

// Client calls one service of peers, over connections that it keeps. It may be used
// concurrently.
type Client struct {
	port      *peer.Port
	service   string
	maxAnswer int64

	mu     sync.Mutex
	to     map[Target]*http.Transport
	closed bool
}

// NewClient returns a client of a service, whose answers are small.
func NewClient(port *peer.Port, service string) *Client {
	return &Client{port: port, service: service, maxAnswer: maxSmall, to: map[Target]*http.Transport{}}
}

// NewLargeClient returns a client of a service that ServeLarge answers.
func NewLargeClient(port *peer.Port, service string) *Client {
	return &Client{port: port, service: service, maxAnswer: maxLarge, to: map[Target]*http.Transport{}}
}

// Close closes the connections that no call uses; calls under way go on.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, t := range c.to {
		t.CloseIdleConnections()
	}
	c.to = nil
}

// MaxConnections is how many connections there are to each node, used or kept: further calls
// wait for one. Without a bound whatever thousands of agents send again, once nodes come
// back, opens as many connections to the one that leads, and nothing else gets through:
// neither heartbeats nor the log.
const MaxConnections = 64

func (c *Client) transport(to Target) (*http.Transport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("%w: %w", ErrNotReached, net.ErrClosed)
	}
	t := c.to[to]
	if t == nil {
		t = &http.Transport{DisableCompression: true, MaxConnsPerHost: MaxConnections, MaxIdleConnsPerHost: MaxConnections, IdleConnTimeout: idleTimeout / 2, MaxResponseHeaderBytes: maxHeader,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return c.port.Dial(ctx, to.Addr, to.Node, c.service)
			}}
		c.to[to] = t
	}
	return t, nil
}

// Call asks a node for a method and decodes what it answers into out, a pointer or nil.
// Errors: ErrNotReached, ErrNoAnswer, both with what happened, such as an error of the
// peer port or of ctx; and those of the method, *memory.Error. A method that panicked is
// ErrNoAnswer and memory.CodeInternal, an answer that is too long ErrNoAnswer.
func (c *Client) Call(ctx context.Context, to Target, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%w: call %s: %w", ErrNotReached, method, err)
	}
	t, err := c.transport(to)
	if err != nil {
		return err
	}
	var connected atomic.Bool // from then on the other node may see the call
	watched := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(watched, http.MethodPost, "http://peer/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: call %s: %w", ErrNotReached, method, err)
	}
	if trace := spans.Outgoing(ctx); trace != "" {
		req.Header.Set(spans.Header, trace)
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		why := ErrNoAnswer
		if !connected.Load() {
			why = ErrNotReached
		}
		return fmt.Errorf("%w: call %s of %s: %w", why, method, to, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var f failure
		if err := c.decode(resp, &f); err != nil || f.Code == "" {
			return fmt.Errorf("%w: call %s of %s: status %d: %w", ErrNoAnswer, method, to, resp.StatusCode, err)
		}
		if f.Panicked {
			return fmt.Errorf("%w: call %s of %s: %w", ErrNoAnswer, method, to, f.error())
		}
		return f.error()
	}
	if out == nil {
		return nil
	}
	if err := c.decode(resp, out); err != nil {
		return fmt.Errorf("%w: call %s of %s: %w", ErrNoAnswer, method, to, err)
	}
	return nil
}

// decode reads an answer, as far as answers go.
func (c *Client) decode(resp *http.Response, into any) error {
	err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, c.maxAnswer)).Decode(into)
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return fmt.Errorf("its answer has more than %d bytes", c.maxAnswer)
	}
	return err
}
