package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// dense is Chinese text of which no two pairs of characters are the same: more
// is derived from it than from any other text of its length.
func dense(bytes int, seed rune) string {
	var b strings.Builder
	for i := rune(0); b.Len()+3 <= bytes; i++ {
		b.WriteRune(0x4e00 + (i*(2*seed+1)*31+i/97*7+seed)%20_900)
	}
	return b.String()
}

// What is derived from dense text is several times as long as its frame. The
// commands of a catch-up were cut by the log's bytes, grew longer than Raft
// takes, and the node did not start any more.
func TestCatchUpWithDenseText(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	var items []Item
	for i := range rune(9) {
		items = append(items, Item{Capture: memory.Capture{Agent: "agent-1", Text: dense(memory.MaxTextBytes, i)}})
	}
	resp, err := w.writer.Capture(context.Background(), "team-a", items, memory.WaitApplied)
	if err != nil {
		t.Fatal(err)
	}
	for i := range resp.Results {
		if err := itemError(&resp.Results[i]); err != nil {
			t.Fatalf("a full frame of dense text: %v", err)
		}
	}
	want := w.hash()
	w.stop()
	behind := newWorldWith(t, f, w.keys)
	commands := 0
	behind.opt = func(o *Options) {
		o.Group = inspecting{o.Group, func(command []byte) {
			r, err := projections.DecodeRange(command)
			if err != nil {
				t.Error(err)
				return
			}
			commands++
			isCut(t, "adopting", r)
		}}
	}
	behind.mustStart()
	if got := behind.hash(); got != want || commands < 3 {
		t.Errorf("caught up by %d commands: the state is %s, was %s", commands, got, want)
	}
	behind.stop()
	// The same for a replay, which a start and a rebuild take.
	again := newWorldWith(t, f, w.keys)
	v := again.state.View()
	d, err := derive.New(w.keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	frames, ranges := 0, 0
	_, err = Replay(context.Background(), f, again.state, d, 0, func(r *projections.Range) error {
		frames, ranges = frames+len(r.Frames), ranges+1
		isCut(t, "replaying", r)
		_, err := again.state.ApplyLocal(r)
		return err
	})
	if err != nil || ranges < 2 || frames != int(w.last()) {
		t.Errorf("%d frames in %d ranges, %v", frames, ranges, err)
	}
}

// isCut checks that a range is a command that Raft takes: one frame, or no more
// than a command should hold.
func isCut(t *testing.T, what string, r *projections.Range) {
	t.Helper()
	const around = 1024 // what a command holds beside its frames
	if n := len(r.Encode()); len(r.Frames) > 1 && n > replayBytes+around {
		t.Errorf("%s: %d frames are a command of %d bytes", what, len(r.Frames), n)
	}
}

// inspecting shows proposals.
type inspecting struct {
	Proposer
	show func(command []byte)
}

func (i inspecting) Propose(ctx context.Context, data []byte) *raftfsm.Future {
	i.show(data)
	return i.Proposer.Propose(ctx, data)
}

// replayed is a world with a log that takes several ranges, and a deriver at its
// beginning.
func replayed(t *testing.T, f *eventlogtest.Fake) (*world, *derive.Deriver, *projections.State) {
	t.Helper()
	w := newWorld(t, f)
	w.opt = func(o *Options) { o.MaxFrameBytes = 1 } // a frame for each event
	w.mustStart()
	w.namespace("team-a")
	var items []Item
	for i := range replayFrames + 10 {
		items = append(items, Item{Capture: memory.Capture{Agent: "agent-1", Text: fmt.Sprint("memory ", i)}})
	}
	if _, err := w.writer.Capture(t.Context(), "team-a", items, memory.WaitApplied); err != nil {
		t.Fatal(err)
	}
	w.stop()
	if w.last() < uint64(len(items)) {
		t.Fatalf("%d captures are %d messages", len(items), w.last())
	}
	state := newWorldWith(t, f, w.keys).state
	v := state.View()
	d, err := derive.New(w.keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	return w, d, state
}

// watched is a stream that tells of each message that is read.
type watched struct {
	*eventlogtest.Fake
	read func(seq uint64)
}

func (s watched) Read(ctx context.Context, from, to uint64, fn func(eventlog.Message) error) error {
	return s.Fake.Read(ctx, from, to, func(m eventlog.Message) error {
		s.read(m.Seq)
		return fn(m)
	})
}

// A replay derived nothing while it applied: on two processors a rebuild left a
// third of their time unused.
func TestReplayDerivesWhileItApplies(t *testing.T) {
	f := eventlogtest.NewFake()
	w, d, state := replayed(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends what hangs
	defer cancel()
	var mu sync.Mutex
	var end, read uint64 // of the first range, once it is applied; of what was read
	beyond := make(chan struct{})
	note := func(at *uint64, seq uint64) {
		mu.Lock()
		defer mu.Unlock()
		was := end > 0 && read > end+1 // the message right behind it showed that it is full
		*at = seq
		if !was && end > 0 && read > end+1 {
			close(beyond)
		}
	}
	stream := watched{f, func(seq uint64) { note(&read, seq) }}
	_, err := Replay(ctx, stream, state, d, 0, func(r *projections.Range) error {
		if r.Previous == 0 {
			note(&end, r.End())
			select {
			case <-beyond:
			case <-ctx.Done():
				return errors.New("nothing is read while a range is applied")
			}
		}
		_, err := state.ApplyLocal(r)
		return err
	})
	if err != nil || state.Cursor().Seq != w.last() {
		t.Errorf("at %d of %d, %v", state.Cursor().Seq, w.last(), err)
	}
}

// A range that is not applied ends the replay: what was read ahead goes nowhere.
func TestReplayEndsWhenApplyingFails(t *testing.T) {
	f := eventlogtest.NewFake()
	_, d, state := replayed(t, f)
	failed, calls := errors.New("not applied"), 0
	n, err := Replay(t.Context(), f, state, d, 0, func(*projections.Range) error {
		calls++
		return failed
	})
	if n != 0 || calls != 1 || !errors.Is(err, failed) {
		t.Errorf("%d messages, %d calls, %v", n, calls, err)
	}
}

// A range over a gap made everything behind it void, and nobody heard of it.
func TestReplayOverAGap(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	for range 5 {
		w.capture("team-a", memory.Capture{Text: "x"})
	}
	w.stop()
	state, err := projections.Open(projections.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	v := state.View()
	d, err := derive.New(w.keys, v)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Replay(context.Background(), skipping{f, 4}, state, d, 0, func(r *projections.Range) error {
		_, err := state.ApplyLocal(r)
		return err
	})
	var gap *eventlog.GapError
	if !errors.As(err, &gap) || gap.Want != 4 || gap.Got != 5 {
		t.Errorf("%v", err)
	}
}

// skipping is a stream that leaves out a message without saying so.
type skipping struct {
	*eventlogtest.Fake
	seq uint64
}

func (s skipping) Read(ctx context.Context, from, to uint64, fn func(eventlog.Message) error) error {
	return s.Fake.Read(ctx, from, to, func(m eventlog.Message) error {
		if m.Seq == s.seq {
			return nil
		}
		return fn(m)
	})
}

// A duplicate got the position that its original would have in the epoch of
// today: another one than the first answer gave.
func TestDuplicateAfterARepairKeepsItsPosition(t *testing.T) {
	f := eventlogtest.NewFake()
	w := started(t, f)
	c := memory.Capture{ID: "k", Text: "one"}
	first := w.capture("team-a", c)
	w.stop()
	w.opt = func(o *Options) { o.Ref = events.StreamRef{Epoch: 1, Identity: "fake-1"} }
	w.mustStart()
	if got := w.state.Cursor().Epoch; got != 1 {
		t.Fatalf("epoch is %d", got)
	}
	if r := w.capture("team-a", c); r.Status != memory.StatusDuplicate || r.Position != first.Position {
		t.Errorf("duplicate at %s, first answer %s", r.Position, first.Position)
	}
	c.Text = "another"
	if r := w.capture("team-a", c); r.Status != memory.StatusConflict || r.Position != first.Position {
		t.Errorf("conflict with %s, first answer %s", r.Position, first.Position)
	}
}

// A repair of the log proposes what it adopts to other replicas, which applied it before
// they had its keys: the ranges of a replay named none. (A run of the simulation found it.)
func TestReplayNamesTheKeysOfItsRanges(t *testing.T) {
	f := eventlogtest.NewFake()
	_, d, state := replayed(t, f)
	_, err := Replay(t.Context(), f, state, d, 0, func(r *projections.Range) error {
		if need := projections.KeysOf(r.Encode()); need != d.KeysIndex() || need <= 1 {
			t.Errorf("a range names the keys up to %d, the keyring is at %d", need, d.KeysIndex())
		}
		_, err := state.ApplyLocal(r)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
