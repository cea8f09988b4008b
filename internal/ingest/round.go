package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// phase is how far a writer's round has come.
type phase uint8

const (
	phaseSettle  phase = iota // the round before has answers outstanding, or it waits to try again
	phaseSurvey               // reads what the log holds behind the state
	phaseBegin                // its control events are on their way into the log
	phaseApply                // … and into the state
	phaseOpen                 // admits
	phaseStopped              // log and state disagree; a person is needed
	phaseEnded                // the term is over
)

// The inputs of a step.
type (
	input interface{}
	// work: something to decide or derive may be there, or time has passed.
	work struct{}
	// damaged: log and state are known to disagree.
	damaged struct{ diverged *eventlog.DivergedError }
	// appended answers a sendFrame.
	appended struct {
		sending uint64
		err     error
	}
	// surveyed answers a readLog.
	surveyed struct {
		messages []eventlog.Message
		last     uint64 // of the log
		err      error
		leader   string        // who says so
		passing  time.Duration // eventlog.Info.Passing
	}
	// applied answers the oldest propose that has none.
	applied struct {
		result any
		err    error
	}
	// abandon ends the writer at once: its owner does not wait any longer.
	abandon struct{ err error }
)

// The outputs of a step. At most one sendFrame or readLog is without an answer
// at a time.
type (
	output interface{}
	// sendFrame appends bytes to the log if its last sequence is last.
	sendFrame struct {
		sending  uint64
		data     []byte
		last     uint64
		again    bool // these bytes were sent before
		watchers watchers
	}
	// readLog reads what stands behind a sequence. With check, log and state are
	// compared first.
	readLog struct {
		after    uint64
		identity string
		check    bool
	}
	// propose hands a command to Raft.
	propose struct {
		command  []byte
		watchers watchers
	}
	// opened: the round admits from now on.
	opened struct{}
	// stalled: the round does not open for now, and will be tried again.
	stalled struct{ err error }
	// stopped: log and state disagree.
	stopped struct{ diverged *eventlog.DivergedError }
	// ended: the term is over.
	ended struct{ err error }
)

// sending is the one frame that is on its way into the log. Its bytes stay the
// same at its sequence until they are acknowledged or the sequence holds others.
type sending struct {
	*frame
	n        uint64
	at       projections.Cursor // the log in front of it
	data     []byte
	underWay bool        // an attempt has an unknown outcome: it may still arrive
	doubt    bool        // so it was once, there or at an earlier sequence: nobody is told that it was not written
	cause    error       // why the last attempt failed
	opens    events.Type // of a control event that begins the round; 0 = it is none
}

// proposal is a range that Raft is agreeing on.
type proposal struct {
	drafts []*draft // nil for frames that are not ours
	end    uint64
}

// round is the protocol of one writer: the rounds of one Raft term, one after
// the other. It is a step function: it does no I/O, starts nothing, and sees no
// clock but the time it is given, so that a simulation can drive it.
//
// The rules (each has a run that goes wrong without it):
//   - The log's order decides. What stands in front of our leader.began is valid
//     and adopted; it is applied before anything is admitted.
//   - A writer never writes under another's term or round. A valid frame of a
//     higher term ends the term, one of our own term that is not ours the round.
//   - An acknowledgement counts for these bytes at this sequence only. What is
//     unknown is sent again byte for byte; that a read does not show it says
//     nothing.
//   - An enqueue of unknown outcome, a range ahead of the state or on another
//     chain end the round: the next one begins from what log and state hold.
type round struct {
	shard  uint16
	term   uint64
	number uint32
	preamble
	state     *projections.State
	newDerive func() (*derive.Deriver, error)
	deriver   *derive.Deriver
	seq       *sequencer
	horizon   *horizon
	ids       *events.IDSource
	log       *slog.Logger

	phase   phase
	now     time.Duration
	at      projections.Cursor // the log as far as this writer knows it
	sending *sending
	next    *frame
	pending []*proposal
	sent    uint64 // frames ever sent
	busy    bool   // the log owes an answer
	retry   retry
	against *contradiction
	why     error // of the last round's end
	out     []output
}

// preamble is what the log is told when a round begins, in front of leader.began.
type preamble struct {
	stream events.StreamRef         // that it writes to; zero = the one that the state knows
	untold []projections.Quarantine // events in quarantine of which the log does not tell
}

const (
	maxPending  = 16
	surveyBytes = 4 << 20
	surveyItems = 1024
	retryMin    = 10 * time.Millisecond
	retryMax    = time.Second
)

// contradiction is that the log has told against the state, each time that it was asked
// since. A pause counts as a second at most: all processes of a machine may have stood
// still meanwhile.
type contradiction struct {
	leader string        // of the log, who told
	at     time.Duration // when it was last asked
	held   time.Duration // for how long
}

// passes reports whether what the log tells against the state may be so for a moment only.
// What nats-server's leader tells is not always so (eventlog.Info.Passing), and to stop
// writes over that would stop them until somebody comes.
func (r *round) passes(in surveyed) bool {
	if in.passing == 0 {
		return false
	}
	if r.against == nil || r.against.leader != in.leader {
		r.log.Warn("the log contradicts the state; it is asked again, for that may pass", "leader", in.leader, "says", in.err)
		r.against = &contradiction{leader: in.leader, at: r.now}
	}
	r.against.held += min(r.now-r.against.at, time.Second)
	r.against.at = r.now
	return r.against.held < in.passing
}

// retry is a pause that grows.
type retry struct {
	pause time.Duration
	at    time.Duration // when it is over
}

func (r *retry) next() time.Duration {
	r.pause = min(max(2*r.pause, retryMin), retryMax)
	return r.pause
}

// step takes one input at a time that only goes forward, and says what to do.
func (r *round) step(now time.Duration, in input) []output {
	r.now, r.out = now, nil
	switch in := in.(type) {
	case damaged:
		r.stop(in.diverged)
	case appended:
		r.busy = false
		r.appended(in)
	case surveyed:
		r.busy = false
		r.surveyed(in)
	case applied:
		r.applied(in)
	case abandon:
		r.seq.drop(memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))
		r.endTerm(in.err)
	}
	r.advance()
	return r.out
}

// wake says when to step next though nothing has come in; false = never.
func (r *round) wake() (time.Duration, bool) {
	if r.busy || r.retry.at <= r.now || r.phase >= phaseStopped {
		return 0, false
	}
	return r.retry.at, true
}

// ready reports whether a step without input gets something done.
func (r *round) ready() bool {
	switch {
	case r.phase >= phaseStopped:
		return !r.seq.queue.ended() && r.seq.queue.available()
	case r.sending != nil:
		return !r.sending.done || r.next == nil && r.phase == phaseOpen && r.seq.ready()
	}
	return r.phase == phaseOpen && len(r.pending) < maxPending && (r.next != nil || r.seq.ready())
}

// finished reports whether nothing is owed any more and nothing more will come.
func (r *round) finished() bool {
	owes := r.sending != nil && r.sending.drafts != nil
	if r.busy || owes || r.next != nil || len(r.pending) > 0 || len(r.seq.waiting) > 0 {
		return false
	}
	return r.phase == phaseEnded || r.seq.queue.ended()
}

// advance does what can be done without an answer from outside.
func (r *round) advance() {
	switch r.phase {
	case phaseSettle:
		if !r.busy && len(r.pending) == 0 && r.now >= r.retry.at {
			r.survey()
		}
	case phaseSurvey:
		if r.against != nil && !r.busy && len(r.pending) == 0 && r.now >= r.retry.at {
			r.look(true)
		}
	case phaseBegin, phaseOpen:
		r.write()
	case phaseApply:
		if len(r.pending) == 0 {
			r.open()
		}
	case phaseStopped:
		r.seq.drop(r.seq.refusals.now())
	}
}

// survey begins a round: from the state, not from what the round before knew.
func (r *round) survey() {
	var err error
	r.phase, r.at = phaseSurvey, r.state.Cursor()
	if r.at.Term > r.term {
		r.endTerm(&DeposedError{Own: r.term, Term: r.at.Term, Seq: r.at.Seq})
		return
	}
	if r.at.Term == r.term {
		r.number = max(r.number, r.at.Round+1)
	}
	if r.deriver, err = r.newDerive(); err != nil {
		r.endRound(err)
		return
	}
	if err = r.readUntold(); err != nil {
		r.endRound(err)
		return
	}
	r.look(true)
}

func (r *round) look(check bool) {
	r.busy = true
	identity := r.at.Identity
	if r.opensEpoch() {
		identity = r.stream.Identity
	}
	r.out = append(r.out, readLog{after: r.at.Seq, identity: identity, check: check})
}

// opensEpoch reports whether the stream's epoch has not begun in the log yet.
func (r *round) opensEpoch() bool { return r.stream.Epoch > r.at.Epoch }

// open admits: leader.began and everything in front of it is in the state.
func (r *round) open() {
	began := r.state.Cursor()
	assert.Always(began.Term > r.term || began.Term == r.term && began.Round >= r.number, "a writer's round opens with its beginning in the state", nil)
	r.phase, r.retry, r.why = phaseOpen, retry{}, nil
	r.seq.times.follow(r.state.Cursor().SealedAt)
	r.seq.refusals.setStalled(nil)
	r.horizon.begin(r.at.Seq)
	r.out = append(r.out, opened{})
	r.write()
}

// endRound stops writing until what is owed was answered, then begins again.
func (r *round) endRound(why error) {
	if r.phase == phaseSettle || r.phase >= phaseStopped {
		return
	}
	r.why = why
	r.release()
	if r.phase == phaseOpen {
		r.log.Warn("a writer's round ends", "round", r.number, "position", r.at.Position().String(), "why", why)
		r.horizon.end(nil) // the next one opens at once, or tells why not
	} else {
		// The round never opened: nobody should wait for it.
		r.log.Warn("a writer's round did not open", "round", r.number, "position", r.at.Position().String(), "why", why)
		r.seq.refusals.setStalled(why)
		r.horizon.end(why)
		r.seq.drop(r.seq.refusals.now())
		r.out = append(r.out, stalled{why})
	}
	r.phase = phaseSettle
	r.number++
	r.retry.at = r.now + r.retry.next()
}

// endTerm stops for good.
func (r *round) endTerm(why error) {
	if r.phase == phaseEnded {
		return
	}
	r.log.Warn("a writer's term ends", "round", r.number, "position", r.at.Position().String(), "why", why)
	assert.Sometimes(len(r.pending) > 0, "a writer's term ends while Raft owes it answers", nil)
	r.phase, r.why = phaseEnded, why
	r.seq.refusals.setEnded(why)
	r.horizon.end(why)
	r.release()
	r.seq.drop(r.seq.refusals.now())
	for _, p := range r.pending {
		r.answerUnknown(p.drafts, why)
	}
	r.pending = nil
	r.out = append(r.out, ended{why})
}

// stop leaves reading up and refuses writes: a person has to decide.
func (r *round) stop(d *eventlog.DivergedError) {
	assert.Reachable("a writer stops since log and state disagree", nil)
	r.log.Error("log and state disagree, writes are stopped", "position", r.at.Position().String(), "kind", d.Kind, "detail", d.Detail, "hint", d.Hint)
	r.seq.refusals.setDiverged(d)
	r.horizon.end(d)
	r.phase = phaseStopped
	if s := r.sending; s != nil && !s.doubt {
		r.sending = nil
		r.refuse(s.drafts, r.seq.refusals.now())
	}
	r.why = d
	r.release()
	r.seq.drop(r.seq.refusals.now())
	r.out = append(r.out, stopped{d})
}

// release lets go of what this round decided. What is not in the log goes back
// to the queue; the outcome of what may be there is unknown, unless the answer
// that is still owed tells that it was accepted.
func (r *round) release() {
	r.seq.giveBack(r.next)
	r.next = nil
	if s := r.sending; s != nil && !r.busy {
		r.sending = nil
		r.answerUnknown(s.drafts, r.why)
	}
}

func (r *round) answerUnknown(drafts []*draft, cause error) { r.refuse(drafts, unknownOutcome(cause)) }

func (r *round) refuse(drafts []*draft, err error) {
	r.seq.flight.end(drafts)
	finishAll(drafts, err)
}

// propose hands frames that follow `from` to Raft.
func (r *round) propose(from *projections.Cursor, drafts []*draft, frames ...projections.RangeFrame) {
	c := r.state.Cursor()
	rg := projections.NewRange(&c)
	rg.Previous, rg.Chain, rg.Frames, rg.Keys = from.Seq, from.Chain, frames, r.deriver.KeysIndex()
	r.pending = append(r.pending, &proposal{drafts, rg.End()})
	r.out = append(r.out, propose{rg.Encode(), watchersOf(drafts)})
}

// applied takes the answer to the oldest proposal.
func (r *round) applied(in applied) {
	if len(r.pending) == 0 {
		return // of a term that ended
	}
	p := r.pending[0]
	r.pending = r.pending[1:]
	res, ok := in.result.(projections.RangeResult)
	if in.err == nil && ok && res.Done() {
		r.horizon.apply(res.Cursor.Seq)
	}
	switch {
	case in.err != nil:
		r.answerUnknown(p.drafts, in.err)
		if endsTerm(in.err) {
			r.endTerm(in.err)
			return
		}
		r.endRound(fmt.Errorf("the state did not take the log's frame: %w", in.err))
	case !ok || !res.Done() || res.Cursor.Seq < p.end:
		err := fmt.Errorf("the range up to %d is %s of the state, which stands at %d", p.end, res.Answer, res.Cursor.Seq)
		r.answerUnknown(p.drafts, err)
		r.endRound(err)
	case res.Answer == projections.AnswerApplied && len(res.Events) == len(p.drafts):
		r.seq.flight.end(p.drafts)
		for i, d := range p.drafts {
			r.seq.counters.count(res.Events[i].Outcome)
			d.finish(res.Events[i], nil)
		}
	case p.drafts != nil:
		// The state has the frame, but another proposal of it got the verdicts.
		assert.Reachable("a writer's frame is applied by another's proposal", nil)
		assert.AlwaysOrUnreachable(res.Answer != projections.AnswerApplied, "each event of a writer's own frame has one verdict", nil)
		r.answerUnknown(p.drafts, nil)
	}
	if r.phase == phaseSurvey && len(r.pending) == 0 && !r.busy {
		r.look(false)
	}
}

// endsTerm reports whether an answer of Raft says that this replica leads no
// more, or will not apply anything more.
func endsTerm(err error) bool {
	for _, end := range []error{raftfsm.ErrNotLeader, raftfsm.ErrClosed, raftfsm.ErrHalted} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
