package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/raftfsm/raftmodel"
	"mneme/internal/settings"
)

const stateDir = "/data/state"

// replica is one replica of the shard: a state on files of its own, its place in
// the Raft group, and a writer while it leads.
type replica struct {
	w      *world
	id     int
	fs     *vfs.MemFS
	state  *projections.State
	raft   *raftmodel.Replica
	host   *host
	repair *repair // of the log, instead of a writer
	down   bool
	failed bool          // Raft's disk, since the last start
	skew   time.Duration // of the clock
	seen   uint64        // the state's sequence when it was last compared
}

func (r *replica) open() {
	state, err := projections.Open(projections.Options{Dir: stateDir, FS: r.fs, CacheBytes: 1 << 20})
	r.w.must(err)
	r.state, r.seen = state, 0
}

// Apply implements raftfsm.Machine as the node's machine does.
func (r *replica) Apply(entries []raftfsm.Entry) ([]any, error) {
	commands := make([]projections.Command, len(entries))
	for i, e := range entries {
		commands[i] = projections.Command{Index: e.Index, Term: e.Term, Data: e.Data}
	}
	results, err := r.state.Apply(commands)
	if at := (*projections.CommandError)(nil); errors.As(err, &at) {
		return nil, &raftfsm.ApplyError{Index: at.Index, Err: at.Err}
	}
	for _, res := range results {
		if res, ok := res.(projections.RangeResult); ok && res.Answer != projections.AnswerApplied {
			r.w.reach(res.Answer.String())
		}
	}
	for i, res := range results {
		if res, ok := res.(projections.RangeResult); ok && res.Answer == projections.AnswerOtherChain {
			r.usedAgain(entries[i].Data)
		}
	}
	return results, err
}

// usedAgain looks whether a range that was refused begins with another frame behind the
// same ones as the state's.
func (r *replica) usedAgain(command []byte) {
	rg, err := projections.DecodeRange(command)
	r.w.must(err)
	v := r.state.View()
	have, err := v.Frame(rg.Previous + 1)
	r.w.must(errors.Join(err, v.Close()))
	was, err := events.DecodeFrame(have)
	if f, other := events.DecodeFrame(rg.Frames[0].Bytes); err == nil && other == nil && f.Previous == was.Previous {
		r.w.reach("range of a sequence that is used again")
	}
}

func (r *replica) AppliedIndex() (index, term uint64) { return r.state.AppliedIndex() }

func (r *replica) Flush() error { return r.state.Flush() }

func (r *replica) Checkpoint(dir string) (uint64, error) {
	return r.state.Cursor().Seq, r.state.Checkpoint(dir)
}

// Restore implements raftfsm.Machine. A state only goes forward.
func (r *replica) Restore(dir string) error {
	before := r.state.Cursor()
	if err := r.state.Restore(dir); err != nil {
		return err
	}
	r.w.reach("snapshot installed")
	if now := r.state.Cursor(); now.Seq < before.Seq || now.RaftIndex < before.RaftIndex {
		r.w.fail("replica %d goes back from %d (Raft %d) to %d (Raft %d)", r.id, before.Seq, before.RaftIndex, now.Seq, now.RaftIndex)
	}
	return nil
}

// forge proposes a range of another history, as a writer does that stands on a
// log which was made anew.
func (r *replica) forge() {
	if r.down || r.host == nil {
		return
	}
	r.w.bite("range of another history")
	c := r.state.Cursor()
	rg := projections.NewRange(&c)
	rg.Previous, rg.Chain = c.Seq, c.Chain
	rg.Chain[0] ^= 1
	rg.Frames = []projections.RangeFrame{{Bytes: []byte("of another history")}}
	r.raft.Propose(ctx, rg.Encode())
}

// crash ends the replica's process with a loss of power.
func (r *replica) crash() {
	r.w.bite("crash")
	r.w.event("crash %d", r.id)
	if r.host != nil {
		if r.host.w.InFlight() {
			r.w.reach("crash with a frame in flight")
		}
		r.w.log.forget(r.host)
		r.host.lose()
		r.host = nil
	}
	if r.repair != nil {
		r.w.reach("crash in the middle of a repair")
		r.repair = nil
	}
	r.raft.Crash()
	for len(r.raft.Leadership()) > 0 {
		<-r.raft.Leadership() // nobody is there who reads it
	}
	before := r.state.Cursor().Seq
	if len(r.w.replicas) == 1 && r.w.log.losses > 0 { // the process is killed; the power is not lost as well
		r.w.must(r.state.Flush())
	}
	fs := r.fs.CrashClone(vfs.CrashCloneCfg{})
	r.w.must(r.state.Close())
	r.fs, r.down = fs, true
	r.open()
	if r.state.Cursor().Seq < before {
		r.w.reach("state lost unsynced frames")
	}
}

func (r *replica) restart() {
	r.w.event("restart %d", r.id)
	if r.w.faulty { // what fails has often failed before
		r.w.model.SetFaults(raftmodel.Faults{Disk: 50})
		defer r.w.model.SetFaults(raftFaults)
	}
	err := r.raft.Restart(r, r.fs)
	if errors.Is(err, raftfsm.ErrStorage) {
		r.w.bite("error of Raft's disk at the start")
		r.w.reach("Raft's disk failed at the start")
		return
	}
	r.w.must(err)
	r.down, r.failed = false, false
}

// operate does what the node and its operator do where the log has lost something:
// compare log and state now and then, and repair the log.
func (r *replica) operate() {
	w, h := r.w, r.host
	odds := 20
	if h != nil && h.w.InFlight() { // what is on its way gets in where nobody expects it
		odds = 6
	}
	switch {
	case r.repair != nil:
		r.repair.step()
	case h == nil || w.log.losses == 0 || w.rng.IntN(odds) > 0:
	case h.phase == "stopped":
		r.mend(h)
	case h.phase == "open":
		if d := h.scrub(); d != nil {
			w.event("%s: %v", h, d)
			w.reach("found by comparing: " + d.Kind)
			r.mend(h)
		}
	}
}

// scrub compares the whole log with the state, as the slow reading of the log does.
func (h *host) scrub() (d *eventlog.DivergedError) {
	v := h.r.state.View()
	c := v.Cursor()
	err := eventlog.Check(ctx, h.r.w.log.at(h.s, h.r), eventlog.Expect{Identity: c.Identity, Next: c.Next.Identity,
		Seq: c.Seq, Chain: c.Chain, Hashes: ingest.FrameHashes(v), Depth: int(c.Seq)})
	h.r.w.must(v.Close())
	errors.As(err, &d)
	return d
}

// mend takes the writer away and begins a repair.
func (r *replica) mend(h *host) {
	r.abandon()
	if r.raft.Term() == h.w.Term() {
		r.repair = &repair{r: r, term: h.w.Term()}
	}
}

// drain follows the changes of leadership.
func (r *replica) drain() {
	for {
		select {
		case l := <-r.raft.Leadership():
			r.follow(l)
		default:
			return
		}
	}
}

func (r *replica) follow(l raftfsm.Leadership) {
	switch l.Kind {
	case raftfsm.TermBegan:
		r.w.event("replica %d begins term %d", r.id, l.Term)
		if l.Term != r.raft.Term() {
			return // over again already
		}
		r.abandon()
		r.lead(l.Term)
	case raftfsm.TermEnded:
		r.w.event("replica %d ends term %d", r.id, l.Term)
		r.repair = nil
		if h := r.host; h != nil {
			if h.w.InFlight() {
				r.w.reach("deposed writer with a frame in flight")
			}
			if r.w.rng.IntN(3) == 0 { // else it finds out by itself
				r.abandon()
			}
		}
	}
}

// lead begins a term's writer, or goes on with a repair of the log that has begun.
func (r *replica) lead(term uint64) {
	at := r.state.Cursor()
	s, unfinished := r.w.log.choose(&at)
	if unfinished {
		r.repair = &repair{r: r, term: term}
		return
	}
	h := &host{r: r, n: r.w.hosts, s: s}
	r.w.hosts++
	raise := r.w.faulty && r.w.rng.IntN(100) < r.w.rates.raise && at.Next.IsZero()
	ref := at.Stream()
	if s.ref.Epoch > ref.Epoch {
		ref = s.ref
	}
	if raise {
		ref.Epoch++
	}
	h.w = ingest.NewStepped(ingest.Options{Stream: r.w.log.look(s, r, 0), Group: r.raft, Term: term, State: r.state, Keys: r.w.keys,
		Settings: settings.NewCache(r.w.keys), Now: r.now, Rand: r.w.random, Ref: ref, MaxFrameBytes: 4000,
		SinceBoot: func() time.Duration { return r.w.elapsed }}, h)
	r.host = h
	if raise {
		r.w.raised = max(r.w.raised, ref.Epoch)
		r.w.reach("epoch raised")
	}
	h.w.Work(r.w.elapsed)
}

// idle reports whether the replica has a writer that owes nobody anything.
func (r *replica) idle() bool {
	if r.down || r.host == nil || r.host.phase != "open" || len(r.host.futures) > 0 {
		return false
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return !r.host.w.InFlight() && r.host.w.Settled(gone) == nil
}

// now is the replica's wall clock.
func (r *replica) now() time.Time { return begun.Add(r.w.elapsed + r.skew) }

// abandon ends the writer as its owner does who waits no longer.
func (r *replica) abandon() {
	r.repair = nil
	h := r.host
	if h == nil {
		return
	}
	r.host = nil
	numbers := r.w.log.forget(h)
	h.w.Abandon(r.w.elapsed, errAbandoned)
	for _, n := range numbers {
		h.w.Appended(r.w.elapsed, n, eventlog.ErrUnknown)
	}
	h.lose()
}

var errAbandoned = errors.New("another term begins")

// forget lets go of a writer that is gone: what it sent may arrive, and nobody
// hears about it. It returns the numbers of the sendings without an answer.
func (l *log) forget(h *host) (numbers []uint64) {
	var rest, back []*appending
	for _, a := range l.appends {
		if a.host == h {
			l.late = append(l.late, a)
			numbers = append(numbers, a.number)
			continue
		}
		rest = append(rest, a)
	}
	for _, a := range l.answers {
		if a.host == h {
			numbers = append(numbers, a.number)
			continue
		}
		back = append(back, a)
	}
	l.appends, l.answers = rest, back
	return numbers
}

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
		v := w.log.look(h.s, h.r, max(q.After(), h.r.state.Cursor().Seq))
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
