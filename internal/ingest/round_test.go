package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// opening is a site with an open writer and the namespace team-a.
func opening(t *testing.T, term uint64) *rig {
	t.Helper()
	g := newSite(t).lead(term)
	g.run()
	if g.opened != 1 {
		t.Fatalf("opened %d times: %v", g.opened, g.stall)
	}
	g.namespace("team-a")
	return g
}

// A stream that ignores the expected last sequence stores a frame behind a
// stranger's: there it is void. It was taken for acknowledged, and the memory
// was lost.
func TestLogThatIgnoresTheExpectedSequence(t *testing.T) {
	g := opening(t, 1)
	lies := 0
	g.append = func(s sendFrame) error {
		if lies++; lies == 1 {
			g.log = append(g.log, []byte("a stranger's"), s.data)
			return eventlog.ErrUnknown // an ack at another sequence
		}
		return g.honest(s)
	}
	d := g.send("k", "one")
	g.run()
	at := g.outcome(d, projections.OutcomeCreated)
	if at.Seq != uint64(len(g.log)) {
		t.Errorf("told %s, the log ends at %d", at, len(g.log))
	}
	// The frame itself is valid once; its first copy is void and stays so.
	if records, voids := g.settle(); records != 1 || voids != 2 {
		t.Errorf("%d records, %d void frames", records, voids)
	}
	if lies != 2 {
		t.Errorf("%d attempts", lies)
	}
}

// The same for leader.began: the round must not open on a void one.
func TestVoidLeaderBeganDoesNotOpen(t *testing.T) {
	g := opening(t, 1)
	next := g.lead(2)
	lies := 0
	next.append = func(s sendFrame) error {
		if lies++; lies == 1 {
			next.log = append(next.log, []byte("a stranger's"), s.data)
			return eventlog.ErrUnknown
		}
		return next.honest(s)
	}
	next.run()
	if next.opened != 1 || next.state.Cursor().Term != 2 {
		t.Errorf("opened %d times, the state is of term %d", next.opened, next.state.Cursor().Term)
	}
	if _, voids := next.settle(); voids != 2 {
		t.Errorf("%d void frames", voids)
	}
}

// The log's order decides a race: what the writer before put in front of
// leader.began is valid, what comes behind it is void.
func TestFrameOfAnOlderTermBeforeAndAfterLeaderBegan(t *testing.T) {
	for _, before := range []bool{true, false} {
		old := opening(t, 1)
		old.hold.sends = true
		d := old.send("k", "one")
		old.run()
		if len(old.sends) != 1 {
			t.Fatal("nothing is under way")
		}
		late := old.sends[0]
		if before {
			if err := old.honest(late); err != nil {
				t.Fatal(err)
			}
		}
		next := old.lead(2)
		next.run()
		if !before {
			next.log = append(next.log, late.data) // it was under way in the stream's own group
		}
		again := next.send("k", "one")
		next.run()
		records, voids := next.settle()
		if before {
			if at := next.outcome(again, projections.OutcomeDuplicate); at.Seq != late.last+1 || records != 1 || voids != 0 {
				t.Errorf("adopted at %s, %d records, %d void", at, records, voids)
			}
		} else if next.outcome(again, projections.OutcomeCreated); records != 1 || voids != 1 {
			t.Errorf("%d records, %d void", records, voids)
		}
		if isDone(d.done) {
			t.Error("the old writer answered before it heard anything")
		}
	}
}

// An acknowledgement that came late, for a copy of leader.began, was taken for
// that of the frame in flight.
func TestLateAckOfACopy(t *testing.T) {
	g := newSite(t).lead(1)
	attempts := 0
	g.append = func(s sendFrame) error {
		if attempts++; attempts == 1 {
			return eventlog.ErrUnknown
		}
		return g.honest(s)
	}
	g.run()
	if attempts != 2 || g.opened != 1 {
		t.Fatalf("%d attempts, opened %d times", attempts, g.opened)
	}
	g.namespace("team-a")
	g.hold.sends = true
	d := g.send("k", "one")
	g.run()
	g.step(appended{sending: 1}) // of the first attempt
	g.run()
	if isDone(d.accepted) || len(g.log) != 2 {
		t.Fatal("an ack of another frame counted")
	}
	g.hold.sends = false
	g.run()
	g.outcome(d, projections.OutcomeCreated)
	g.settle()
}

// Whoever waits for accepted only may be told so also by a deposed writer;
// applied is what it cannot know.
func TestAckAfterDeposition(t *testing.T) {
	g := opening(t, 1)
	g.hold.sends = true
	d, lost, queued := g.send("k", "one"), g.send("k2", "two"), (*draft)(nil)
	g.run()
	queued = g.send("k3", "three")
	g.run()
	g.step(abandon{raftfsm.ErrNotLeader})
	if isDone(d.done) || !isDone(queued.done) || g.r.finished() {
		t.Fatalf("what may be in the log was answered, or what is not was kept: %v %v", isDone(d.done), isDone(queued.done))
	}
	if errors.Is(queued.err, raftfsm.ErrUnknownOutcome) || queued.inLog {
		t.Errorf("what was never sent: %v", queued.err)
	}
	s := g.sends[0]
	if err := g.honest(s); err != nil {
		t.Fatal(err)
	}
	g.step(appended{sending: s.sending})
	g.unknown(d, true)
	g.unknown(lost, true)
	if !g.r.finished() || g.ended == nil || d.at.Seq != uint64(len(g.log)) {
		t.Errorf("ended %v at %s", g.ended, d.at)
	}
	g.sends, g.hold.sends = nil, false
	next := g.lead(2)
	next.run()
	if at := next.outcome(sent(next, "k", "one"), projections.OutcomeDuplicate); at != d.at {
		t.Errorf("sent again it is at %s, accepted was %s", at, d.at)
	}
	next.settle()
}

func sent(g *rig, id, text string) *draft {
	d := g.send(id, text)
	g.run()
	return d
}

// A writer admitted before the state had what it adopted: an id sent again was
// stored twice, and the first answer named a record that the fold dropped.
func TestNothingIsAdmittedBeforeAdoptedFramesAreApplied(t *testing.T) {
	old := opening(t, 1)
	old.hold.proposals = true // the state does not hear of it
	d := old.send("k", "one")
	old.run()
	if !d.inLog || isDone(d.done) {
		t.Fatal("not in the log, or applied")
	}
	next := old.lead(2)
	next.hold.proposals = true
	next.run()
	again := next.send("k", "one")
	next.run()
	if next.opened != 0 || isDone(again.done) || len(next.log) > int(d.at.Seq)+1 {
		t.Fatalf("opened %d times with %d ranges not applied", next.opened, len(next.props))
	}
	next.hold.proposals = false
	next.run()
	if at := next.outcome(again, projections.OutcomeDuplicate); at != d.at {
		t.Errorf("duplicate of %s, the first is at %s", at, d.at)
	}
	// The old writer's own command comes late and changes nothing.
	res, _ := next.commit(old.props[0])
	if r := res.(projections.RangeResult); r.Answer != projections.AnswerBehind {
		t.Errorf("a late copy is %s", r.Answer)
	}
	if records, _ := next.settle(); records != 1 {
		t.Errorf("%d records", records)
	}
}

// A frame that the next writer adopted was applied by that one's command before the old writer's
// own came: the verdicts are not in the answer to it, so that its client is told to ask again.
func TestAFrameThatAnotherCommandAppliedIsOfUnknownOutcome(t *testing.T) {
	old := opening(t, 1)
	old.hold.proposals = true
	d := old.send("k", "one")
	old.run()
	next := old.lead(2)
	next.run()
	if next.opened != 1 || isDone(d.done) {
		t.Fatalf("opened %d times, done %v", next.opened, isDone(d.done))
	}
	old.hold.proposals = false
	old.run()
	old.unknown(d, true)
	if at := next.outcome(sent(next, "k", "one"), projections.OutcomeDuplicate); at != d.at {
		t.Errorf("sent again it is at %s, accepted was %s", at, d.at)
	}
	if records, _ := next.settle(); records != 1 {
		t.Errorf("%d records", records)
	}
}

// After a command that Raft did not take the writer refused everything until a
// restart, also when the full disk had room again.
func TestFailedEnqueueEndsTheRoundOnly(t *testing.T) {
	g := opening(t, 1)
	full := true
	g.propose = func(c []byte) (any, error) {
		if full {
			return nil, raftfsm.ErrStorage
		}
		return g.commit(c)
	}
	g.hold.proposals = true
	first, second := sent(g, "k", "one"), sent(g, "k2", "two")
	g.step(applied{err: raftfsm.ErrStorage}) // the first is lost, the second comes from ahead
	g.props = g.props[1:]
	g.unknown(first, true)
	full, g.hold.proposals = false, false
	g.run()
	g.unknown(second, true)
	if g.opened != 2 || g.r.number != 1 || g.state.Cursor().Round != 1 {
		t.Fatalf("opened %d times, round %d, the state knows round %d", g.opened, g.r.number, g.state.Cursor().Round)
	}
	for id, d := range map[string]*draft{"k": first, "k2": second} {
		text := map[string]string{"k": "one", "k2": "two"}[id]
		if at := g.outcome(sent(g, id, text), projections.OutcomeDuplicate); at != d.at {
			t.Errorf("%s is at %s, accepted was %s", id, at, d.at)
		}
	}
	g.outcome(sent(g, "k3", "three"), projections.OutcomeCreated)
	if records, voids := g.settle(); records != 3 || voids != 0 {
		t.Errorf("%d records, %d void frames", records, voids)
	}
	// While the disk stays full the round does not open, and nobody waits for it.
	g.propose = func([]byte) (any, error) { return nil, raftfsm.ErrStorage }
	d := g.send("k4", "four")
	for range 40 {
		g.step(work{})
		for len(g.reads)+len(g.sends)+len(g.props) > 0 {
			switch {
			case len(g.reads) > 0:
				q := g.reads[0]
				g.reads = g.reads[1:]
				g.step(g.look(q))
			case len(g.sends) > 0:
				s := g.sends[0]
				g.sends = g.sends[1:]
				g.step(appended{s.sending, g.honest(s)})
			default:
				g.props = g.props[1:]
				g.step(applied{err: raftfsm.ErrStorage})
			}
		}
		if at, ok := g.r.wake(); ok {
			g.now = at
		}
	}
	g.unknown(d, true)
	if err := g.w.refusals.now(); err == nil || err.Hint == "" {
		t.Errorf("admission says %v", err)
	}
	g.propose = nil
	g.run()
	if err := g.w.refusals.now(); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	g.settle()
}

// A state that is not where the writer believes is asked again from where it is:
// the round ends although nothing failed.
func TestAnswerOfAnotherPlaceEndsTheRound(t *testing.T) {
	for _, answer := range []projections.Answer{projections.AnswerAhead, projections.AnswerOtherChain} {
		g := opening(t, 1)
		wrong := 1
		g.propose = func(c []byte) (any, error) {
			if wrong--; wrong == 0 {
				return projections.RangeResult{Answer: answer, Cursor: g.state.Cursor()}, nil
			}
			return g.commit(c)
		}
		d := sent(g, "k", "one")
		g.unknown(d, true)
		if g.opened != 2 || g.ended != nil || g.state.Cursor().Round != 1 {
			t.Errorf("%s: opened %d times, ended with %v, the state is in round %d", answer, g.opened, g.ended, g.state.Cursor().Round)
		}
		if at := g.outcome(sent(g, "k", "one"), projections.OutcomeDuplicate); at != d.at {
			t.Errorf("%s: it is at %s, accepted was %s", answer, at, d.at)
		}
		g.settle()
	}
}

// A linearizable read needs what was accepted in the state, and an open round.
func TestSettledNeedsAnOpenRoundAndWhatWasAccepted(t *testing.T) {
	g := newSite(t).lead(1)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	wants := func(what string, want bool) {
		t.Helper()
		if err := g.w.Settled(over); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	wants("before the round opens", false)
	g.run()
	wants("open and idle", true)
	g.namespace("team-a")
	g.hold.proposals = true
	if d := sent(g, "k", "one"); !d.inLog {
		t.Fatal("not accepted")
	}
	wants("accepted and not applied", false)
	g.hold.proposals = false
	g.run()
	wants("applied", true)
	g.step(abandon{raftfsm.ErrNotLeader})
	if err := g.w.Settled(context.Background()); !errors.Is(err, raftfsm.ErrNotLeader) {
		t.Errorf("the term is over: %v", err)
	}
}

// A writer was closed between two rounds, and who waited for the next one waited for ever.
func TestWaitersOfAClosedWriter(t *testing.T) {
	g := newSite(t).lead(1)
	g.run()
	if g.opened != 1 {
		t.Fatalf("opened %d times: %v", g.opened, g.stall)
	}
	g.r.endRound(errors.New("a range is ahead"))
	g.r.retry.at = 1 << 62 // the next round never begins
	got := make(chan error, 1)
	go func() { got <- g.w.Settled(context.Background()) }()
	for waits := false; !waits; runtime.Gosched() {
		g.w.horizon.mu.Lock()
		waits = g.w.horizon.moved != nil
		g.w.horizon.mu.Unlock()
	}
	g.w.queue.close()
	newLoop(g.w.opt, g.r, g.w.queue.wake).run(context.Background(), work{})
	select {
	case err := <-got:
		if memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("who waited is told: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the writer has ended, and who waits for its next round waits for ever")
	}
	if err := g.w.Settled(context.Background()); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("who asks later is told: %v", err)
	}
}

// One voter forgot its term over a power loss and leads under it again, when
// the leader.began of its former life arrives. It halted for ever.
func TestSameTermAfterAPowerLossWithALateLeaderBegan(t *testing.T) {
	s := newSite(t)
	late := s.began(1, 0)
	g := s.lead(1)
	first := true
	g.append = func(f sendFrame) error {
		if first {
			first = false
			g.log = append(g.log, late)
		}
		return g.honest(f)
	}
	g.run()
	if g.opened != 1 || g.ended != nil {
		t.Fatalf("opened %d times, ended with %v", g.opened, g.ended)
	}
	if c := g.state.Cursor(); c.Term != 1 || c.Round != 1 || !bytes.Equal(g.log[0], late) {
		t.Errorf("the state is in round %d.%d", c.Term, c.Round)
	}
	g.namespace("team-a")
	g.outcome(sent(g, "k", "one"), projections.OutcomeCreated)
	// And once more, behind an open round: it ends, and the next one opens.
	stranger := g.began(1, 1)
	g.append = func(f sendFrame) error {
		if stranger != nil {
			g.log, stranger = append(g.log, stranger), nil
		}
		return g.honest(f)
	}
	g.outcome(sent(g, "k2", "two"), projections.OutcomeCreated)
	if g.opened != 2 {
		t.Errorf("opened %d times", g.opened)
	}
	if records, voids := g.settle(); records != 2 || voids != 0 {
		t.Errorf("%d records, %d void frames", records, voids)
	}
}

// A read that does not show a frame was taken for its absence: its client was
// told that it had failed, and then it was there.
func TestAbsentIsNeverConcludedFromARead(t *testing.T) {
	g := opening(t, 1)
	attempts, shown := 0, len(g.log)
	g.append = func(s sendFrame) error {
		attempts++
		if attempts == 1 {
			if err := g.honest(s); err != nil {
				t.Fatal(err)
			}
			return eventlog.ErrUnknown
		}
		if attempts == 4 {
			g.read = nil // the replica that is read has caught up
		}
		return g.honest(s)
	}
	g.read = func(log [][]byte) [][]byte { return log[:shown] }
	d := sent(g, "k", "one")
	if at := g.outcome(d, projections.OutcomeCreated); at.Seq != uint64(shown)+1 || attempts < 4 {
		t.Errorf("at %s after %d attempts", at, attempts)
	}
	if records, voids := g.settle(); records != 1 || voids != 0 {
		t.Errorf("%d records, %d void frames", records, voids)
	}
}

// A duplicate of a frame in flight waits for it.
func TestDuplicateOfAnUnackedFrameWaits(t *testing.T) {
	g := opening(t, 1)
	g.hold.sends = true
	first := sent(g, "k", "one")
	again := sent(g, "k", "one")
	if isDone(first.accepted) || isDone(again.accepted) {
		t.Fatal("answered before the log has it")
	}
	g.hold.sends = false
	g.run()
	at := g.outcome(first, projections.OutcomeCreated)
	if got := g.outcome(again, projections.OutcomeDuplicate); got != at {
		t.Errorf("duplicate at %s, first at %s", got, at)
	}
	if records, _ := g.settle(); records != 1 {
		t.Errorf("%d records", records)
	}
}

// A closed log stored nothing, unless an attempt before it is still under way.
func TestClosedLog(t *testing.T) {
	for _, underWay := range []bool{false, true} {
		g := opening(t, 1)
		attempts := 0
		g.append = func(sendFrame) error {
			if attempts++; underWay && attempts == 1 {
				return eventlog.ErrUnknown
			}
			return eventlog.ErrClosed
		}
		d := sent(g, "k", "one")
		if unknown := memory.CodeOf(d.err) == memory.CodeOutcomeUnknown; !isDone(d.done) || d.inLog || unknown != underWay {
			t.Errorf("an attempt is under way: %v; done %v, told %v", underWay, isDone(d.done), d.err)
		}
		g.append = nil
		g.outcome(sent(g, "k", "one"), projections.OutcomeCreated)
		if records, voids := g.settle(); records != 1 || voids != 0 {
			t.Errorf("%d records, %d void frames", records, voids)
		}
	}
}

// The log had a frame, its acknowledgement was lost, the log lost the frame and gave its
// sequence out again: the writer took that for a proof that nothing had been written,
// while another leader had long adopted the frame.
func TestADisplacedFrameOfUnknownOutcomeIsNotRefused(t *testing.T) {
	for name, displace := range map[string]func(g *rig){
		"by a valid frame": func(g *rig) { g.log = append(g.log, g.began(1, 7)) },
		"by a void one":    func(g *rig) { g.log = append(g.log, []byte("a stranger's")) },
	} {
		g := opening(t, 1)
		attempts := 0
		g.append = func(s sendFrame) error {
			switch attempts++; attempts {
			case 1: // stored, adopted elsewhere, and lost
				displace(g)
				return eventlog.ErrUnknown
			case 2:
				return fmt.Errorf("%w: for now", eventlog.ErrNoSpace)
			}
			return g.honest(s)
		}
		d := g.send("", "one")
		g.run()
		if !isDone(d.done) || memory.CodeOf(d.err) != memory.CodeOutcomeUnknown {
			t.Errorf("%s: done %v, told %v", name, isDone(d.done), d.err)
		}
	}
}

// A leader that is cut off, and under which the log lost its last frames, took those of
// the next leader for void and went on writing behind them: nobody finds what it
// acknowledged there.
func TestVoidFrameOfAHigherTermEndsTheTerm(t *testing.T) {
	g := opening(t, 1)
	g.log = g.log[:1]
	g.log = append(g.log, g.began(2, 0)) // where the namespace was
	g.log = append(g.log, g.began(2, 1))
	d := g.send("k", "one")
	g.run()
	deposed := (*DeposedError)(nil)
	if !errors.As(g.ended, &deposed) || deposed.Term != 2 {
		t.Fatalf("the term ends with %v", g.ended)
	}
	g.unknown(d, false)
	if len(g.log) != 3 {
		t.Errorf("%d frames were written behind it", len(g.log)-3)
	}
}
