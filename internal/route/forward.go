package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"mneme/internal/api"
	"mneme/internal/peer/rpc"
	"mneme/internal/spans"
	"mneme/memory"
)

// verdict says what is known of a call after an attempt.
type verdict int

const (
	settled   verdict = iota // the answer stands, whatever it is
	untouched                // nothing happened: another attempt is the first one
	unknown                  // it may have happened
	gaveUp                   // there was no attempt: nobody was found in time
)

// do has the node that leads carry out a call.
func do[In, Out any](ctx context.Context, r *Router, m method[In, Out], in In) (Out, error) {
	var seen error // an attempt may have been carried out
	for s := r.search(); ; {
		d := attempt(ctx, s, m, in)
		switch d.verdict {
		case settled:
			if seen != nil && isTransient(d.err) {
				return d.out, seen
			}
			return d.out, d.err
		case unknown:
			seen = d.err
			if m.again == nil || !m.again(in) || ctx.Err() != nil {
				return d.out, seen
			}
			r.opt.Logger.LogAttrs(ctx, slog.LevelInfo, "a call is sent again", append(api.TraceOf(ctx).Attrs(), slog.String("call", m.name), slog.Any("why", seen))...)
		case gaveUp:
			if seen != nil {
				return d.out, seen
			}
			return d.out, d.err
		}
	}
}

// isTransient reports whether a refusal says nothing about the call itself, and so
// nothing about an attempt before it.
func isTransient(err error) bool { return err != nil && transientCode(memory.CodeOf(err)) }

// transientCode is Code.Transient, and what may be otherwise on another node or by then: a namespace's
// captures were switched off meanwhile, or a node failed.
func transientCode(c memory.Code) bool {
	return c.Transient() || c == memory.CodeForbidden || c == memory.CodeInternal
}

// search looks for the node that takes one call. It ends when it has looked for as long
// as the router's patience; what was carried out meanwhile does not count.
type search struct {
	*Options
	until time.Time
	tried string // where the last attempt went; "" = there was none
	why   error  // it failed
	fresh bool   // there was a pause since
}

func (r *Router) search() *search {
	return &search{Options: r.opt, until: time.Now().Add(r.opt.Patience)}
}

// here stands for this node.
const here = "this node"

// next waits for a node to try: another one than the last, or the same one after a
// pause.
func (s *search) next(ctx context.Context) (to rpc.Target, local bool, err error) {
	for {
		if s.Open() == nil && (s.tried != here || s.fresh) {
			return s.chosen(to, here, true)
		}
		to, self, known := s.Leader()
		switch {
		case self && (s.tried != here || s.fresh):
			return s.chosen(to, here, true)
		case !self && known && (s.tried != to.String() || s.fresh):
			return s.chosen(to, to.String(), false)
		case ctx.Err() != nil || !time.Now().Before(s.until):
			return to, false, s.failed(known)
		}
		s.await(ctx)
		s.fresh = true
	}
}

func (s *search) chosen(to rpc.Target, name string, local bool) (rpc.Target, bool, error) {
	s.tried, s.fresh = name, false
	return to, local, nil
}

// failed is the error of a call that nobody took.
func (s *search) failed(known bool) error {
	e := memory.Errorf(memory.CodeUnavailable, "no node is known to lead, so that nothing is written for now")
	switch {
	case s.why != nil:
		e = memory.Errorf(memory.CodeUnavailable, "no node that leads was found; the last one tried was %s: %w", s.tried, s.why)
	case known:
		e = memory.Errorf(memory.CodeUnavailable, "the call was given up before the leader was tried")
	}
	e.RetryAfter = time.Second
	return e.WithHint("nothing of it was written: send it again; an election takes a second or two; where it lasts, most nodes are gone: memctl doctor names them")
}

// attempt has the node that leads now carry out the call once.
func attempt[In, Out any](ctx context.Context, s *search, m method[In, Out], in In) (d done[Out]) {
	to, local, err := s.next(ctx)
	if err != nil {
		return done[Out]{err: err, verdict: gaveUp}
	}
	began := time.Now()
	if local {
		d = carryOut(ctx, s.Options, m, in)
	} else {
		d = forward(ctx, s.Options, to, m, in)
	}
	switch d.verdict {
	case untouched:
		s.why = d.err
	case unknown:
		s.until = s.until.Add(time.Since(began))
	}
	if expired := !time.Now().Before(s.until) || ctx.Err() != nil; expired && d.verdict == untouched {
		return done[Out]{err: s.failed(true), verdict: gaveUp}
	}
	return d
}

// errMoved ends a call to a node that does not lead any more and does not answer.
var errMoved = errors.New("another node leads by now")

// forward calls another node.
func forward[In, Out any](ctx context.Context, o *Options, to rpc.Target, m method[In, Out], in In) (d done[Out]) {
	call := struct {
		Within time.Duration `json:"within,omitempty"`
		In     any           `json:"in"`
	}{In: in}
	if m.encode != nil {
		call.In = m.encode(in)
	}
	if deadline, ok := ctx.Deadline(); ok {
		call.Within = max(time.Until(deadline), 1)
	}
	watched, stop := o.whileLeading(ctx, to)
	var r reply[Out]
	called, span := spans.Call(watched, spans.Forward)
	if span.IsRecording() {
		span.SetAttributes(spans.Asked.String(m.name), spans.Node.String(to.Node))
	}
	defer func() { spans.End(span, d.err) }()
	client := o.Clients.writes
	if m.over != nil {
		client = m.over(o.Clients, in)
	}
	err := client.Call(called, to, m.name, call, &r)
	moved := context.Cause(watched) == errMoved
	stop()
	if moved && err == nil {
		// The node was told that nobody waits, and its answer to that got here all the same.
		err = fmt.Errorf("%w: %w", rpc.ErrNoAnswer, errMoved)
	}
	switch {
	case err == nil:
		d.out, d.err, d.left = r.Out, r.Error.err(), r.Left
		switch {
		case r.Untouched:
			d.verdict = untouched
		case memory.CodeOf(d.err) == memory.CodeOutcomeUnknown && r.Left:
			d.verdict = unknown
		case d.err == nil && r.At != "":
			o.settle(ctx, r.At)
		}
		return d
	case cannotBeSent(err):
		d.err = memory.Errorf(memory.CodeInvalid, "what is to be written has a value that JSON cannot say: %v", err)
		return d
	case errors.Is(err, rpc.ErrNotReached):
		d.err, d.verdict = err, untouched
		return d
	case errors.Is(err, rpc.ErrNoAnswer):
		d.err, d.verdict = lost(ctx, to, moved, err), unknown
		return d
	case memory.CodeOf(err) == memory.CodeOverloaded:
		d.err = err
		return d
	}
	// The node has not got as far as the method: it has none of that name, or cannot read
	// what it was sent.
	d.err = memory.Errorf(memory.CodeUnavailable, "%s, which leads, cannot take the write: %v", to, err).
		WithHint("nothing was written; the nodes may be of different versions").WithCause(err)
	return d
}

// settle waits, not long, until the state of this node is where that of the leader was
// when it had written. A write is not the worse for a node that lags.
func (o *Options) settle(ctx context.Context, at string) {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	if err := o.Reach(ctx, at); err != nil {
		o.Logger.Debug("what was written elsewhere is not here yet", "position", at, "err", err)
	}
}

// lost is the error of a call that may have been carried out.
func lost(ctx context.Context, to rpc.Target, moved bool, err error) error {
	e := memory.Errorf(memory.CodeOutcomeUnknown, "%s, which led, was asked for the write and did not answer, so that it may or may not have happened: %w", to, err)
	switch {
	case ctx.Err() != nil:
		e = memory.Errorf(memory.CodeOutcomeUnknown, "the answer of %s, which leads, was not waited for: the write may or may not have happened", to).WithCause(ctx.Err())
	case moved:
		e = memory.Errorf(memory.CodeOutcomeUnknown, "%s led when it was asked for the write, did not answer, and leads no more: the write may or may not have happened", to).WithCause(err)
	}
	return e.WithHint("a capture or a revision with an id may be sent again with the same id: it will be stored once; look whether anything else has happened before sending it again")
}

// How a call is given up whose node does not lead any more. One that is alive says what
// became of the call, so that it gets some time.
const (
	lookEvery  = 250 * time.Millisecond
	graceMoved = 1 * time.Second // another node leads
	graceLost  = 5 * time.Second // no node is known to
)

// whileLeading returns a context for a call, which ends when the node that was called has
// not led for a while. Call stop when the call has ended.
func (o *Options) whileLeading(ctx context.Context, to rpc.Target) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for moved, lost := time.Duration(0), time.Duration(0); ; {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			now, self, known := o.Leader()
			switch {
			case self, known && (now.Node != to.Node || to.Node == "" && now != to):
				moved += lookEvery
			case known:
				moved, lost = 0, 0
			default:
				lost += lookEvery
			}
			if moved >= graceMoved || lost >= graceLost {
				cancel(errMoved)
				return
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-ended
	}
}
