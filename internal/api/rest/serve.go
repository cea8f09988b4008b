package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/api"
	"mneme/internal/auth"
	"mneme/internal/spans"
	"mneme/memory"
)

// requestID is the id under which the log speaks of this request.
func requestID(ctx context.Context) string {
	return api.TraceOf(ctx).Request
}

// ServeHTTP finds the route, makes the checks that come before any handler,
// and runs it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.Now()
	h := w.Header()
	id := newRequestID(r)
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	r = r.WithContext(spans.Continue(api.WithRequest(r.Context(), id), r.Header.Get(spans.Header)))
	rec := &recorder{ResponseWriter: w, limit: s.SendLimit}
	rec.extend(s.BodyTimeout)
	if s.OAuth != nil && strings.HasPrefix(r.URL.Path, auth.WellKnownResource) && s.OAuth.HasMetadataAt(r.URL.Path) {
		r.URL = &url.URL{Path: auth.WellKnownResource, RawQuery: r.URL.RawQuery}
	}
	fallback, pattern := s.mux.Handler(r)
	rt := s.routes[pattern]
	if rt != nil && !rt.write && !auth.IsLocal(r.Context()) && callOf(r.Context()) == nil { // what a write did has to be told, and a call counts its own
		rec.answers = &s.answers
	}
	span := spans.None()
	defer func() {
		s.metrics.observe(rt, r.Method, rec.status(), s.Now().Sub(start), span)
		ended(span, rec.status())
	}()
	defer s.recovered(rec, r)
	limit := int64(maxSmallBody)
	if rt != nil && rt.limit > 0 {
		limit = rt.limit
	}
	body := s.newBody(rec, r, limit) // also of a request that is refused: its body is waited for
	defer body.release()
	replaced := s.Auth.Replaced()
	if err := s.admit(rec, r, rt); err != nil {
		s.writeError(rec, r, err)
		return
	}
	switch {
	case rec.wrote(): // a preflight was answered
	case rt != nil && rt.stream && r.Method != rt.method: // HEAD: a stream has no end to describe
		s.notAllowed(rec, r, rt.method)
	case rt != nil:
		r.Body = body
		r, span = traced(r, rt, s.Traces)
		r, stop := until(r, rt, replaced)
		s.run(rec, r, rt)
		stop()
	default:
		s.unmatched(rec, r, fallback)
	}
}

// until ends a stream that is read, with whose token it was let in: what takes long to write is
// carried through. Call stop when the request has ended.
func until(r *http.Request, rt *route, replaced <-chan struct{}) (*http.Request, func()) {
	if !rt.stream || rt.method != http.MethodGet || replaced == nil || auth.IsLocal(r.Context()) {
		return r, func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-replaced:
			cancel(errReplaced)
		case <-ctx.Done():
		}
	}()
	return r.WithContext(ctx), func() {
		cancel(nil)
		<-ended
	}
}

// errReplaced is why a stream ends whose token counts no more.
var errReplaced = memory.Errorf(memory.CodeUnauthenticated, "the token of this stream was replaced").WithHint("go on with the one that counts now")

// traced begins the span of a request that was let in: nobody else can have one recorded.
func traced(r *http.Request, rt *route, by trace.TracerProvider) (*http.Request, trace.Span) {
	if by == nil || rt.stream || rt.probe {
		return r, spans.None()
	}
	ctx, span := spans.Begin(r.Context(), by, trace.SpanKindServer, rt.method+" "+rt.path)
	if span.IsRecording() {
		span.SetAttributes(spans.Method.String(rt.method), spans.Route.String(rt.path))
	}
	return r.WithContext(ctx), span
}

// ended ends the span of a request. What the caller did wrong is no failure of the server.
func ended(span trace.Span, status int) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(spans.StatusCode.Int(status))
	if status >= http.StatusInternalServerError {
		spans.Failed(span, strconv.Itoa(status))
	}
	span.End()
}

// newRequestID takes a sane id from a proxy, else makes one.
func newRequestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(c rune) bool {
		return c < 0x21 || c > 0x7e
	}) {
		return id
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// admit checks where the request came from and who sent it. It answers a CORS
// preflight itself. rt is nil for an unknown route.
func (s *server) admit(w http.ResponseWriter, r *http.Request, rt *route) error {
	if auth.IsAdmitted(r.Context()) { // where it came from was checked when it was
		return permit(s, r, rt)
	}
	guard := s.guard.now.Load()
	if rt == nil || !rt.probe {
		if err := guard.checkHost(r); err != nil {
			return err
		}
	}
	allowed, err := guard.checkOrigin(r)
	if err != nil {
		return err
	}
	if allowed != "" {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", allowed)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, Idempotency-Key, Last-Event-ID, Mneme-Agent, Mneme-Namespace, Mneme-Profile, Mcp-Protocol-Version, Mcp-Method, Mcp-Name")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return permit(s, r, rt)
}

// permit checks who sent a request, and whether that may have the route.
func permit(s *server, r *http.Request, rt *route) error {
	if rt != nil && rt.right == api.RightOpen {
		return nil
	}
	id, err := identify(s, r, rt)
	if err != nil {
		return err
	}
	if rt != nil && rt.right == api.RightLocal && !auth.IsLocal(r.Context()) {
		return memory.Errorf(memory.CodeForbidden, "%s is served on the node's admin socket only", rt.path).
			WithHint("run memctl on the node's machine, or in its container; memctl debug --socket names the socket")
	}
	if rt != nil && rt.right == api.RightAdmin && !id.Operator {
		return memory.Errorf(memory.CodeForbidden, "%s is the operator's, and with auth off nobody on this address has proven to be that", rt.path).
			WithHint("on the same machine memctl uses the node's admin socket; from elsewhere start memnode with --auth token")
	}
	return nil
}

// identify says who sent a request: whoever has the operator token, or, where the route takes
// those, an access token. So does a method that /mcp does not have: a client that looks for its
// stream by GET would take 401 for a token that counts no more, and have its user sign in again.
func identify(s *server, r *http.Request, rt *route) (auth.Identity, error) {
	id, err := s.Auth.Request(r)
	takes := rt != nil && rt.oauth || rt == nil && r.URL.Path == mcpPath
	if err == nil || s.OAuth == nil || !takes {
		return id, err
	}
	return s.OAuth.Request(r)
}

// run bounds the request in time and serves it. A route that takes no body has
// read away what was sent all the same: its end lifts the deadline for bodies,
// which would end a long answer.
func (s *server) run(w http.ResponseWriter, r *http.Request, rt *route) {
	if rt.body == nil && r.ContentLength != 0 {
		if _, err := readBody(r); err != nil {
			s.writeError(w, r, err)
			return
		}
	}
	if !rt.stream {
		ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	s.mux.ServeHTTP(w, r)
}

// unmatched turns the mux's own plain answers into problems: unknown path,
// wrong method.
func (s *server) unmatched(w http.ResponseWriter, r *http.Request, fallback http.Handler) {
	probe := &discard{header: http.Header{}}
	fallback.ServeHTTP(probe, r)
	if probe.code == http.StatusMethodNotAllowed {
		s.notAllowed(w, r, probe.header.Get("Allow"))
		return
	}
	s.writeError(w, r, memory.Errorf(memory.CodeNotFound, "there is nothing at %.200s", r.URL.Path).
		WithHint("/openapi.json lists every route"))
}

// notAllowed answers a method that a path does not have. There is no code of
// its own for it: the request is invalid.
func (s *server) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	p := memory.ProblemOf(memory.Errorf(memory.CodeInvalid, "%s is not possible on %.200s", r.Method, r.URL.Path).
		WithHint("allowed are %s", allow))
	p.Status, p.Title = http.StatusMethodNotAllowed, "Method not allowed"
	s.writeProblem(w, p)
}

// recovered turns a panic into an internal error. The stack goes to the log
// only. http.ErrAbortHandler passes: it breaks the connection off on purpose.
func (s *server) recovered(w *recorder, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.Logger.LogAttrs(r.Context(), slog.LevelError, "request panicked", append(api.TraceOf(r.Context()).Attrs(), slog.String("method", r.Method),
		slog.String("path", r.URL.Path), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))...)
	if w.wrote() {
		panic(http.ErrAbortHandler)
	}
	s.writeProblem(w, memory.ProblemOf(memory.Errorf(memory.CodeInternal, "panic")))
}

// recorder remembers what was answered, and bounds how long the client may take
// to read it.
type recorder struct {
	http.ResponseWriter
	code    int           // 0 = nothing yet
	limit   time.Duration // for each piece
	answers *budget       // nil: a long answer is not counted
}

// maxPiece is how much is written under one deadline: who reads more slowly than
// that in each SendLimit is cut off.
const maxPiece = 1 << 20

func (w *recorder) wrote() bool { return w.code != 0 }

func (w *recorder) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}

// extend gives the client another while to take what is written next.
func (w *recorder) extend(more time.Duration) {
	// The deadline is the network's, so it is told by the system's clock. Not
	// every ResponseWriter has deadlines; those that have none cannot hang.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.limit + more))
}

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
	}
	w.extend(0)
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(b []byte) (n int, err error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	for {
		w.extend(0)
		m, err := w.ResponseWriter.Write(b[n:min(len(b), n+maxPiece)])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discard keeps only the status and the headers of an answer.
type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(code int)        { d.code = code }
