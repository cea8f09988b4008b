package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
)

// A log that loses messages which it had synced, and the repair of it: as package
// node does, with the comparison, the filling and the reservation that it uses.

// lose takes what stands behind a sequence.
func (l *log) lose(s *stream, behind uint64) {
	w := l.w
	behind = max(behind, 2) // the namespace stays
	if behind >= s.last() || !l.mayLose(s) {
		return
	}
	w.bite("suffix lost")
	applied := uint64(0)
	for _, r := range w.replicas {
		applied = max(applied, r.state.Cursor().Seq)
	}
	if applied > behind {
		w.reach("log lost what a state had applied")
	}
	if applied < s.last() {
		w.reach("log lost what no state had applied")
	}
	lost := s.last() - behind
	l.cut(s, behind)
	if w.rng.IntN(2) == 0 {
		if at, ok := l.end(s); ok {
			l.reuse(s, at, 1+w.rng.IntN(int(lost)+1))
		}
	}
}

// end is where a stream's messages lead; false where one is lost.
func (l *log) end(s *stream) (at projections.Cursor, ok bool) {
	for _, m := range s.msgs {
		if m == nil {
			return at, false
		}
		_, _, err := at.Follow(m)
		l.w.must(err)
	}
	return at, true
}

// reuse puts frames behind a stream's end, where others may have been: a writer that
// knows nothing of what was lost goes on from what is left, as one does that was cut
// off, and does not come to propose them.
func (l *log) reuse(s *stream, at projections.Cursor, n int) {
	w := l.w
	w.bite("sequences used again")
	for range n {
		at.Round++
		e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: events.TypeLeaderBegan.Schema(),
			Event: w.ids.New(), SealedAt: at.SealedAt + 1}, Payload: events.Began{Term: at.Term, Round: at.Round}.Encode()}
		e.OccurredAt = e.SealedAt
		inside := [][]byte{e.Encode()}
		f := events.Frame{Feature: events.FeatureOf(inside), Epoch: at.Epoch, Term: at.Term, Seq: at.Seq + 1, Previous: at.Chain, Events: inside}
		m := f.Encode()
		if _, valid, err := at.Follow(m); err != nil || !valid {
			w.fail("a frame that continues the log is not valid: %v", err)
		}
		s.msgs = append(s.msgs, m)
		w.event("log %d is used again", s.last())
	}
}

// rot takes one message that a state has applied.
func (l *log) rot(s *stream) {
	if end := min(l.w.peak, s.last()); end > 2 && l.mayLose(s) {
		seq := 3 + uint64(l.w.rng.IntN(int(end-2)))
		l.w.bite("message lost")
		l.w.event("log loses %d of %d", seq, s.last())
		s.msgs[seq-1] = nil
	}
}

// mayLose: a single voter has what it had applied, and synced. If log and state are
// lost together, nothing can be expected.
func (l *log) mayLose(s *stream) bool {
	if r := l.w.replicas[0]; len(l.w.replicas) == 1 {
		if r.down || r.state.Cursor().Seq < l.w.peak {
			return false
		}
		l.w.must(r.state.Flush())
	}
	if s.sealed {
		return false
	}
	l.losses++
	return true
}

// loseSome loses a few of the last messages, or one of them.
func (l *log) loseSome() {
	s := l.newest()
	if l.w.rng.IntN(2) == 0 {
		l.rot(s)
	} else {
		l.lose(s, s.last()-min(s.last(), uint64(1+l.w.rng.IntN(4))))
	}
}

// cut takes messages out of a stream.
func (l *log) cut(s *stream, behind uint64) {
	l.w.event("log is cut behind %d of %d", behind, s.last())
	s.msgs = s.msgs[:behind]
	for _, n := range l.w.notes {
		l.w.checkKept(n)
	}
}

// checkKept takes back what a client was told, if that was no more than that the log
// has it, and the log has lost it before a state had it: another message may have its
// sequence by then. It reports whether the client may still rely on it.
func (w *world) checkKept(n *note) bool {
	if n.fate != acked || n.applied || w.log.losses == 0 {
		return true
	}
	passed := false
	for _, r := range w.replicas {
		v := r.state.View()
		ns, _ := v.Namespace(namespace) // a state may have lost everything
		_, ok, err := v.Head(ns.ID, n.record)
		passed = passed || v.Cursor().Seq >= n.at.Seq
		w.must(errors.Join(err, v.Close()))
		if ok {
			return true
		}
	}
	if !passed && w.log.holds(n) {
		return true
	}
	w.event("%s is lost", n.text)
	w.reach("accepted and lost with the log")
	n.fate = unknown
	n.lost++
	return false
}

// holds reports whether a stream has the event at the position that a client knows, in a
// frame that is valid there. A writer that is cut off from its peers, and under which the
// log loses its last frames and takes as many of the next leader, goes on behind those:
// nothing tells it, as long as it has no reason to read the log. See host.shown.
func (l *log) holds(n *note) bool {
	for _, s := range l.streams {
		if n.at.Seq > s.last() || s.msgs[n.at.Seq-1] == nil {
			continue
		}
		f, err := events.DecodeFrame(s.msgs[n.at.Seq-1])
		if err != nil || int(n.at.Index) >= len(f.Events) {
			continue
		}
		if e, err := events.DecodeEnvelope(f.Events[n.at.Index]); err == nil && e.Record == n.record && l.valid(s, n.at.Seq) && !l.contradicts(s) {
			return true
		}
	}
	return false
}

// contradicts reports whether a state has applied another message than a stream has at
// its place: what is behind that in the stream is given up with it.
func (l *log) contradicts(s *stream) bool {
	for _, r := range l.w.replicas {
		c := r.state.Cursor()
		if c.Seq > s.last() || len(s.lost(c.Seq)) > 0 {
			continue
		}
		var at projections.Cursor
		for _, m := range s.msgs[:c.Seq] {
			_, _, err := at.Follow(m)
			l.w.must(err)
		}
		if at.Chain != c.Chain {
			return true
		}
	}
	return false
}

// valid reports whether a stream's message continues those before it, as far as they
// are there.
func (l *log) valid(s *stream, seq uint64) (valid bool) {
	var at projections.Cursor
	for _, m := range s.msgs[:seq] {
		if m == nil {
			return true
		}
		var err error
		_, valid, err = at.Follow(m)
		l.w.must(err)
	}
	return valid
}

// newest is the stream that was made for the latest epoch.
func (l *log) newest() *stream {
	return slices.MaxFunc(l.streams, func(a, b *stream) int { return cmp.Compare(a.ref.Epoch, b.ref.Epoch) })
}

func (l *log) find(identity string) *stream {
	for _, s := range l.streams {
		if s.ref.Identity == identity {
			return s
		}
	}
	return nil
}

// choose gives the stream that goes on from where a state stands, and whether a
// repair has begun and not filled the next one.
func (l *log) choose(at *projections.Cursor) (s *stream, unfinished bool) {
	s = l.find(at.Identity)
	if s == nil {
		l.w.fail("a state knows the stream %q, which is not there", at.Identity)
	}
	if at.Next.IsZero() {
		return s, s.sealed
	}
	next := l.find(at.Next.Identity)
	if next == nil || next.last() < at.Seq {
		return s, true
	}
	return next, false
}

// repair is a repair of the log by the leader of a term. Its steps are those of
// package node; between them everything else goes on.
type repair struct {
	r      *replica
	term   uint64
	s      *stream // that is repaired
	at     int
	future *raftfsm.Future // of a command of the present step
}

var errLater = errors.New("the repair goes on later")

// step takes one step, or begins again.
func (p *repair) step() {
	w := p.r.w
	if w.log.gone[p.r.id] {
		return
	}
	if p.future != nil {
		if !answered(p.future) {
			return
		}
		_, _, err := p.future.Wait(ctx)
		p.future = nil
		if err != nil {
			w.event("replica %d: the repair's command: %v", p.r.id, err)
			p.at = 0
			if p.r.raft.Term() != p.term {
				p.r.repair = nil
			}
			return
		}
	}
	c := p.r.state.Cursor()
	s := w.log.find(c.Identity)
	if p.s = cmp.Or(p.s, s); p.s != s { // somebody else has repaired it
		p.over()
		return
	}
	steps := []func(*stream, *projections.Cursor) error{p.compare, p.adopt, p.reserve, p.seal, p.adopt, p.fill, p.use}
	switch err := steps[p.at](s, &c); {
	case err == nil:
		p.at++
	case !errors.Is(err, errLater):
		w.fail("replica %d repairs the log, step %d: %v", p.r.id, p.at, err)
	}
	if len(w.requests)+len(w.log.appends)+len(w.log.late) > 0 {
		w.reach("repair under load")
	}
}

func (p *repair) source(v *projections.View) eventlog.Source {
	return eventlog.Source{Frame: v.Frame, Last: v.Cursor().Seq}
}

// compare holds the log against the state. Where they contradict each other a person
// gives up what the log has instead: what was applied was agreed on.
func (p *repair) compare(s *stream, _ *projections.Cursor) error {
	v := p.r.state.View()
	defer v.Close()
	if s.sealed {
		p.r.w.reach("repair taken over")
	}
	_, err := eventlog.Compare(ctx, p.r.w.log.at(s, p.r), p.source(v))
	return p.giveUp(s, err)
}

func (p *repair) giveUp(s *stream, err error) error {
	refused := (*eventlog.RepairError)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	p.r.w.reach("log and state contradict")
	p.r.w.event("replica %d: %v", p.r.id, err)
	p.r.w.log.cut(s, refused.Seq-1)
	return errLater
}

// adopt brings what only the log holds into the state, a few messages at a time.
func (p *repair) adopt(s *stream, c *projections.Cursor) error {
	w := p.r.w
	if s.last() <= c.Seq {
		return p.r.state.Flush()
	}
	if f, err := events.DecodeFrame(s.msgs[c.Seq]); s.msgs[c.Seq] == nil || err == nil && f.Previous != c.Chain && f.Seq == c.Seq+1 {
		return p.giveUp(s, &eventlog.RepairError{Seq: c.Seq + 1, Detail: "it does not continue what the state applied"})
	}
	v := p.r.state.View()
	d, err := derive.New(p.r.keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	_, err = ingest.Replay(ctx, w.log.at(s, p.r), p.r.state, d, c.Seq+4, func(rg *projections.Range) error {
		p.future = p.r.raft.Propose(ctx, rg.Encode())
		return errLater
	})
	if gap := (*eventlog.GapError)(nil); errors.As(err, &gap) && p.future == nil {
		return p.giveUp(s, &eventlog.RepairError{Seq: gap.Want, Detail: "no state has it"})
	}
	if errors.Is(err, keyring.ErrNoKey) { // the one who repairs tries again
		w.reach("repair without the keys")
		return errLater
	}
	if errors.Is(err, errLater) {
		w.reach("message adopted by a repair")
		if s.sealed {
			w.reach("message got in before the seal")
		}
	}
	return err
}

func (p *repair) reserve(_ *stream, c *projections.Cursor) error {
	if !c.Next.IsZero() {
		return nil
	}
	return p.reserveNext(c)
}

func (p *repair) reserveNext(c *projections.Cursor) error {
	w := p.r.w
	inUse := w.raised
	for _, s := range w.log.streams {
		inUse = max(inUse, s.ref.Epoch)
	}
	p.future = p.r.raft.Propose(ctx, projections.NewReserve(c, inUse, fmt.Sprintf("sim-%d", w.rng.IntN(1<<30))).Encode())
	return errLater
}

func (p *repair) seal(s *stream, c *projections.Cursor) error {
	l := p.r.w.log
	if i := slices.IndexFunc(l.late, func(a *appending) bool { return a.to == s && a.last == s.last() }); i >= 0 && l.w.faulty {
		a := l.late[i] // just in time
		l.late = slices.Delete(l.late, i, i+1)
		l.w.must(l.store(a))
	} else if l.w.faulty && !s.sealed && s.last() == c.Seq && l.w.rng.IntN(4) == 0 {
		l.reuse(s, *c, 1)
	}
	l.w.event("replica %d seals the log at %d", p.r.id, s.last())
	s.sealed = true
	return nil
}

// fill writes the reserved stream from the state. Now and then it is interrupted. One
// that lost something before it was used is given up for another.
func (p *repair) fill(_ *stream, c *projections.Cursor) error {
	w := p.r.w
	next := w.log.find(c.Next.Identity)
	if next == nil {
		next = &stream{ref: c.Next}
		w.log.streams = append(w.log.streams, next)
	}
	v := p.r.state.View()
	src := p.source(v)
	src.Frame = func(seq uint64) ([]byte, error) {
		if w.faulty && w.rng.IntN(60) == 0 {
			w.reach("fill interrupted")
			return nil, errLater
		}
		return v.Frame(seq)
	}
	err := eventlog.Fill(ctx, w.log.at(next, p.r), src)
	w.must(v.Close())
	if refused := (*eventlog.RepairError)(nil); errors.As(err, &refused) {
		w.reach("reserved stream given up")
		return p.reserveNext(c)
	}
	if errors.Is(err, errLater) && w.rng.IntN(2) == 0 {
		p.r.crash()
	}
	return err
}

func (p *repair) use(*stream, *projections.Cursor) error {
	w := p.r.w
	w.event("replica %d has repaired the log", p.r.id)
	w.reach("repaired")
	p.over()
	return nil
}

// over begins to write again, if this replica leads still.
func (p *repair) over() {
	p.r.repair = nil
	if p.r.raft.Term() == p.term {
		p.r.lead(p.term)
	}
}
