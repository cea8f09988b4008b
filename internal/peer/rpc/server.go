package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"mneme/internal/hangup"
	"mneme/internal/peer"
	"mneme/internal/spans"
	"mneme/memory"
)

// Method answers one call of a peer. Its answer is written as JSON; errors that are no
// *memory.Error reach the peer as internal ones.
type Method func(ctx context.Context, from peer.Identity, in json.RawMessage) (any, error)

// Handle makes a method of a function that takes its argument decoded.
func Handle[In, Out any](f func(ctx context.Context, from peer.Identity, in In) (Out, error)) Method {
	return func(ctx context.Context, from peer.Identity, raw json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "the call's argument cannot be read: %v", err)
		}
		return f(ctx, from, in)
	}
}

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Server answers the calls of peers to one service.
type Server struct {
	http  *http.Server
	fresh hangup.Fresh
	done  chan struct{}
}

// Serve begins to answer the calls to a service of the port, which are small and have
// small answers. Errors: the port's.
func Serve(port *peer.Port, service string, methods map[string]Method, log *slog.Logger) (*Server, error) {
	return serve(port, service, methods, maxSmall, log)
}

// ServeLarge is Serve for calls and answers that carry batches of captures.
func ServeLarge(port *peer.Port, service string, methods map[string]Method, log *slog.Logger) (*Server, error) {
	return serve(port, service, methods, maxLarge, log)
}

func serve(port *peer.Port, service string, methods map[string]Method, most int64, log *slog.Logger) (*Server, error) {
	listener, err := port.Service(service)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{done: make(chan struct{}), http: &http.Server{
		Handler:           &handler{service: service, methods: methods, bodies: newBodies(most), log: log},
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			from, _ := peer.From(c)
			return context.WithValue(ctx, callerKey{}, from)
		},
	}}
	s.fresh.Watch(s.http)
	go func() {
		defer close(s.done)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			log.Error("calls of peers are answered no longer", "service", service, "err", err)
		}
	}()
	return s, nil
}

// Close answers what has begun; past ctx it is cut off.
func (s *Server) Close(ctx context.Context) error {
	err := s.fresh.Shutdown(ctx, s.http)
	if err != nil {
		err = s.http.Close()
	}
	<-s.done
	return err
}

type callerKey struct{}

type handler struct {
	service string
	methods map[string]Method
	bodies  *bodies
	log     *slog.Logger
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, _ := r.Context().Value(callerKey{}).(peer.Identity)
	out, err := h.answer(from, w, r)
	status, body := http.StatusOK, any(out)
	if err != nil {
		status, body = http.StatusInternalServerError, failureOf(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the peer has gone
}

func (h *handler) answer(from peer.Identity, w http.ResponseWriter, r *http.Request) (out any, err error) {
	in, done, err := h.bodies.read(w, r)
	if err != nil {
		return nil, err
	}
	defer done()
	name := strings.TrimPrefix(r.URL.Path, "/")
	method := h.methods[name]
	if method == nil {
		return nil, memory.Errorf(memory.CodeNotFound, "this node has no method %.100q", name).WithHint("it may be of another version")
	}
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("a call of a peer panicked", "service", h.service, "method", name, "from", from.Node, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			out, err = nil, errPanicked
		}
	}()
	return method(spans.Continue(r.Context(), r.Header.Get(spans.Header)), from, in)
}

// errPanicked does not say that nothing happened.
var errPanicked = errors.New("the call panicked")

// failure is an error on its way.
type failure struct {
	Code       memory.Code   `json:"code"`
	Message    string        `json:"message"`
	Hint       string        `json:"hint,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Panicked: the call may have been carried out, or not.
	Panicked bool `json:"panicked,omitempty"`
}

func failureOf(err error) failure {
	e := memory.AsError(err)
	return failure{Code: e.Code, Message: e.Message, Hint: e.Hint, RetryAfter: e.RetryAfter, Panicked: errors.Is(err, errPanicked)}
}

func (f failure) error() *memory.Error {
	e := memory.Errorf(f.Code, "%s", f.Message)
	e.Hint, e.RetryAfter = f.Hint, f.RetryAfter
	return e
}
