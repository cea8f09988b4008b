package eventlog_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
)

// known is what a state keeps of the log: every frame by sequence.
type known struct {
	frames map[uint64][]byte
	tails  []eventlog.Tail // after each sequence; [0] is the start
}

func newKnown(at eventlog.Tail) *known {
	return &known{frames: map[uint64][]byte{}, tails: []eventlog.Tail{at}}
}

// append puts one frame of the given envelopes at the end of the log.
func (k *known) append(t testing.TB, s eventlog.Stream, encoded ...[]byte) error {
	at := k.last()
	f := events.Frame{Shard: at.Shard, Feature: events.FeatureOf(encoded), Epoch: at.Epoch, Term: at.Term,
		Seq: at.Seq + 1, Previous: at.Chain, Events: encoded}
	data := f.Encode()
	if err := s.Append(testContext(t), data, at.Seq); err != nil {
		return err
	}
	k.follow(data)
	return nil
}

// follow takes the log's next message.
func (k *known) follow(data []byte) {
	at := k.last()
	at.Seq++
	at.Chain = events.NextChain(at.Chain, at.Seq, data)
	k.frames[at.Seq], k.tails = data, append(k.tails, at)
}

func (k *known) hashes(seq uint64) (events.Hash, bool) {
	f, ok := k.frames[seq]
	return sha256.Sum256(f), ok
}

func (k *known) frame(seq uint64) ([]byte, error) {
	if f, ok := k.frames[seq]; ok {
		return f, nil
	}
	return nil, fmt.Errorf("state has no frame %d", seq)
}

func (k *known) last() eventlog.Tail { return k.tails[len(k.tails)-1] }

func (k *known) expect(id string) eventlog.Expect {
	return eventlog.Expect{Identity: id, Seq: k.last().Seq, Chain: k.last().Chain, Hashes: k.hashes}
}

// write appends n frames of two captures each.
func write(t testing.TB, s eventlog.Stream, n int) *known {
	t.Helper()
	k := newKnown(eventlog.Tail{Term: 3})
	for i := range n {
		must(t, k.append(t, s, capture(byte(i), 1), capture(byte(i), 2)))
	}
	return k
}

func capture(i, j byte) []byte {
	return (&events.Envelope{
		Header:  events.Header{Type: events.TypeCaptured, Schema: 1, Scope: events.ScopeTeam, Event: events.ID{i, j}, Agent: "agent-7", SealedAt: int64(i)},
		Payload: bytes.Repeat([]byte{i, j}, 100),
	}).Encode()
}

func identityOf(t testing.TB, s eventlog.Stream) string {
	t.Helper()
	i, err := s.Info(testContext(t))
	must(t, err)
	return i.Identity
}

func kindOf(t *testing.T, err error) string {
	t.Helper()
	var d *eventlog.DivergedError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &d):
		t.Fatalf("not a divergence: %v", err)
	case d.Hint == "" || d.Detail == "":
		t.Errorf("says too little: %+v", d)
	}
	return d.Kind
}

func otherFrame(k *known, seq uint64) []byte {
	at := k.tails[seq-1]
	return (&events.Frame{Term: 3, Seq: seq, Previous: at.Chain, Events: [][]byte{capture(99, 9)}}).Encode()
}

// TestCheckAndScrub: each way in which a log can contradict the state.
func TestCheckAndScrub(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(f *eventlogtest.Fake, k *known, e *eventlog.Expect)
		check  string // kind
		scrub  string // problems
	}{
		{"sound", func(*eventlogtest.Fake, *known, *eventlog.Expect) {}, "", ""},
		{"ahead", func(f *eventlogtest.Fake, k *known, e *eventlog.Expect) {
			e.Seq, e.Chain = 15, k.tails[15].Chain
		}, "", ""},
		{"fresh state", func(_ *eventlogtest.Fake, _ *known, e *eventlog.Expect) { e.Seq, e.Chain = 0, events.Chain{} }, "", ""},
		{"recreated", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) {
			f.Recreate()
		}, "identity", "-"},
		{"suffix lost", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.CutSuffix(17) }, "suffix_lost", "-"},
		{"sequences used again", func(f *eventlogtest.Fake, k *known, _ *eventlog.Expect) {
			f.CutSuffix(19)
			f.Put(otherFrame(k, 20))
		}, "hash", "20 hash"},
		{"replaced in the middle", func(f *eventlogtest.Fake, k *known, _ *eventlog.Expect) { f.Replace(10, otherFrame(k, 10)) }, "hash", "10 hash"},
		{"replaced long ago", func(f *eventlogtest.Fake, k *known, _ *eventlog.Expect) { f.Replace(2, otherFrame(k, 2)) }, "", "2 hash"},
		{"garbage", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.Replace(12, []byte("garbage")) }, "hash", "12 hash 12 undecodable"},
		{"hole", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.Drop(7) }, "gap", "7 gap"},
		{"first lost", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.Drop(1); f.Drop(2) }, "gap", "1 gap"},
		{"reported lost", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.ReportLost(9, 8) }, "lost", "9 lost 8 lost"},
		{"reported lost bytes", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.ReportLostBytes(9) }, "lost", "0 lost"},
		{"rotten", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.Rot(12) }, "gap", "12 gap"},
		{"rotten long ago", func(f *eventlogtest.Fake, _ *known, _ *eventlog.Expect) { f.Rot(2) }, "", "2 gap"},
		{"chain only, sound", func(_ *eventlogtest.Fake, _ *known, e *eventlog.Expect) { e.Hashes = nil }, "", ""},
		{"chain only, used again", func(f *eventlogtest.Fake, k *known, e *eventlog.Expect) {
			e.Hashes = nil
			f.Replace(20, otherFrame(k, 20))
		}, "chain", "20 hash"},
		{"late first", func(f *eventlogtest.Fake, k *known, e *eventlog.Expect) { e.First = 2 }, "gap", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := eventlogtest.NewFake()
			k := write(t, f, 20)
			e := k.expect(identityOf(t, f))
			c.damage(f, k, &e)
			if got := kindOf(t, eventlog.Check(testContext(t), f, e)); got != c.check {
				t.Errorf("check found %q, want %q", got, c.check)
			}
			if c.scrub == "-" {
				return
			}
			r, err := eventlog.Scrub(testContext(t), f, k.tails[0], k.hashes, nil)
			must(t, err)
			var problems []string
			for _, p := range r.Problems {
				problems = append(problems, fmt.Sprintf("%d %s", p.Seq, p.Kind))
			}
			if got := strings.Join(problems, " "); got != c.scrub {
				t.Errorf("scrub found %q, want %q", got, c.scrub)
			}
			if (r.Diverged() == nil) != (c.scrub == "") {
				t.Errorf("diverged: %v", r.Diverged())
			}
		})
	}
}

func TestCheckUnreadable(t *testing.T) {
	f := eventlogtest.NewFake()
	k := write(t, f, 3)
	e := k.expect("")
	for n := 1; n <= 2; n++ {
		f.Offline(n)
		var d *eventlog.DivergedError
		if err := eventlog.Check(testContext(t), f, e); !errors.Is(err, eventlogtest.ErrOffline) || errors.As(err, &d) {
			t.Errorf("unreadable log: %v", err)
		}
		if n == 2 {
			break
		}
	}
	f.Offline(1)
	if _, err := eventlog.Scrub(testContext(t), f, eventlog.Tail{}, nil, nil); !errors.Is(err, eventlogtest.ErrOffline) {
		t.Errorf("scrub: %v", err)
	}
}

func TestScrubReport(t *testing.T) {
	f := eventlogtest.NewFake()
	k := write(t, f, 10)
	// A deposed leader's frame, and behind it one with a strange event.
	deposed := (&events.Frame{Term: 2, Seq: 11, Previous: k.last().Chain, Events: [][]byte{capture(1, 1)}}).Encode()
	f.Put(deposed)
	k.follow(deposed)
	must(t, k.append(t, f, capture(2, 2), []byte("strange")))
	calls := 0
	r, err := eventlog.Scrub(testContext(t), f, k.tails[0], k.hashes, func(done, total uint64) {
		calls++
		if done != 12 || total != 12 {
			t.Errorf("progress %d of %d", done, total)
		}
	})
	must(t, err)
	if r.Frames != 12 || r.Events != 22 || r.Void != 1 || r.Undecodable != 1 || !r.ChainKnown || r.Tail != k.last() || r.Diverged() != nil || calls != 1 {
		t.Errorf("report %+v, tail should be %+v", r, k.last())
	}
	// From the middle the result is the same.
	r, err = eventlog.Scrub(testContext(t), f, k.tails[5], k.hashes, nil)
	must(t, err)
	if r.Frames != 7 || r.Tail != k.last() {
		t.Errorf("report from 5: %+v", r)
	}
	// From behind the end there is nothing to compare with.
	r, err = eventlog.Scrub(testContext(t), f, eventlog.Tail{Seq: 50}, nil, nil)
	must(t, err)
	if d := r.Diverged(); d == nil || d.Kind != eventlog.KindSuffixLost {
		t.Errorf("report from 50: %+v", r)
	}
}

// TestCompareAndFill: what was lost comes back byte for byte in another stream, and
// a log that is not what the source knows is left alone.
func TestCompareAndFill(t *testing.T) {
	for _, c := range []struct {
		name    string
		damage  func(f *eventlogtest.Fake, k *known)
		missing string
		refuse  string
	}{
		{"nothing", func(*eventlogtest.Fake, *known) {}, "[]", ""},
		{"suffix lost", func(f *eventlogtest.Fake, _ *known) { f.CutSuffix(12) }, "[{13 20}]", ""},
		{"everything lost", func(f *eventlogtest.Fake, _ *known) { f.CutSuffix(0) }, "[{1 20}]", ""},
		{"first lost", func(f *eventlogtest.Fake, _ *known) { f.Drop(1); f.Drop(2) }, "[{1 2}]", ""},
		{"hole", func(f *eventlogtest.Fake, _ *known) { f.Drop(6) }, "[{6 6}]", ""},
		{"hole at the end", func(f *eventlogtest.Fake, _ *known) { f.Drop(19); f.Drop(20) }, "[{19 20}]", ""},
		{"holes", func(f *eventlogtest.Fake, _ *known) { f.Drop(3); f.Drop(4); f.Rot(9) }, "[{3 4} {9 9}]", ""},
		{"garbage", func(f *eventlogtest.Fake, _ *known) { f.Replace(6, []byte("garbage")) }, "[{6 6}]", ""},
		{"longer", func(f *eventlogtest.Fake, _ *known) { f.Put([]byte("new")) }, "[]", ""},
		{"source incomplete", func(f *eventlogtest.Fake, k *known) { f.Drop(6); delete(k.frames, 7) }, "", "no frame 7"},
		{"other message", func(f *eventlogtest.Fake, k *known) { f.Replace(4, otherFrame(k, 4)) }, "", "differs"},
		{"other message before a lost suffix", func(f *eventlogtest.Fake, k *known) { f.CutSuffix(9); f.Replace(9, otherFrame(k, 9)) }, "", "differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := eventlogtest.NewFake()
			k := write(t, f, 20)
			c.damage(f, k)
			before := f.Messages()
			missing, err := eventlog.Compare(testContext(t), f, k.source())
			if c.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("got %v, want refusal %q", err, c.refuse)
				}
				return
			}
			must(t, err)
			if got := fmt.Sprint(missing); got != c.missing {
				t.Errorf("%s is missing, want %s", got, c.missing)
			}
			if fmt.Sprint(before) != fmt.Sprint(f.Messages()) {
				t.Error("the old stream was changed")
			}
			to := eventlogtest.NewFake()
			to.Inject(eventlogtest.FaultUnknownStored) // settled by looking
			must(t, eventlog.Fill(testContext(t), to, k.source()))
			must(t, eventlog.Check(testContext(t), to, k.expect("")))
			for seq := uint64(1); seq <= 20; seq++ {
				if m, err := to.Get(testContext(t), seq); err != nil || !bytes.Equal(m.Data, k.frames[seq]) {
					t.Errorf("sequence %d: %v", seq, err)
				}
			}
		})
	}
}

func (k *known) source() eventlog.Source { return eventlog.Source{Frame: k.frame, Last: k.last().Seq} }

// TestFillInterrupted: filling a stream may be repeated; one that holds anything
// else is of no use.
func TestFillInterrupted(t *testing.T) {
	k := write(t, eventlogtest.NewFake(), 20)
	f := eventlogtest.NewFake()
	f.Inject("", "", eventlogtest.FaultNoSpace)
	src, done := k.source(), uint64(0)
	src.Progress = func(d, total uint64) {
		if total != 20 {
			t.Errorf("total %d", total)
		}
		done = d
	}
	if err := eventlog.Fill(testContext(t), f, src); !errors.Is(err, eventlog.ErrNoSpace) || done != 2 {
		t.Fatalf("%v after %d", err, done)
	}
	must(t, eventlog.Fill(testContext(t), f, src))
	f.Put([]byte("the next epoch has begun"))
	must(t, eventlog.Fill(testContext(t), f, src))
	must(t, eventlog.Check(testContext(t), f, k.expect("")))
	for name, c := range map[string]struct {
		harm func(f *eventlogtest.Fake)
		seq  uint64
	}{
		"a hole":       {func(f *eventlogtest.Fake) { f.Drop(6) }, 6},
		"rot":          {func(f *eventlogtest.Fake) { f.Rot(7) }, 7},
		"another":      {func(f *eventlogtest.Fake) { f.Replace(8, []byte("theirs")) }, 8},
		"another next": {func(f *eventlogtest.Fake) { f.CutSuffix(10); f.Put([]byte("theirs")) }, 11},
		"a second writer": {func(f *eventlogtest.Fake) {
			f.CutSuffix(5)
			f.SecondWriter(func(uint64) []byte { return []byte("theirs") })
			f.Inject(eventlogtest.FaultSecondWriter)
		}, 6},
	} {
		f := eventlogtest.NewFake()
		must(t, eventlog.Fill(testContext(t), f, src))
		c.harm(f)
		var refused *eventlog.RepairError
		if err := eventlog.Fill(testContext(t), f, src); !errors.As(err, &refused) || refused.Seq != c.seq {
			t.Errorf("%s: %v", name, err)
		}
	}
}
