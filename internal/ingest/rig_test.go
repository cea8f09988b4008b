package ingest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// site is what outlives a writer: log, keys and state. Its Raft is a list of
// commands that a test applies when it likes.
type site struct {
	t     *testing.T
	keys  *keyring.Keyring
	state *projections.State
	index uint64
	log   [][]byte
	clock sync.Mutex
	at    time.Time
}

func newSite(t *testing.T) *site {
	keys, err := keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	state, err := projections.Open(projections.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(state.Close(), keys.Close()); err != nil {
			t.Error(err)
		}
	})
	return &site{t: t, keys: keys, state: state, at: time.Unix(1_800_000_000, 0)}
}

// rig drives the round of one writer by hand, without goroutines and clocks.
type rig struct {
	*site
	w       *Writer
	r       *round
	now     time.Duration
	sends   []sendFrame
	reads   []readLog
	props   [][]byte
	opened  int
	stall   error
	stopped *eventlog.DivergedError
	ended   error

	append  func(sendFrame) error           // nil: stores what is expected there
	propose func([]byte) (any, error)       // nil: applies
	read    func([][]byte) [][]byte         // what a look at the log shows; nil: all
	hold    struct{ sends, proposals bool } // not answered for now
	leader  string                          // of the log
	passing time.Duration                   // for so long it may tell less than there is
}

func (s *site) lead(term uint64) *rig {
	g := &rig{site: s}
	g.begin(term)
	return g
}

// begin makes the writer and takes its first step.
func (g *rig) begin(term uint64) {
	s := g.site
	now := func() time.Time {
		s.clock.Lock()
		defer s.clock.Unlock()
		s.at = s.at.Add(time.Millisecond)
		return s.at
	}
	uptime := func() time.Duration {
		s.clock.Lock()
		defer s.clock.Unlock()
		return s.at.Sub(time.Unix(0, 0))
	}
	g.w, g.r = newWriter(Options{Term: term, State: s.state, Keys: s.keys, Settings: settings.NewCache(s.keys), Now: now,
		Clock: NewClock(now, uptime)})
	g.step(work{})
}

func (g *rig) step(in input) {
	for _, out := range g.r.step(g.now, in) {
		switch out := out.(type) {
		case sendFrame:
			g.sends = append(g.sends, out)
		case readLog:
			g.reads = append(g.reads, out)
		case propose:
			g.props = append(g.props, out.command)
		case opened:
			g.opened++
		case stalled:
			g.stall = out.err
		case stopped:
			g.stopped = out.diverged
		case ended:
			g.ended = out.err
		}
	}
}

// run answers everything that is not held, until nothing moves any more.
func (g *rig) run() {
	g.t.Helper()
	for range 3000 {
		switch {
		case len(g.reads) > 0:
			q := g.reads[0]
			g.reads = g.reads[1:]
			g.step(g.look(q))
		case len(g.sends) > 0 && !g.hold.sends:
			s := g.sends[0]
			g.sends = g.sends[1:]
			g.step(appended{s.sending, g.store(s)})
		case len(g.props) > 0 && !g.hold.proposals:
			c := g.props[0]
			g.props = g.props[1:]
			res, err := g.apply(c)
			g.step(applied{res, err})
		case g.r.ready():
			g.step(work{})
		default:
			at, ok := g.r.wake()
			if !ok {
				return
			}
			g.now = at
			g.step(work{})
		}
	}
	g.t.Fatalf("no end: phase %d, round %d, why %v", g.r.phase, g.r.number, g.r.why)
}

func (g *rig) store(s sendFrame) error {
	if g.append != nil {
		return g.append(s)
	}
	return g.honest(s)
}

// honest stores a frame if the log ends where its writer believes.
func (s *site) honest(f sendFrame) error {
	if f.last != uint64(len(s.log)) {
		return fmt.Errorf("%w: the log ends at %d", eventlog.ErrRefused, len(s.log))
	}
	s.log = append(s.log, f.data)
	return nil
}

func (g *rig) look(q readLog) surveyed {
	log := g.log
	if g.read != nil {
		log = g.read(log)
	}
	out := surveyed{last: uint64(len(log)), leader: g.leader, passing: g.passing}
	if out.last < q.after {
		out.err = diverged(eventlog.KindSuffixLost, out.last+1, "the log is shorter than what was written to it")
	}
	for seq := q.after + 1; seq <= out.last; seq++ {
		out.messages = append(out.messages, eventlog.Message{Seq: seq, Data: log[seq-1]})
	}
	return out
}

func (g *rig) apply(command []byte) (any, error) {
	if g.propose != nil {
		return g.propose(command)
	}
	return g.commit(command)
}

// commit applies a command.
func (s *site) commit(command []byte) (any, error) {
	s.t.Helper()
	s.index++
	res, err := s.state.Apply([]projections.Command{{Index: s.index, Term: 1, Data: command}})
	if err != nil {
		s.t.Fatal(err)
	}
	return res[0], nil
}

func (g *rig) namespace(name string) {
	g.t.Helper()
	id := g.w.ids.New()
	if err := g.keys.CreateNamespace(id); err != nil {
		g.t.Fatal(err)
	}
	d := g.w.directoryDraft(events.TypeNamespaceCreated, id, name, events.Settings{Set: map[string]string{}})
	if err := g.w.queue.push(id, []*draft{d}); err != nil {
		g.t.Fatal(err)
	}
	g.run()
	if d.err != nil || d.result.Outcome != projections.OutcomeApplied {
		g.t.Fatalf("namespace: %+v %v", d.result, d.err)
	}
}

// send queues a memory of the namespace "team-a".
func (g *rig) send(id, text string) *draft {
	g.t.Helper()
	a, err := g.w.admit("team-a")
	if err != nil {
		g.t.Fatal(err)
	}
	drafts, _, err := a.captures([]Item{{Capture: memory.Capture{Agent: "agent-1", ID: id, Text: text}}}, true)
	if err = errors.Join(err, a.view.Close()); err != nil {
		g.t.Fatal(err)
	}
	if err := g.w.queue.push(a.ns.ID, drafts); err != nil {
		g.t.Fatal(err)
	}
	return drafts[0]
}

// outcome wants a draft's final outcome.
func (g *rig) outcome(d *draft, want projections.Outcome) events.Position {
	g.t.Helper()
	if !isDone(d.done) || d.err != nil || d.result.Outcome != want {
		g.t.Fatalf("outcome %v, error %v (done %v), want %v", d.result.Outcome, d.err, isDone(d.done), want)
	}
	return d.result.Position
}

func (g *rig) unknown(d *draft, accepted bool) {
	g.t.Helper()
	if !isDone(d.done) || memory.CodeOf(d.err) != memory.CodeOutcomeUnknown || d.inLog != accepted {
		g.t.Fatalf("done %v, error %v, accepted %v", isDone(d.done), d.err, d.inLog)
	}
}

// settle checks that the state is what the log folds to, and counts records and
// void frames.
func (g *rig) settle() (records, voids int) {
	g.t.Helper()
	var c projections.Cursor
	for _, m := range g.log {
		f, valid, err := c.Follow(m)
		if err != nil {
			g.t.Fatal(err)
		}
		if !valid {
			voids++
		}
		for _, e := range f.Events {
			if env, err := events.DecodeEnvelope(e); valid && err == nil && env.Type == events.TypeCaptured {
				records++
			}
		}
	}
	if got := g.state.Cursor(); got.Seq != c.Seq || got.Chain != c.Chain || got.Term != c.Term || got.Round != c.Round {
		g.t.Fatalf("the state stands at %d (%d.%d), the log at %d (%d.%d)", got.Seq, got.Term, got.Round, c.Seq, c.Term, c.Round)
	}
	return records, voids
}

// began is a frame that opens a term, as its writer would put it at the log's end.
func (s *site) began(term uint64, round uint32) []byte {
	var c projections.Cursor
	for _, m := range s.log {
		if _, _, err := c.Follow(m); err != nil {
			s.t.Fatal(err)
		}
	}
	e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: 1, Event: events.ID{byte(term), byte(round)}, SealedAt: s.at.UnixNano()},
		Payload: events.Began{Term: term, Round: round}.Encode()}
	f := events.Frame{Feature: events.FeatureLevel, Epoch: c.Epoch, Term: term, Seq: c.Seq + 1, Previous: c.Chain, Events: [][]byte{e.Encode()}}
	return slices.Clone(f.Encode())
}
