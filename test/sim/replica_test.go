package sim

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/raftfsm/raftmodel"
	shard "mneme/internal/replica"
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
	keys   *keyring.Keyring
	member *member // nil where it is no node of a cluster
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
	err := r.state.Checkpoint(dir)
	if err == nil && r.member != nil {
		err = shard.WriteKeys(r.fs, dir, r.keys.Machine().ChangedAt())
	}
	return r.state.Cursor().Seq, err
}

// errKeysMissing: Raft brings the snapshot again.
var errKeysMissing = errors.New("the keys of the snapshot are not there yet")

// takeKeysOf waits for the keys of a snapshot as package replica does, but not long.
func (r *replica) takeKeysOf(dir string) error {
	if r.member == nil {
		return nil
	}
	need, err := shard.ReadKeys(r.fs, dir)
	if err != nil || need == 0 {
		return err
	}
	if has, _ := r.keys.Machine().AppliedIndex(); has < need {
		r.w.reach("snapshot waits for its keys")
		return errKeysMissing
	}
	return shard.RemoveKeys(r.fs, dir)
}

// Restore implements raftfsm.Machine. A state only goes forward.
func (r *replica) Restore(dir string) error {
	before := r.state.Cursor()
	if err := r.takeKeysOf(dir); err != nil {
		return err
	}
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
	var fs *vfs.MemFS
	if r.member != nil {
		fs = r.member.crash()
	} else {
		fs = r.fs.CrashClone(vfs.CrashCloneCfg{})
	}
	r.w.must(r.state.Close())
	r.fs, r.down = fs, true
	r.open()
	if r.member != nil {
		r.member.openKeys(false, false)
	}
	if r.state.Cursor().Seq < before {
		r.w.reach("state lost unsynced frames")
	}
}

// runs reports whether the process is there.
func (r *replica) runs() bool { return !r.down || r.member != nil && r.member.phase != stopped }

func (r *replica) restart() {
	r.w.event("restart %d", r.id)
	if r.member == nil {
		r.startShard()
	} else if r.w.site.leaving != r {
		r.member.start()
	}
}

// startShard starts the replica of the shard; false = its disk failed.
func (r *replica) startShard() bool {
	if r.w.faulty { // what fails has often failed before
		r.w.model.SetFaults(raftmodel.Faults{Disk: 50})
		defer r.w.model.SetFaults(raftFaults)
	}
	var disk vfs.FS = r.fs
	if r.member != nil {
		disk = r.member.disk()
	}
	err := r.raft.Restart(r, disk)
	if errors.Is(err, raftfsm.ErrStorage) {
		r.w.bite("error of Raft's disk at the start")
		r.w.reach("Raft's disk failed at the start")
		return false
	}
	if errors.Is(err, raftmodel.ErrPower) {
		r.crash()
		return false
	}
	r.w.must(err)
	r.down, r.failed = false, false
	return true
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
	h.w = ingest.NewStepped(ingest.Options{Stream: r.w.log.look(s, r, 0), Group: r.raft, Term: term, State: r.state, Keys: r.keys,
		Settings: settings.NewCache(r.keys), Now: r.now, Rand: r.w.random, Ref: ref, MaxFrameBytes: 4000, Current: h.current,
		Clock: ingest.NewClock(r.now, func() time.Duration { return r.w.elapsed })}, h)
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
	return !r.host.w.InFlight() && r.host.w.Settled(ended()) == nil
}

// ended is a context under which nothing waits: what is not so at once is asked again
// later.
func ended() context.Context {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return gone
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
