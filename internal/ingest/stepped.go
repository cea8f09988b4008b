package ingest

import (
	"context"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// Host carries out what a stepped writer wants, whenever it likes, and gives
// back the answers through the writer's methods.
type Host interface {
	// Send is answered by Appended with the same number.
	Send(number uint64, data []byte, last uint64)
	// Survey is answered by Surveyed.
	Survey(q Survey)
	// Propose is answered by Applied, in order.
	Propose(command []byte)
	// Opened, Stalled, Stopped and Ended tell what becomes of the writer.
	Opened()
	Stalled(why error)
	Stopped(why *eventlog.DivergedError)
	Ended(why error)
}

// Survey is a look at the log behind a sequence.
type Survey struct{ q readLog }

// After is the sequence behind which to look.
func (s Survey) After() uint64 { return s.q.after }

// Stepped is a writer without goroutines and timers: whoever owns it takes the
// steps of its rounds, and says what time it is. It is what a simulation drives;
// Start gives the same writer a loop of its own.
type Stepped struct {
	*Writer
	round *round
	host  Host
}

// NewStepped makes a writer of one term. Its first step is a Work.
func NewStepped(opt Options, host Host) *Stepped {
	w, r := newWriter(opt)
	return &Stepped{Writer: w, round: r, host: host}
}

// Work steps because there may be something to do, or time has passed.
func (s *Stepped) Work(now time.Duration) { s.step(now, work{}) }

// Appended gives the log's answer to a Send.
func (s *Stepped) Appended(now time.Duration, number uint64, err error) {
	s.step(now, appended{number, err})
}

// Surveyed looks at a log for a Survey and gives the answer.
func (s *Stepped) Surveyed(now time.Duration, stream eventlog.Stream, q Survey) {
	s.step(now, survey(context.Background(), stream, s.opt.State, q.q))
}

// Applied gives Raft's answer to the oldest Propose that has none.
func (s *Stepped) Applied(now time.Duration, result any, err error) {
	s.step(now, applied{result, err})
}

// Abandon ends the writer at once.
func (s *Stepped) Abandon(now time.Duration, why error) { s.step(now, abandon{why}) }

// Due says when to step next though nothing has come in; false = never.
func (s *Stepped) Due(now time.Duration) (time.Duration, bool) {
	if s.round.ready() {
		return now, true
	}
	return s.round.wake()
}

// Round is the number of the present round.
func (s *Stepped) Round() uint32 { return s.round.number }

// InFlight reports whether a frame is on its way into the log.
func (s *Stepped) InFlight() bool { return s.round.sending != nil }

func (s *Stepped) step(now time.Duration, in input) {
	for _, out := range s.round.step(now, in) {
		switch out := out.(type) {
		case sendFrame:
			s.host.Send(out.sending, out.data, out.last)
		case readLog:
			s.host.Survey(Survey{out})
		case propose:
			s.host.Propose(out.command)
		case opened:
			s.host.Opened()
		case stalled:
			s.host.Stalled(out.err)
		case stopped:
			s.host.Stopped(out.diverged)
		case ended:
			s.host.Ended(out.err)
		}
	}
}

// Pending is one event of a request that was queued.
type Pending struct {
	d *draft
	w *Writer
}

// Accepted gives the event's position once the log has it.
func (p *Pending) Accepted() (events.Position, bool) {
	return p.d.at, isDone(p.d.accepted) && p.d.inLog
}

// Record is the record that a capture makes, if it is not a duplicate.
func (p *Pending) Record() events.ID { return p.d.header.Record }

// Result gives the final outcome, as a caller is told it; false while it is not known.
func (p *Pending) Result() (projections.EventResult, error, bool) {
	if !isDone(p.d.done) {
		return projections.EventResult{}, nil, false
	}
	a := answers(context.Background(), p.w, memory.WaitApplied, p.d)[0]
	return a.result, a.err, true
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ByState reports whether the state alone decided it, once there is a result.
func (p *Pending) ByState() bool { return p.d.byState }

// Queue is Capture for one item, without waiting.
func (s *Stepped) Queue(namespace string, item Item) (*Pending, error) {
	return Confirmed(context.Background(), s.Writer, func(sure bool) (*Pending, error) {
		drafts, results, _, err := s.queueCaptures(context.Background(), namespace, []Item{item}, sure)
		if err != nil {
			return nil, err
		}
		if e := results[0].Error; e != nil {
			return nil, memory.Errorf(e.Code, "%s", e.Detail)
		}
		return &Pending{drafts[0], s.Writer}, nil
	})
}

// QueueRevision is one try of Revise, without waiting.
func (s *Stepped) QueueRevision(namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (*Pending, error) {
	return Confirmed(context.Background(), s.Writer, func(bool) (*Pending, error) {
		record, err := recordOf(as, id)
		if err != nil {
			return nil, err
		}
		d, err := s.revision(namespace, as, record, rev, ifMatch, clientID)
		return s.queued(d, err)
	})
}

// QueueForget is Forget, without waiting.
func (s *Stepped) QueueForget(namespace, as, id string, ifMatch int) (*Pending, error) {
	return Confirmed(context.Background(), s.Writer, func(bool) (*Pending, error) {
		record, err := recordOf(as, id)
		if err != nil {
			return nil, err
		}
		d, err := s.forgetting(namespace, as, record, ifMatch)
		return s.queued(d, err)
	})
}

// QueueNamespace is CreateNamespace without settings, without waiting.
func (s *Stepped) QueueNamespace(name string) (*Pending, error) {
	id := s.ids.New()
	err := s.opt.Keys.CreateNamespace(id)
	return s.queued(s.directoryDraft(events.TypeNamespaceCreated, id, name, events.Settings{Set: map[string]string{}}), err)
}

// QueueErasure is the event with which Erase begins, without waiting: that a subject's keys
// end. Erasing.DestroyEnded destroys them once it is applied.
func (s *Stepped) QueueErasure(namespace, subject string) (*Pending, error) {
	a, err := s.admit(namespace)
	if err != nil {
		return nil, err
	}
	if err := a.view.Close(); err != nil {
		return nil, err
	}
	d, err := s.opt.Keys.DataKey(a.ns.ID, subject)
	if err != nil {
		return nil, memory.Errorf(memory.CodeNotFound, "subject: %v", err).WithCause(err)
	}
	ids, err := s.opt.Keys.Ending(a.ns.ID, d.ID())
	if err != nil {
		return nil, err
	}
	return s.queued(endingDraft(s.ids.New(), a.ns.ID, ids), nil)
}

func (s *Stepped) queued(d *draft, err error) (*Pending, error) {
	if err != nil {
		return nil, err
	}
	return &Pending{d, s.Writer}, s.queue.push(d.header.Namespace, []*draft{d})
}
