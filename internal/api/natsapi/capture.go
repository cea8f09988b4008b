package natsapi

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/api"
	"mneme/internal/spans"
	"mneme/memory"
)

// intake is one capture on its way through a lane. It is parsed when it leaves
// the lane.
type intake struct {
	parsed
	msg  *nats.Msg
	at   time.Time // when it came; unset if nothing is recorded
	span trace.Span
	ctx  context.Context // of its trace
}

// A lane writes what waits in it together, up to these bounds.
const (
	maxTogether      = 256
	maxTogetherBytes = 4 << 20
)

// What may wait before it is given to a lane. The client library drops what comes
// beyond, without an answer; Dropped counts it.
const (
	maxPending      = 16 << 10
	maxPendingBytes = 32 << 20
)

// take receives a message. It runs on the subscription's goroutine, in order of
// arrival, for all callers: so it neither reads the body nor waits, and what
// cannot be queued is refused.
func (s *Server) take(m *nats.Msg) {
	in := &intake{msg: m}
	if s.opt.Traces != nil {
		in.at = time.Now()
	}
	if err := s.enqueue(in); err != nil {
		to, _ := addressed(m.Subject) // for the list; the refusal has its reason
		s.refuse(s.ctx, m, to, false, err)
	}
}

func (s *Server) enqueue(in *intake) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosing
	}
	size := int64(len(in.msg.Data))
	if s.bytes.Add(size) > s.opt.MaxBytes {
		s.bytes.Add(-size)
		return overloaded("captures")
	}
	select {
	case s.lanes[maphash.String(s.seed, in.msg.Subject)%uint64(len(s.lanes))] <- in:
		s.under.Add(1)
		return nil
	default:
		s.bytes.Add(-size)
		return overloaded("captures")
	}
}

func overloaded(what string) error {
	err := memory.Errorf(memory.CodeOverloaded, "too many %s are waiting", what).WithHint("slow down and send it again")
	err.RetryAfter = time.Second
	return err
}

// runLane writes what arrives in one lane, in order, until it is closed.
func (s *Server) runLane(lane chan *intake) {
	var next *intake // taken already, but not part of the last batch
	for {
		if next == nil {
			in, ok := <-lane
			if !ok {
				return
			}
			if next = s.parse(in); next == nil {
				continue
			}
		}
		batch := []*intake{next}
		size := len(next.msg.Data)
		next = nil
		for next == nil && len(batch) < maxTogether && size < maxTogetherBytes {
			more := s.another(lane)
			if more == nil {
				break
			}
			if more.namespace != batch[0].namespace || more.wait != batch[0].wait {
				next = more
				break
			}
			batch = append(batch, more)
			size += len(more.msg.Data)
		}
		s.write(batch)
	}
}

// another takes one more message if there is one. A malformed one is refused and
// ends the batch: those that wait for their answer must not wait for many more.
func (s *Server) another(lane chan *intake) *intake {
	select {
	case in, ok := <-lane:
		if !ok {
			return nil
		}
		return s.parse(in)
	default:
		return nil
	}
}

// parse reads a message, or refuses it and returns nil.
func (s *Server) parse(in *intake) *intake {
	s.record(in)
	var err error
	if in.parsed, err = s.parser.parse(in.msg); err != nil {
		s.refuse(in.ctx, in.msg, in.parsed, true, err)
		spans.End(in.span, err)
		s.bytes.Add(-int64(len(in.msg.Data)))
		s.under.Add(-1)
		return nil
	}
	return in
}

// write writes captures of one namespace and answers each.
func (s *Server) write(batch []*intake) {
	items := make([]memory.Capture, len(batch))
	opt := api.CaptureOptions{Origin: memory.OriginCapture, Source: make([]string, len(batch))}
	size := int64(0)
	for i, in := range batch {
		items[i], opt.Source[i] = in.item, in.source
		size += int64(len(in.msg.Data))
	}
	defer func() {
		s.bytes.Add(-size)
		s.under.Add(-int64(len(batch)))
	}()
	ctx, cancel := context.WithTimeout(together(s.ctx, batch), s.opt.Timeout)
	defer cancel()
	resp, err := s.capture(ctx, batch[0].namespace, items, opt, batch[0].wait)
	if err == nil && len(resp.Results) != len(batch) {
		err = memory.Errorf(memory.CodeInternal, "capture answered %d results for %d items", len(resp.Results), len(batch))
	}
	for i, in := range batch {
		if err != nil {
			s.refuse(in.ctx, in.msg, in.parsed, false, err)
			spans.End(in.span, err)
			continue
		}
		res := resp.Results[i]
		if e := res.Error; e != nil {
			err := &memory.Error{Code: e.Code, Message: e.Detail, Hint: e.Hint}
			s.refuse(in.ctx, in.msg, in.parsed, false, err)
			spans.End(in.span, err)
			continue
		}
		if res.Vectors == "" && in.wait == memory.WaitSearchable {
			res.Vectors = resp.Vectors
		}
		s.reply(in.msg, pubAckOf(res))
		spans.End(in.span, nil)
	}
}

// capture calls the writer and turns its panic into an internal error: one bad
// message must not end the node.
func (s *Server) capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (resp memory.CaptureResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.opt.Logger.LogAttrs(ctx, slog.LevelError, "capture panicked", append(api.TraceOf(ctx).Attrs(), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))...)
			err = memory.Errorf(memory.CodeInternal, "panic: %v", v)
		}
	}()
	return s.opt.Writer.Capture(ctx, namespace, items, opt, wait)
}

// refuse counts a message as refused and, if someone waits, says why. One whose
// outcome is unknown was not refused and is not counted.
func (s *Server) refuse(ctx context.Context, m *nats.Msg, p parsed, malformed bool, err error) {
	e := asError(api.CutShort(err))
	if e.Code == memory.CodeInternal {
		s.opt.Logger.LogAttrs(ctx, slog.LevelError, "capture failed", append(api.TraceOf(ctx).Attrs(), slog.String("subject", m.Subject), slog.Any("error", err))...)
	}
	if s.opt.Rejecter != nil && e.Code != memory.CodeOutcomeUnknown {
		s.refusals.note(api.Refused(p.namespace, p.agent, "nats", m.Data, malformed, e))
	}
	s.reply(m, pubErrorOf(e))
}

func (s *Server) reply(m *nats.Msg, body any) {
	if m.Reply == "" {
		return
	}
	s.send(&nats.Msg{Subject: m.Reply, Data: encode(body)})
}

// answerable are the prefixes of the subjects that answers may go to: inboxes of
// the node's own account, and what the server makes of the reply subject of a
// caller in another account. Anything else would make the node publish, with its
// own rights, where the caller may not: into the log, a feed, another agent's
// captures.
var answerable = []string{"_INBOX.", "_R_."}

func mayAnswer(reply string) bool {
	for _, prefix := range answerable {
		if strings.HasPrefix(reply, prefix) {
			return !strings.ContainsAny(reply, "*>")
		}
	}
	return false
}

// Dropped is how many captures were dropped without an answer, because more came
// than the node could even refuse.
func (s *Server) Dropped() uint64 {
	return s.taking.dropped()
}

// ForeignReplies is how many answers were dropped because their reply subject
// was no inbox.
func (s *Server) ForeignReplies() uint64 { return s.foreign.Load() }

// send publishes an answer. If the connection is gone the asker will time out,
// which is the truth: it cannot be told.
func (s *Server) send(m *nats.Msg) {
	if !mayAnswer(m.Subject) {
		if s.foreign.Add(1) == 1 {
			s.opt.Logger.Warn("an answer was dropped: its reply subject is no inbox; further ones are only counted", "reply", fmt.Sprintf("%.120q", m.Subject))
		}
		return
	}
	if err := s.opt.Conn.PublishMsg(m); err != nil {
		s.opt.Logger.Warn("answer not sent", "error", err)
	}
}
