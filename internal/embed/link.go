package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/spans"
)

// Bounds of what is read from a server.
const (
	maxErrorBody  = 64 << 10
	answerSlack   = 64 << 10
	bytesPerValue = 32 // a float64 in JSON with sign, exponent, comma and space
)

// link is the way to one server: one request at a time per lane, repeated when
// that may help, cut off while the server is dead.
type link struct {
	cfg     Config // resolved
	wire    wire
	client  *http.Client
	own     bool          // client belongs to the link
	lanes   chan struct{} // a token for each request in flight
	breaker *breaker
	clock   Clock
	logger  *slog.Logger
	rand    func() float64
}

func newLink(cfg Config, w wire, opt Options) *link {
	l := &link{
		cfg: cfg, wire: w,
		lanes:   make(chan struct{}, cfg.Concurrency),
		breaker: newBreaker(cfg.Provider),
		clock:   opt.Clock, logger: opt.Logger, rand: opt.Rand,
	}
	client := opt.HTTPClient
	if client == nil {
		client, l.own = ownClient(cfg.Concurrency), true
	}
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	l.client = &copied
	return l
}

func (l *link) close() {
	if l.own {
		l.client.CloseIdleConnections()
	}
}

// call is one request, as often as it is sent.
type call struct {
	path   string
	body   []byte
	texts  []string
	expect int // dimensions that must come, 0 if not known yet
}

// embed asks for the vectors of texts until they come, or until asking again is
// pointless. want is the size to ask for, expect the size that must come; 0 none.
func (l *link) embed(ctx context.Context, p Purpose, texts []string, want, expect int) (vectors [][]float32, err error) {
	path, payload := l.wire.request(l.cfg.Model, p, texts, want)
	body, err := encodeJSON(payload)
	if err != nil {
		return nil, l.fail(&Error{Kind: ErrBadInput, Detail: "encode request", Err: err})
	}
	ctx, span := spans.Call(ctx, spans.Embeddings)
	defer func() { l.told(span, len(texts), expect, err) }()
	c := call{path: path, body: body, texts: texts, expect: expect}
	pauses := newPauses(l.rand)
	for attempt := 0; ; attempt++ {
		vectors, err := l.attempt(ctx, c)
		var e *Error
		if err == nil || !errors.As(err, &e) || !e.retry || attempt >= l.cfg.MaxRetries {
			return vectors, err
		}
		pause := pauses.next(e.RetryAfter)
		if pause > l.cfg.MaxWait || l.pastDeadline(ctx, pause) {
			return nil, err
		}
		l.logger.Debug("embedding request repeated", "provider", l.cfg.Provider, "attempt", attempt+1, "pause", pause, "cause", err)
		if l.clock.Sleep(ctx, pause) != nil {
			return nil, l.gaveUp(ctx)
		}
	}
}

// told ends the span of a request. The provider gets no traceparent: whose request it is, and
// that there is one, is no business of somebody else's.
func (l *link) told(span trace.Span, texts, dimensions int, err error) {
	if !span.IsRecording() {
		return
	}
	provider := l.cfg.Provider
	if provider == ProviderGemini {
		provider = "gcp.gemini" // as the semantic conventions call it
	}
	span.SetAttributes(spans.Operation.String(spans.Embeddings), spans.Provider.String(provider), spans.Model.String(l.cfg.Model), spans.Texts.Int(texts))
	if dimensions > 0 {
		span.SetAttributes(spans.Dimensions.Int(dimensions))
	}
	if err != nil {
		spans.Failed(span, kindOf(err))
	}
	span.End()
}

// kindOf names the kind of a failure in a word.
func kindOf(err error) string {
	for _, k := range []struct {
		kind error
		word string
	}{{ErrUnavailable, "unavailable"}, {ErrBadInput, "bad_input"}, {ErrAuth, "auth"}, {ErrQuota, "quota"}, {ErrWrongDimensions, "wrong_dimensions"},
		{ErrNoModel, "no_model"}, {ErrBadAnswer, "bad_answer"}, {context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"}} {
		if errors.Is(err, k.kind) {
			return k.word
		}
	}
	return "_OTHER"
}

// pastDeadline reports whether a pause would outlast the caller; then the error
// at hand says more than a timeout would.
func (l *link) pastDeadline(ctx context.Context, pause time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && l.clock.Now().Add(pause).After(deadline)
}

// attempt is one request in a lane, if the breaker lets it through.
func (l *link) attempt(ctx context.Context, c call) ([][]float32, error) {
	select {
	case l.lanes <- struct{}{}:
		defer func() { <-l.lanes }()
	case <-ctx.Done():
		return nil, l.gaveUp(ctx)
	}
	done, wait, ok := l.breaker.allow()
	if !ok {
		return nil, l.fail(&Error{Kind: ErrUnavailable, RetryAfter: wait, Detail: "failed repeatedly, not asked again yet"})
	}
	vectors, err := l.exchange(ctx, c)
	done(err)
	return vectors, err
}

// exchange sends one request and checks the answer.
func (l *link) exchange(ctx context.Context, c call) ([][]float32, error) {
	limited, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, l.cfg.BaseURL+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, l.fail(&Error{Kind: ErrConfig, Detail: "base URL or model does not make a valid address"})
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "mneme")
	if !l.cfg.APIKey.IsZero() {
		req.Header.Set(l.wire.authorise(l.cfg.APIKey.Reveal()))
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, l.broken(ctx, limited, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// What cannot be read of an error body is not missed.
		words, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, l.refused(c, resp, words)
	}
	size, n := c.expect, len(c.texts)
	if size == 0 {
		size = maxDimensions
	}
	bound := int64(answerSlack + n*size*bytesPerValue)
	data, err := io.ReadAll(io.LimitReader(resp.Body, bound+1))
	if err != nil {
		return nil, l.broken(ctx, limited, err)
	}
	if int64(len(data)) > bound {
		return nil, l.fail(&Error{Kind: ErrBadAnswer, Status: resp.StatusCode, Detail: fmt.Sprintf("answer to %d texts is larger than %d bytes", n, bound)})
	}
	return l.accept(data, n, c.expect)
}

// accept decodes and verifies an answer. Nothing is returned unless all is right.
func (l *link) accept(data []byte, n, expect int) ([][]float32, error) {
	vectors, err := l.wire.answer(data, n)
	if err != nil {
		var syntax *json.SyntaxError
		// An answer that was cut off on the way may be whole the next time.
		cut := errors.As(err, &syntax) && syntax.Offset >= int64(len(data))
		return nil, l.fail(&Error{Kind: ErrBadAnswer, Status: http.StatusOK, Detail: "cannot read the answer", Err: err, retry: cut})
	}
	if len(vectors) != n {
		return nil, l.fail(&Error{Kind: ErrBadAnswer, Status: http.StatusOK, Detail: fmt.Sprintf("%d texts were sent, %d embeddings came back", n, len(vectors))})
	}
	out := make([][]float32, n)
	for i, v := range vectors {
		if expect == 0 {
			expect = len(v)
		}
		if len(v) != expect || len(v) == 0 || len(v) > maxDimensions {
			e := &Error{Kind: ErrWrongDimensions, Status: http.StatusOK, Detail: fmt.Sprintf("model %q answered with %d dimensions, the space has %d", l.cfg.Model, len(v), expect)}
			if l.cfg.Dimensions != 0 {
				e.Hint = "the server may not support a choice of dimensions"
			}
			return nil, l.fail(e)
		}
		if err := normalise(v); err != nil {
			e := l.fail(&Error{Kind: ErrBadAnswer, Status: http.StatusOK, Detail: "unusable", Err: err})
			e.Index = i
			return nil, e
		}
		out[i] = v
	}
	return out, nil
}

// broken classifies a request that brought no whole answer.
func (l *link) broken(ctx, limited context.Context, err error) error {
	if ctx.Err() != nil {
		return l.gaveUp(ctx)
	}
	if limited.Err() != nil {
		return l.fail(&Error{Kind: ErrUnavailable, Detail: "no answer within " + l.cfg.Timeout.String(), retry: true})
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the address is named already
	}
	e := &Error{Kind: ErrUnavailable, Detail: "cannot be reached", Err: err, retry: true}
	if l.cfg.Provider == ProviderOllama {
		e.Hint = "is it running? start it with: ollama serve"
	}
	return l.fail(e)
}

// gaveUp is the caller's own doing and no failure of the provider.
func (l *link) gaveUp(ctx context.Context) error {
	return fmt.Errorf("embed with %s: %w", l.cfg.Provider, ctx.Err())
}

// fail completes an error with who was asked.
func (l *link) fail(e *Error) *Error {
	e.Provider, e.Endpoint, e.Model, e.Index = l.cfg.Provider, l.cfg.BaseURL, l.cfg.Model, -1
	return e
}

// encodeJSON is json.Marshal without the escaping that is for HTML.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
