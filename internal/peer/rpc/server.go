package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"mneme/internal/peer"
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

// Bounds of a call. The largest ones carry captures, which a transport has bounded
// before.
const (
	maxCall       = 64 << 20
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Server answers the calls of peers to one service.
type Server struct {
	http *http.Server
	done chan struct{}
}

// Serve begins to answer the calls to a service of the port. Errors: the port's.
func Serve(port *peer.Port, service string, methods map[string]Method, log *slog.Logger) (*Server, error) {
	listener, err := port.Service(service)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{done: make(chan struct{}), http: &http.Server{
		Handler: handler(methods), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			from, _ := peer.From(c)
			return context.WithValue(ctx, callerKey{}, from)
		},
	}}
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
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.done
	return err
}

type callerKey struct{}

func handler(methods map[string]Method) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := r.Context().Value(callerKey{}).(peer.Identity)
		out, err := answer(methods, from, r)
		status, body := http.StatusOK, any(out)
		if err != nil {
			status, body = http.StatusInternalServerError, failureOf(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // the peer has gone
	})
}

func answer(methods map[string]Method, from peer.Identity, r *http.Request) (any, error) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	method := methods[name]
	if method == nil {
		return nil, memory.Errorf(memory.CodeNotFound, "this node has no method %q", name).WithHint("it may be of another version")
	}
	in, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxCall))
	if err != nil {
		return nil, fmt.Errorf("read the call: %w", err)
	}
	return method(r.Context(), from, in)
}

// failure is an error on its way.
type failure struct {
	Code       memory.Code   `json:"code"`
	Message    string        `json:"message"`
	Hint       string        `json:"hint,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

func failureOf(err error) failure {
	e := memory.AsError(err)
	return failure{Code: e.Code, Message: e.Message, Hint: e.Hint, RetryAfter: e.RetryAfter}
}

func (f failure) error() *memory.Error {
	e := memory.Errorf(f.Code, "%s", f.Message)
	e.Hint, e.RetryAfter = f.Hint, f.RetryAfter
	return e
}
