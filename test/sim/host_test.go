package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/raftfsm"
)

// host carries out what a writer wants.
type host struct {
	r       *replica
	n       int
	s       *stream // that it writes to
	w       *ingest.Stepped
	surveys []ingest.Survey
	futures []*raftfsm.Future
	phase   string
	round   uint32 // that is open
	gone    bool
	sent    []byte // last
	met     uint64 // the highest term of a frame that the log showed it
}

func (h *host) String() string {
	if h == nil {
		return "no writer"
	}
	return fmt.Sprintf("writer %d of %d", h.n, h.r.id)
}

func (h *host) Send(number uint64, data []byte, last uint64) {
	if h.met > h.w.Term() {
		h.r.w.fail("%s of term %d writes on, and was shown a frame of term %d", h, h.w.Term(), h.met)
	}
	h.sent = data
	h.r.w.event("%s sends #%d behind %d", h, number, last)
	h.r.w.log.post(&appending{host: h, to: h.s, number: number, data: data, last: last})
}

func (h *host) Survey(q ingest.Survey) { h.surveys = append(h.surveys, q) }

// Propose gives a command to Raft. Now and then Raft's store fails: it is not
// known whether the command is in it.
func (h *host) Propose(command []byte) {
	w := h.r.w
	chance := w.rates.fault
	if w.rates.lose > 0 {
		chance *= 6
	}
	if !w.faulty || w.rng.IntN(100) >= chance {
		h.futures = append(h.futures, h.r.raft.Propose(ctx, command))
		return
	}
	w.bite("enqueue of unknown outcome")
	switch {
	case w.rates.lose > 0 && w.rng.IntN(3) > 0: // one accident to both: Raft has it, and the log loses it
		h.r.raft.Propose(ctx, command)
		w.log.lose(h.s, h.s.last()-1)
	case w.rng.IntN(2) == 0:
		h.r.raft.Propose(ctx, command)
	}
	f, resolve := raftfsm.NewFuture()
	resolve(nil, 0, fmt.Errorf("%w: %w", raftfsm.ErrUnknownOutcome, raftfsm.ErrStorage))
	h.futures = append(h.futures, f)
}

func (h *host) Opened() {
	h.phase, h.round = "open", h.w.Round()
	if c := h.r.state.Cursor(); c.Term < h.w.Term() || c.Term == h.w.Term() && c.Round < h.round {
		h.r.w.fail("%s opens round %d, and the state stands at %d in round %d of term %d", h, h.round, c.Seq, c.Round, c.Term)
	}
	h.r.w.event("%s opens round %d", h, h.round)
	if m := h.r.member; m != nil {
		m.owes = true
	}
	if h.round > 0 {
		h.r.w.reach("round > 1")
	}
	if h.w.Counters().Adopted.Load() > 0 {
		h.r.w.reach("adopted frame")
	}
}

func (h *host) Stalled(why error) {
	h.r.w.event("%s stalls: %v", h, why)
	h.r.w.reach("stalled")
}

// Stopped: an operator sees it, and repairs the log.
func (h *host) Stopped(why *eventlog.DivergedError) {
	if h.r.w.log.losses == 0 {
		h.r.w.fail("%s stops: %v", h, why)
	}
	h.phase = "stopped"
	h.r.w.event("%s stops: %v", h, why)
	h.r.w.reach("writes stopped: " + why.Kind)
}

func (h *host) Ended(why error) {
	h.phase = "ended"
	h.r.w.event("%s ends: %v", h, why)
	if deposed := (*ingest.DeposedError)(nil); errors.As(why, &deposed) {
		h.r.w.reach("deposed by the log")
		h.r.raft.StepDown()
	}
}

// current confirms that the writer leads and its state holds all that was accepted, as
// package replica does. What is not so at once is no answer.
func (h *host) current(context.Context) error {
	if h.r.down || h.r.host != h {
		return raftfsm.ErrNotLeader
	}
	if err := h.w.Settled(ended()); err != nil {
		return err
	}
	index, err := h.r.raft.LinearizableIndex(ended())
	switch {
	case err != nil:
		return err
	case h.r.raft.Term() != h.w.Term():
		return raftfsm.ErrNotLeader
	case h.r.raft.Applied() < index:
		return errLater
	}
	return nil
}

// tells is called where a client is told what the writer's state alone says: it holds all
// that was acknowledged by then.
func (h *host) tells(what string) {
	v := h.r.state.View()
	h.r.w.shows(v, h.r.w.expected(), what)
	h.r.w.must(v.Close())
	h.r.w.reach("answered by the state")
}

// lose: nobody hears of this writer any more.
func (h *host) lose() {
	h.gone = true
	h.r.w.orphan(h)
}

// step lets the writer take one answer, or do what it can.
func (h *host) step() {
	w := h.r.w
	switch {
	case len(h.surveys) > 0 && w.rng.IntN(2) == 0:
		q := h.surveys[0]
		h.surveys = h.surveys[1:]
		v := w.log.look(h.s, h.r, max(q.After(), h.r.state.Cursor().Seq)).ofLeader()
		h.shown(v, q.After())
		h.w.Surveyed(w.elapsed, v, q)
	case len(h.futures) > 0 && answered(h.futures[0]):
		res, _, err := h.futures[0].Wait(ctx)
		h.futures = h.futures[1:]
		if err != nil {
			w.event("%s: Raft says %v", h, err)
			w.reach("unknown enqueue")
		}
		h.w.Applied(w.elapsed, res, err)
	default:
		if at, ok := h.w.Due(w.elapsed); ok && at <= w.elapsed {
			h.w.Work(w.elapsed)
		}
	}
}

// shown takes note of the terms that a writer reads behind a sequence. Whoever reads
// there the frame that it sent last needs to read no more.
func (h *host) shown(v *view, after uint64) {
	met := h.met
	err := v.Read(ctx, after+1, v.last, func(m eventlog.Message) error {
		if m.Seq == after+1 && bytes.Equal(m.Data, h.sent) {
			return errLater
		}
		if f, err := events.DecodeFrame(m.Data); err == nil {
			met = max(met, f.Term)
		}
		return nil
	})
	if err == nil { // else it is not shown this, or has no need
		h.met = met
	}
}

func answered(f *raftfsm.Future) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}
