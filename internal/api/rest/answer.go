package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"

	"mneme/internal/api"
	"mneme/memory"
)

// freeAnswer is how long an answer may be without being counted.
const freeAnswer = 64 << 10

// writeJSON answers with v. A failure to encode is an internal error; a failure
// to send is the client's and shows in nothing.
func (s *server) writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return sendJSON(w, status, b)
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, memory.Errorf(memory.CodeInternal, "encode answer: %w", err)
	}
	return b, nil
}

// sendJSON answers with an encoded value. There is room for so many bytes of long
// answers to reads that clients have not taken yet; one alone always fits.
func sendJSON(w http.ResponseWriter, status int, b []byte) error {
	if rec, ok := w.(*recorder); ok && rec.answers != nil && len(b) > freeAnswer {
		n := int64(len(b))
		if !rec.answers.take(n) {
			return noRoom(n, rec.answers.max.Load())
		}
		defer rec.answers.give(n)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	if _, err := w.Write(b); err == nil {
		_, _ = w.Write([]byte{'\n'})
	}
	return nil
}

// noRoom says that n bytes more do not fit among the long answers.
func noRoom(n, all int64) error {
	return memory.Errorf(memory.CodeOverloaded, "answers wait for slow readers: beside them there is no room for %d bytes more, %d is all", n, all).
		WithHint("ask again in a moment, or for fewer records")
}

// asError gives err one of the public codes.
func asError(err error) *memory.Error {
	var e *memory.Error
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &size):
		return memory.Errorf(memory.CodeTooLarge, "the request has more than %d bytes", size.Limit).
			WithHint("send it in smaller batches; one memory has at most 262,144 bytes of text")
	case errors.Is(err, context.DeadlineExceeded):
		return memory.Errorf(memory.CodeTimeout, "the request took too long").WithCause(err)
	case errors.Is(err, context.Canceled):
		return memory.Errorf(memory.CodeTimeout, "the request was given up").WithCause(err)
	}
	return memory.AsError(err)
}

// writeError answers with a problem document, unless the answer has begun: then
// it breaks the connection off. Internal errors are logged with the request's
// id, which is all that the client gets to see of them.
func (s *server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	if rt := s.routes[r.Pattern]; rt != nil && rt.write {
		e = asError(api.CutShort(err))
	}
	rec, _ := w.(*recorder)
	broken := rec != nil && rec.wrote()
	if e.Code == memory.CodeInternal || broken {
		s.failures.note(r, broken, err)
	}
	if broken {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Del("Etag")
	h.Del("Trailer")
	if after := retryAfter(e); after > 0 {
		h.Set("Retry-After", strconv.Itoa(after))
	}
	if e.Code == memory.CodeUnauthenticated {
		h.Set("WWW-Authenticate", `Bearer realm="mneme"`)
	}
	if s.OAuth != nil && r.URL.Path == mcpPath {
		if c := s.OAuth.Challenge(err); c != "" {
			h.Set("WWW-Authenticate", c)
		}
	}
	p := memory.ProblemOf(e)
	if e.Code == memory.CodeInternal && p.Hint == "" {
		p.Hint = "look for request_id " + requestID(r.Context()) + " in the node's log"
	}
	s.writeProblem(w, p)
}

func (s *server) writeProblem(w http.ResponseWriter, p memory.Problem) {
	b, _ := json.Marshal(p) // strings and a number always encode
	w.Header().Set("Content-Type", mediaProblem)
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(b, '\n'))
}

// retryAfter is the number of whole seconds after which to try again; 0 = unsaid.
func retryAfter(e *memory.Error) int {
	if e.RetryAfter > 0 {
		return int(math.Ceil(e.RetryAfter.Seconds()))
	}
	switch e.Code {
	case memory.CodeOverloaded, memory.CodeUnavailable:
		return 1
	}
	return 0
}

// readBody reads the whole body; the route's limit is in place already.
func readBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err == nil {
		return b, nil
	}
	if e := asError(err); e.Code != memory.CodeInternal {
		return nil, e
	}
	return nil, memory.Errorf(memory.CodeInvalid, "the request's body broke off after %d bytes: %w", len(b), err)
}
