package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
)

// TestWriterRandomFaults drives a leader over a log that fails in every way and
// checks what must hold whatever happens: an acknowledged frame stands at its
// sequence and counts, and nothing that the log holds escapes the leader.
func TestWriterRandomFaults(t *testing.T) {
	for round := range 40 {
		seed := uint64(round) + 1
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			l := newLeader(t, seed)
			for i := range 300 {
				l.step(i)
			}
			l.f.Random(nil, 0)
			l.f.Offline(0)
			l.settle()
			l.verify()
		})
	}
}

// leader is what ingest does with a writer, in small: it applies each message
// of the log once, in order.
type leader struct {
	t     *testing.T
	f     *eventlogtest.Fake
	w     *eventlog.Writer
	state eventlog.Tail // after what was applied
	seen  map[uint64][]byte
	acked map[uint64]string
	retry [][]byte
}

func newLeader(t *testing.T, seed uint64) *leader {
	f := eventlogtest.NewFake()
	f.Random(rand.New(rand.NewPCG(seed, 7)), 0.4)
	l := &leader{t: t, f: f, state: eventlog.Tail{Term: 5}, seen: map[uint64][]byte{}, acked: map[uint64]string{}}
	// The second writer is a deposed leader: it has a lower term.
	f.SecondWriter(func(seq uint64) []byte {
		return (&events.Frame{Term: 4, Seq: seq, Events: [][]byte{[]byte("deposed")}}).Encode()
	})
	l.w = eventlog.NewWriter(f, l.state, eventlog.WriterOptions{MaxAdopt: 2})
	return l
}

func (l *leader) apply(seq uint64, frame []byte) {
	if seq != l.state.Seq+1 {
		l.t.Fatalf("applying %d behind %d", seq, l.state.Seq)
	}
	l.seen[seq] = bytes.Clone(frame)
	l.state.Seq, l.state.Chain = seq, events.NextChain(l.state.Chain, seq, frame)
}

func (l *leader) adopt(msgs []eventlog.Message) {
	for _, m := range msgs {
		l.apply(m.Seq, m.Data)
	}
	l.w.Resume(l.state)
}

func (l *leader) step(i int) {
	text := fmt.Sprint("event ", i)
	batch := [][]byte{[]byte(text)}
	if l.retry != nil {
		batch, l.retry = l.retry, nil
	}
	a, err := l.w.Append(testContext(l.t), batch)
	var adopt *eventlog.AdoptError
	switch {
	case err == nil:
		l.apply(a.Seq, a.Frame)
		l.acked[a.Seq] = string(batch[0])
		if a.Chain != l.state.Chain || l.w.Tail() != l.state {
			l.t.Fatalf("writer at %+v, state at %+v", l.w.Tail(), l.state)
		}
	case errors.As(err, &adopt):
		l.adopt(adopt.Messages)
	case errors.Is(err, eventlog.ErrUnknown):
		l.resync()
	case errors.Is(err, eventlog.ErrAbsent):
		if i%2 == 0 {
			l.retry = batch
		}
	case errors.Is(err, eventlog.ErrRefused), errors.Is(err, eventlog.ErrNoSpace):
	default:
		l.t.Fatal(err)
	}
}

func (l *leader) resync() {
	msgs, err := l.w.Resync(testContext(l.t))
	if err != nil {
		if !errors.Is(err, eventlogtest.ErrOffline) {
			l.t.Fatal(err)
		}
		return
	}
	l.adopt(msgs)
}

// settle adopts what is left.
func (l *leader) settle() {
	l.f.Deliver()
	for {
		msgs, err := l.w.Resync(testContext(l.t))
		must(l.t, err)
		if len(msgs) == 0 {
			return
		}
		l.adopt(msgs)
	}
}

func (l *leader) verify() {
	log := l.f.Messages()
	if len(log) != len(l.seen) {
		l.t.Errorf("the log has %d messages, %d were applied", len(log), len(l.seen))
	}
	var at eventlog.Tail
	for seq := uint64(1); seq <= uint64(len(log)); seq++ {
		if !bytes.Equal(log[seq], l.seen[seq]) {
			l.t.Fatalf("sequence %d was applied as something else", seq)
		}
		f, err := events.DecodeFrame(log[seq])
		must(l.t, err)
		counts := f.Continues(0, seq, at.Chain, at.Term)
		if counts {
			at.Term = f.Term
		}
		at.Chain = events.NextChain(at.Chain, seq, log[seq])
		if want, ok := l.acked[seq]; ok && (!counts || string(f.Events[0]) != want) {
			l.t.Fatalf("sequence %d was acknowledged with %q, the log has %q (counts: %v)", seq, want, f.Events[0], counts)
		}
	}
	if at.Chain != l.state.Chain {
		l.t.Error("the chain differs")
	}
	bit := l.f.Bit()
	for _, fault := range eventlogtest.Faults {
		if bit[fault] == 0 {
			l.t.Errorf("fault %s never bit", fault)
		}
	}
	if len(l.acked) < 50 {
		l.t.Errorf("only %d of 300 appends were acknowledged", len(l.acked))
	}
}

func TestWriterNoticesGapBehindTail(t *testing.T) {
	f := eventlogtest.NewFake()
	w := eventlog.NewWriter(f, eventlog.Tail{}, eventlog.WriterOptions{})
	f.Put([]byte("a"))
	f.Put([]byte("b"))
	f.Drop(1)
	_, err := w.Append(testContext(t), [][]byte{[]byte("x")})
	var d *eventlog.DivergedError
	if !errors.As(err, &d) || d.Kind != eventlog.KindGap || d.Seq != 1 {
		t.Fatal(err)
	}
}

// TestWriterNoticesOneLostMessage: a log that ends one message before the writer
// has lost an acknowledged one.
func TestWriterNoticesOneLostMessage(t *testing.T) {
	f := eventlogtest.NewFake()
	write(t, f, 3)
	w := eventlog.NewWriter(f, eventlog.Tail{Seq: 3}, eventlog.WriterOptions{})
	f.CutSuffix(2)
	_, err := w.Append(testContext(t), [][]byte{[]byte("x")})
	var d *eventlog.DivergedError
	if !errors.As(err, &d) || d.Kind != eventlog.KindSuffixLost || d.Seq != 3 {
		t.Fatal(err)
	}
}

// TestFullDiskWithoutAckIsNoRefusal: the server does not answer a publish that it
// could not store, and reports a full disk. The message may be stored all the
// same, so the tail decides; "not stored" was a lie.
func TestFullDiskWithoutAckIsNoRefusal(t *testing.T) {
	for _, c := range []struct {
		fault  eventlogtest.Fault
		stored bool
	}{{eventlogtest.FaultFullStored, true}, {eventlogtest.FaultFullLost, false}} {
		f := eventlogtest.NewFake()
		w := eventlog.NewWriter(f, eventlog.Tail{}, eventlog.WriterOptions{})
		f.Inject(c.fault)
		a, err := w.Append(testContext(t), [][]byte{[]byte("x")})
		switch {
		case c.stored && (err != nil || a.Seq != 1 || w.Tail().Seq != 1):
			t.Errorf("%s: %+v, %v", c.fault, a, err)
		case !c.stored && (!errors.Is(err, eventlog.ErrAbsent) || !errors.Is(err, eventlog.ErrNoSpace) || errors.Is(err, eventlog.ErrUnknown)):
			t.Errorf("%s: %v", c.fault, err)
		}
		f.Inject(c.fault)
		f.Offline(1)
		if _, err := w.Append(testContext(t), [][]byte{[]byte("y")}); !errors.Is(err, eventlog.ErrUnknown) {
			t.Errorf("%s, and the tail cannot be read: %v", c.fault, err)
		}
	}
}

// TestWriterClosed: a closed stream is a definite failure.
func TestWriterClosed(t *testing.T) {
	f := eventlogtest.NewFake()
	w := eventlog.NewWriter(f, eventlog.Tail{}, eventlog.WriterOptions{})
	must(t, f.Close())
	if _, err := w.Append(testContext(t), [][]byte{[]byte("x")}); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
}
