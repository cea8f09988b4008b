package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"mneme/memory"
)

// maxAnswer bounds one JSON answer: a page of 200 records of 256 KiB, escaped,
// with room to spare.
const maxAnswer = 512 << 20

// call is one request before it is sent.
type call struct {
	method string
	path   []string // segments below /v1, not yet escaped
	query  url.Values
	body   any         // sent as JSON unless nil
	header http.Header // added to the standard ones
	write  bool        // it changes something: a lost answer is an unknown outcome
	repeat bool        // a write that may safely be sent twice
	sure   bool        // a write of which "unavailable" says that it has not happened
	accept string      // the media type of an answer that is read as it comes; "" is JSON
}

// do sends the call and decodes a memnode's JSON answer into out.
func (c *Client) do(ctx context.Context, rc call, out any) error {
	resp, err := c.send(ctx, rc)
	if err != nil {
		return err
	}
	defer drain(resp.Body)
	if err = decode(resp, out); err == nil {
		return nil
	}
	return c.lostAnswer(ctx, rc, err)
}

// dialPause is between two rounds of a call that waits until a node can be reached.
const dialPause = 500 * time.Millisecond

// send sends the call and returns a response with a 2xx status, whose body the
// caller closes. Other statuses are errors made from their problem documents. Where
// several nodes are known, what one did not carry out is sent to the next.
func (c *Client) send(ctx context.Context, rc call) (*http.Response, error) {
	for end := time.Now().Add(c.opts.ConnectTimeout); ; {
		resp, tries := round(ctx, c, rc)
		if resp != nil {
			return resp, nil
		}
		if !unreached(tries) || time.Until(end) < dialPause {
			return nil, failed(tries)
		}
		select {
		case <-ctx.Done():
			return nil, failed(tries)
		case <-time.After(dialPause):
		}
	}
}

// round sends the call to one node after the other, until one takes it. The response is nil
// where none did.
func round(ctx context.Context, c *Client, rc call) (*http.Response, []try) {
	var tries []try
	for range c.nodes.list {
		base, turn := c.nodes.now()
		resp, failure := sendTo(ctx, c, base, rc)
		if failure == nil {
			return resp, nil
		}
		tries = append(tries, *failure)
		goesOn := failure.goesOn(&rc) && ctx.Err() == nil
		if goesOn || !failure.own && ctx.Err() == nil { // a node that lost an answer is left, too
			c.nodes.leave(turn)
		}
		if !goesOn {
			break
		}
	}
	return nil, tries
}

// sendTo sends the call to one node.
func sendTo(ctx context.Context, c *Client, base *url.URL, rc call) (*http.Response, *try) {
	req, sent, err := c.request(ctx, base, rc)
	if err != nil {
		return nil, &try{err: err, seen: true, own: true} // it is the same at every node
	}
	client := c.http
	if rc.accept == eventStream {
		client = c.feeds
	}
	resp, err := client.Do(req)
	if err != nil {
		refused := tlsFailure(base, err) // of a client's certificate a node hears after it has let the request be sent
		switch {
		case refused != nil && ctx.Err() == nil && (!sent.Load() || refused.Code == memory.CodeUnauthenticated):
			return nil, &try{err: refused, hinted: true}
		case !sent.Load():
			return nil, &try{err: unreachable(ctx, base, err)}
		case speaksNATS(err), !rc.write && spokeFirst(err):
			return nil, &try{err: memory.Errorf(memory.CodeUnavailable, "what answers at %s speaks no HTTP; it looks like a NATS port", addrOf(base)).
				WithHint("name the node's HTTP address, as memnode prints it when it is ready; it is %s unless it was told otherwise", DefaultAddr)}
		}
		return nil, &try{err: lostAnswer(ctx, base, rc, err), seen: true}
	}
	if resp.StatusCode/100 == 2 {
		if rc.accept == "" {
			return resp, nil
		}
		other := foreign(rc.accept, resp)
		if other == nil {
			return resp, nil
		}
		_ = resp.Body.Close()
		return nil, &try{err: lostAnswer(ctx, base, rc, other), seen: true}
	}
	defer drain(resp.Body)
	e, own, seen := problem(base, resp)
	return nil, &try{err: e, seen: seen, own: own, hinted: !seen}
}

// request builds the HTTP request. sent becomes true once a connection was
// there to write it to: before that the node cannot have seen it.
func (c *Client) request(ctx context.Context, base *url.URL, rc call) (*http.Request, *atomic.Bool, error) {
	if i := slices.Index(rc.path, ""); i >= 0 {
		what := "an id"
		if rc.path[i-1] == "namespaces" {
			what = "a namespace"
		}
		return nil, nil, memory.Errorf(memory.CodeInvalid, `"" is not %s`, what)
	}
	var body io.Reader
	if rc.body != nil {
		b, err := json.Marshal(rc.body)
		if err != nil {
			return nil, nil, memory.Errorf(memory.CodeInvalid, "encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	sent := new(atomic.Bool)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, rc.method, urlOf(base, rc), body)
	if err != nil {
		return nil, nil, memory.Errorf(memory.CodeInvalid, "build request: %w", err)
	}
	for k, vs := range rc.header {
		req.Header[k] = vs
	}
	if body != nil {
		req.Header.Set("Content-Type", mediaJSON)
	}
	accept := rc.accept
	if accept == "" {
		accept = mediaJSON
	}
	req.Header.Set("Accept", accept+", application/problem+json")
	req.Header.Set("User-Agent", c.opts.UserAgent)
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	if rc.repeat {
		// An empty value lets net/http send it again on a stale connection
		// and is not put on the wire.
		req.Header["Idempotency-Key"] = []string{}
	}
	return req, sent, nil
}

func urlOf(base *url.URL, rc call) string {
	var sb strings.Builder
	if base.Scheme == socketScheme {
		sb.WriteString("http://localhost") // whatever it names, the socket is dialled
	} else {
		sb.WriteString(base.String())
	}
	sb.WriteString("/v1")
	for _, seg := range rc.path {
		sb.WriteByte('/')
		sb.WriteString(escapeSegment(seg))
	}
	if len(rc.query) > 0 {
		sb.WriteByte('?')
		sb.WriteString(rc.query.Encode())
	}
	return sb.String()
}

// escapeSegment also hides dot segments, which servers resolve even where
// url.PathEscape leaves them alone.
func escapeSegment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// unreachable is the error of a request that never left.
func unreachable(ctx context.Context, base *url.URL, err error) error {
	if ctx.Err() != nil {
		return ended(ctx, "the node at "+addrOf(base)+" was not reached")
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var known *memory.Error
	if errors.As(err, &known) {
		return known
	}
	return memory.Errorf(memory.CodeUnavailable, "cannot reach a node at %s: %w", addrOf(base), err).
		WithHint("is `memnode` running there? its log says why it ended, or what it waits for; start it, or name another address")
}

// speaksNATS recognises a NATS server, which greets with INFO {"server_id": …, which is
// no status line. It has taken nothing for a request. net/http has no error for it but
// its text.
func speaksNATS(err error) bool {
	text := err.Error()
	return strings.Contains(text, "malformed HTTP status code") && strings.Contains(text, "server_id")
}

// spokeFirst recognises a server that greets before it was sent anything, also where
// net/http reads the greeting before it writes. Then it says nothing of what it read.
func spokeFirst(err error) bool { return strings.Contains(err.Error(), "readLoopPeekFailLocked") }

// lostAnswer is the error of an answer that broke off. The next call asks another node.
func (c *Client) lostAnswer(ctx context.Context, rc call, err error) error {
	base, turn := c.nodes.now()
	if ctx.Err() == nil {
		c.nodes.leave(turn)
	}
	return lostAnswer(ctx, base, rc, err)
}

// lostAnswer is the error of a request that may have arrived.
func lostAnswer(ctx context.Context, base *url.URL, rc call, err error) error {
	if !rc.write {
		if ctx.Err() != nil {
			return ended(ctx, "no answer from "+addrOf(base))
		}
		if errors.Is(err, ErrForeign) {
			return memory.Errorf(memory.CodeUnavailable, "asked %s: %w", addrOf(base), err).WithHint(foreignHint)
		}
		return memory.Errorf(memory.CodeUnavailable, "no answer from %s: %w", addrOf(base), err).WithHint("is `memnode` still running there?")
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	e := memory.Errorf(memory.CodeOutcomeUnknown, "the answer from %s was lost, the write may or may not have happened: %w", addrOf(base), err)
	if rc.repeat {
		return e.WithHint("it may be sent again with the same id")
	}
	return e.WithHint("look whether it happened before sending it again")
}

// ended says that the caller's context was over.
func ended(ctx context.Context, what string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return memory.Errorf(memory.CodeTimeout, "%s: the deadline passed", what).WithCause(context.Cause(ctx))
	}
	return memory.Errorf(memory.CodeTimeout, "%s: interrupted", what).WithCause(context.Cause(ctx))
}

// problem turns a response that is not 2xx into an error. own says that it is a memnode's,
// seen that the request may have reached one.
func problem(base *url.URL, resp *http.Response) (e *memory.Error, own, seen bool) {
	if resp.StatusCode/100 == 3 {
		e = memory.Errorf(memory.CodeUnavailable, "%s answered %s: it leads to %.200q and is not followed", addrOf(base), resp.Status, resp.Header.Get("Location")).
			WithHint("a memnode redirects nobody; name the address of the node itself").WithCause(ErrForeign)
		return e, false, true
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if speaksTLS(resp, body) {
		return memory.Errorf(memory.CodeUnavailable, "the node at %s speaks TLS, and was asked in clear", addrOf(base)).
			WithHint("write https:// in the address; memctl --tls-ca FILE names the authority if the system does not know it"), false, false
	}
	var p memory.Problem
	own = json.Unmarshal(body, &p) == nil && p.Code != "" && p.Type != "" && p.Status == resp.StatusCode // others have a code, too
	if own {
		e = p.Err()
	} else {
		e = memory.Errorf(codeForStatus(resp.StatusCode), "%s answered %s", addrOf(base), resp.Status).
			WithHint(foreignHint).WithCause(ErrForeign)
	}
	e.RetryAfter = retryAfter(resp.Header)
	return e, own, true
}

// codeForStatus guesses a code for an answer that is not Mneme's, such as that
// of a proxy in between: see ErrForeign.
func codeForStatus(status int) memory.Code {
	switch status {
	case http.StatusUnauthorized:
		return memory.CodeUnauthenticated
	case http.StatusForbidden:
		return memory.CodeForbidden
	case http.StatusNotFound:
		return memory.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return memory.CodeConflict
	case http.StatusGone:
		return memory.CodeGone
	case http.StatusRequestEntityTooLarge:
		return memory.CodeTooLarge
	case http.StatusTooManyRequests:
		return memory.CodeOverloaded
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return memory.CodeUnavailable
	case http.StatusGatewayTimeout:
		return memory.CodeTimeout
	case http.StatusInsufficientStorage:
		return memory.CodeNoSpace
	}
	if status >= 400 && status < 500 {
		return memory.CodeInvalid
	}
	return memory.CodeInternal
}

// retryAfter reads the seconds form of Retry-After, at most an hour.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(min(s, 3600)) * time.Second
}

// drain closes a body after reading what little is left, so that the
// connection can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
