package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"mneme/internal/hangup"
	"mneme/memory"
)

// waiting answers HTTP while a node of several waits for the others: it lives, and takes
// nothing yet. Callers would else wait for as long as it does.
type waiting struct {
	listener *net.TCPListener
	server   http.Server
	fresh    hangup.Fresh
	done     chan struct{}
	answer   atomic.Pointer[memory.Error] // what it says that it waits for
}

// What a node waits for that has no cluster yet.
const (
	waitsForNodes     = "this node waits for the other nodes of its cluster"
	waitsForNodesHint = "ask another node, or start those that are missing; the node's log says for whom it waits"
)

// newWaiting serves at l, whose connections begin as secure says.
func newWaiting(l *net.TCPListener, secure func(net.Listener) net.Listener) *waiting {
	w := &waiting{listener: l, done: make(chan struct{})}
	w.say(waitsForNodes, waitsForNodesHint)
	w.server.Handler, w.server.ReadHeaderTimeout = http.HandlerFunc(w.serve), headerTimeout
	w.server.ErrorLog = log.New(io.Discard, "", 0) // who comes too early comes again
	w.server.SetKeepAlivesEnabled(false)
	w.fresh.Watch(&w.server)
	go func() {
		defer close(w.done)
		_ = w.server.Serve(secure(borrowed{l})) // it ends with stop, or with the listener
	}()
	return w
}

// stop gives the listener back. Requests that are being answered are waited for.
func (w *waiting) stop(ctx context.Context) error {
	err := w.fresh.Shutdown(ctx, &w.server)
	if err != nil {
		err = errors.Join(err, w.server.Close())
	}
	<-w.done
	return errors.Join(err, w.listener.SetDeadline(time.Time{}))
}

// say changes what it answers.
func (w *waiting) say(what, hint string) {
	w.answer.Store(memory.Errorf(memory.CodeUnavailable, "%s", what).WithHint("%s", hint))
}

// waitsFor says to who asks for what the node waits, if anybody can ask yet.
func (p *peers) waitsFor(what, hint string) {
	if p.waits != nil {
		p.waits.say(what, hint)
	}
}

func (w *waiting) serve(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/livez" {
		_, _ = io.WriteString(out, "ok\n")
		return
	}
	p := memory.ProblemOf(w.answer.Load())
	out.Header().Set("Content-Type", "application/problem+json")
	out.Header().Set("Retry-After", "1")
	out.WriteHeader(p.Status)
	_ = json.NewEncoder(out).Encode(p) // who asked has gone
}

// borrowed is a listener that is not closed by who has it for a while: it only accepts
// no more.
type borrowed struct{ *net.TCPListener }

func (b borrowed) Close() error { return b.SetDeadline(time.Now()) }
