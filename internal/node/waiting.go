package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"mneme/internal/auth"
	"mneme/internal/hangup"
	"mneme/memory"
)

// waiting answers HTTP while a node starts: it lives, and takes nothing yet. Callers would
// else wait for as long as it does, or hear that there is no node.
type waiting struct {
	lent   []lent // by whoever has the listener when it is done
	server http.Server
	fresh  hangup.Fresh
	wg     sync.WaitGroup
	answer atomic.Pointer[state]
}

// state is what a node says that it waits for.
type state struct{ what, why, hint string }

// lent is a listener that waiting has for a while.
type lent interface {
	net.Listener
	SetDeadline(time.Time) error
}

// What a node does that is not ready, and what one of several waits for that has no cluster yet.
const (
	starts            = "this node starts, and takes nothing yet"
	startsHint        = "it answers when it has opened what it holds and applied what its state lacks; the node's log says how far it is"
	waitsForNodes     = "this node waits for the other nodes of its cluster"
	waitsForNodesHint = "ask another node, or start those that are missing; the node's log says how it goes on"
)

func newWaiting(what, hint string) *waiting {
	w := &waiting{}
	w.say(what, "", hint)
	w.server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if c.LocalAddr().Network() == "unix" {
			return auth.Local(ctx)
		}
		return ctx
	}
	w.server.Handler, w.server.ReadHeaderTimeout = http.HandlerFunc(w.serve), headerTimeout
	w.server.ErrorLog = log.New(io.Discard, "", 0) // who comes too early comes again
	w.server.SetKeepAlivesEnabled(false)
	w.fresh.Watch(&w.server)
	return w
}

// at serves at l, whose connections begin as secure says.
func (w *waiting) at(l lent, secure func(net.Listener) net.Listener) {
	w.lent = append(w.lent, l)
	w.wg.Go(func() { _ = w.server.Serve(secure(borrowed{l})) }) // it ends with stop, or with the listener
}

// openWaiting answers while the node starts: at its admin socket, and, where it is one of
// several, at its address for HTTP.
func openWaiting(n *Node) error {
	n.front.waiting = newWaiting(starts, startsHint)
	if err := n.openAdminSocket(); err != nil {
		return err
	}
	n.onClose("waiting", n.front.waiting.stop)
	if l, ok := n.front.admin.(lent); ok {
		n.front.waiting.at(l, func(l net.Listener) net.Listener { return l })
	}
	return nil
}

// stop gives the listeners back. Requests that are being answered are waited for.
func (w *waiting) stop(ctx context.Context) error {
	err := w.fresh.Shutdown(ctx, &w.server)
	if err != nil {
		err = errors.Join(err, w.server.Close())
	}
	w.wg.Wait()
	for _, l := range w.lent {
		if derr := l.SetDeadline(time.Time{}); !errors.Is(derr, net.ErrClosed) {
			err = errors.Join(err, derr)
		}
	}
	return err
}

// say changes what it answers. why, which may name other nodes and their addresses, is told at
// the admin socket only.
func (w *waiting) say(what, why, hint string) { w.answer.Store(&state{what, why, hint}) }

// waitsFor says to who asks for what the node waits, until it serves.
func (p *peers) waitsFor(what, why, hint string) { p.waits.say(what, why, hint) }

func (w *waiting) serve(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/livez" {
		_, _ = io.WriteString(out, "ok\n")
		return
	}
	now := w.answer.Load()
	what, hint := now.what, now.hint
	switch {
	case now.why == "":
	case auth.IsLocal(r.Context()):
		what += ": " + now.why
	default: // what helps is for who may know why
		hint = waitsForNodesHint
	}
	p := memory.ProblemOf(memory.Errorf(memory.CodeUnavailable, "%s", what).WithHint("%s", hint))
	out.Header().Set("Content-Type", "application/problem+json")
	out.Header().Set("Retry-After", "1")
	out.WriteHeader(p.Status)
	_ = json.NewEncoder(out).Encode(p) // who asked has gone
}

// borrowed is a listener that is not closed by who has it for a while: it only accepts
// no more.
type borrowed struct{ lent }

func (b borrowed) Close() error { return b.SetDeadline(time.Now()) }
