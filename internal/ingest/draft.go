package ingest

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/memory"
)

// draft is one event on its way: complete but for its time and its seal.
type draft struct {
	header   events.Header
	content  *events.Content  // captured and revised events
	payload  []byte           // plaintext of the others
	graph    *graphDraft      // of a graph.changed
	key      *keyring.DataKey // seals the payload; nil = there is none
	size     int              // about what it will take in the log
	turn     uint64           // place in the queue
	inFlight []string         // of keysInFlight, once it was asked
	watch    *watch           // nil = its request is not recorded
	exact    bool             // a forget that counts only at its base version

	accepted chan struct{} // closed when the log has it, or when done is
	done     chan struct{} // closed when result or err is final
	inLog    bool          // set before accepted is closed
	byState  bool          // the state alone decided it: see answers
	at       events.Position
	result   projections.EventResult
	err      error
}

func newDraft(h events.Header) *draft {
	h.Schema = h.Type.Schema()
	return &draft{header: h, size: 512, accepted: make(chan struct{}), done: make(chan struct{})}
}

// uriPath is the path that a capture or revision gives its record; empty = none.
func (d *draft) uriPath() string {
	if d.content == nil {
		return ""
	}
	return memory.URIPath(d.content.URI)
}

// clientID is the client's own id; empty = there is none.
func (d *draft) clientID() string {
	switch {
	case d.content != nil:
		return d.content.ClientID
	case d.graph != nil:
		return d.graph.change.ID
	}
	return ""
}

// plaintext is what gets sealed.
func (d *draft) plaintext() []byte {
	if d.content != nil {
		return d.content.Encode()
	}
	return d.payload
}

// accept tells that the log has the event.
func (d *draft) accept(at events.Position) {
	d.inLog, d.at = true, at
	close(d.accepted)
}

// finish gives the outcome, once.
func (d *draft) finish(r projections.EventResult, err error) {
	d.result, d.err = r, err
	if !d.inLog {
		close(d.accepted)
	}
	close(d.done)
}

// decided gives an outcome that rests on the state alone: nothing is written.
func (d *draft) decided(r projections.EventResult, err error) {
	d.byState = true
	d.finish(r, err)
}

// wait blocks until the event has come as far as asked, or ctx ends. Then the
// outcome is unknown: the event may still be applied.
func (d *draft) wait(ctx context.Context, level memory.Wait) error {
	ready := d.done
	if level == memory.WaitAccepted {
		ready = d.accepted
	}
	select {
	case <-ready:
	case <-ctx.Done():
		select {
		case <-ready: // both: what is known is told
		default:
			return unknownOutcome(ctx.Err())
		}
	}
	if level == memory.WaitAccepted && d.inLog {
		return nil
	}
	<-d.done
	return d.err
}

func unknownOutcome(cause error) error {
	what := "writing was interrupted"
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		what = "the deadline passed"
	case errors.Is(cause, context.Canceled):
		what = "the answer was not waited for"
	}
	return memory.Errorf(memory.CodeOutcomeUnknown, "%s before the outcome was known", what).
		WithHint("send it again with the same id: it will be stored once").WithCause(cause)
}

// keysInFlight names what the event must not share with another one in flight.
func (d *draft) keysInFlight() []string {
	if d.inFlight == nil {
		d.inFlight = d.makeKeys()
	}
	return d.inFlight
}

func (d *draft) makeKeys() []string {
	keys := make([]string, 0, 2)
	h := &d.header
	if !h.ClientID.IsZero() {
		keys = append(keys, "id "+string(h.Namespace[:])+string(h.ClientID[:])+h.Agent)
	}
	if path := d.uriPath(); path != "" {
		agent := ""
		if h.Scope == events.ScopeAgent {
			agent = h.Agent
		}
		keys = append(keys, fmt.Sprintf("uri %s %d %s %s", h.Namespace, h.Scope, agent, path))
	}
	if h.Target != (events.ID{}) {
		keys = append(keys, "record "+h.Target.String())
	}
	if h.Type.OfSpace() {
		keys = append(keys, "spaces "+h.Namespace.String())
	}
	if h.Name != "" {
		keys = append(keys, "name "+h.Name)
	}
	if d.graph != nil {
		for _, name := range graphNames(d.graph.change) {
			keys = append(keys, "entity "+string(h.Namespace[:])+name)
		}
		if severs(d.graph.change) {
			keys = append(keys, "severed "+string(h.Namespace[:]))
		}
	}
	return keys
}
