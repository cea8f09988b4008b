package eventlogtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"mneme/internal/eventlog"
)

// Run checks that a Stream keeps its contract. open returns a fresh, empty
// stream that begins at 1.
func Run(t *testing.T, open func(t *testing.T) eventlog.Stream) {
	for name, test := range map[string]func(*testing.T, eventlog.Stream){
		"Empty":              testEmpty,
		"AppendAndRead":      testAppendAndRead,
		"WrongExpectation":   testWrongExpectation,
		"ReadRanges":         testReadRanges,
		"Ownership":          testOwnership,
		"CallbackError":      testCallbackError,
		"Sizes":              testSizes,
		"ConcurrentWriters":  testConcurrentWriters,
		"ReadWhileAppending": testReadWhileAppending,
		"Cancelled":          testCancelled,
		"Closed":             testClosed,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			test(t, s)
		})
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fill(t *testing.T, s eventlog.Stream, first, n uint64) {
	t.Helper()
	for seq := first; seq < first+n; seq++ {
		must(t, s.Append(testContext(t), fmt.Appendf(nil, "m%d", seq), seq-1))
	}
}

// collect reads and returns "seq=data" of each message.
func collect(ctx context.Context, s eventlog.Stream, from, to uint64) ([]string, error) {
	var got []string
	err := s.Read(ctx, from, to, func(m eventlog.Message) error {
		got = append(got, fmt.Sprintf("%d=%s", m.Seq, m.Data))
		return nil
	})
	return got, err
}

func expectInfo(t *testing.T, s eventlog.Stream, first, last, messages uint64) eventlog.Info {
	t.Helper()
	i, err := s.Info(testContext(t))
	must(t, err)
	if i.First != first || i.Last != last || i.Messages != messages {
		t.Fatalf("info is first %d, last %d, messages %d; want %d, %d, %d", i.First, i.Last, i.Messages, first, last, messages)
	}
	if len(i.Lost) != 0 || i.LostSize != 0 {
		t.Fatalf("info reports %v lost", i.Lost)
	}
	return i
}

func testEmpty(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	i := expectInfo(t, s, 1, 0, 0)
	if i.Identity == "" {
		t.Error("no identity")
	}
	got, err := collect(ctx, s, 0, 0)
	if err != nil || len(got) != 0 {
		t.Errorf("reading an empty stream: %v, %v", got, err)
	}
	var gap *eventlog.GapError
	if _, err := collect(ctx, s, 1, 3); !errors.As(err, &gap) || gap.Want != 1 || gap.Got != 0 {
		t.Errorf("reading 1 to 3 of an empty stream: %v", err)
	}
	for _, seq := range []uint64{0, 1} {
		if _, err := s.Get(ctx, seq); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("get %d of an empty stream: %v", seq, err)
		}
	}
}

func testAppendAndRead(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	before := expectInfo(t, s, 1, 0, 0)
	fill(t, s, 1, 3)
	after := expectInfo(t, s, 1, 3, 3)
	if before.Identity != after.Identity {
		t.Error("identity changed by appending")
	}
	if after.Bytes == 0 {
		t.Error("no bytes")
	}
	m, err := s.Get(ctx, 2)
	must(t, err)
	if m.Seq != 2 || string(m.Data) != "m2" || m.Time.IsZero() {
		t.Errorf("get 2 = %+v", m)
	}
	if _, err := s.Get(ctx, 4); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("get 4: %v", err)
	}
}

func testWrongExpectation(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	fill(t, s, 1, 2)
	for _, last := range []uint64{0, 1, 3, 1 << 40} {
		if err := s.Append(ctx, []byte("x"), last); !errors.Is(err, eventlog.ErrRefused) {
			t.Errorf("append behind %d with last 2: %v", last, err)
		}
	}
	expectInfo(t, s, 1, 2, 2)
	fill(t, s, 3, 1)
}

func testReadRanges(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	fill(t, s, 1, 5)
	for _, c := range []struct {
		from, to uint64
		want     string
		gap      uint64
	}{
		{0, 0, "[1=m1 2=m2 3=m3 4=m4 5=m5]", 0},
		{2, 4, "[2=m2 3=m3 4=m4]", 0},
		{4, 0, "[4=m4 5=m5]", 0},
		{5, 5, "[5=m5]", 0},
		{4, 2, "[]", 0},
		{6, 0, "[]", 0},
		{4, 7, "[4=m4 5=m5]", 6},
	} {
		got, err := collect(ctx, s, c.from, c.to)
		if fmt.Sprint(got) != c.want {
			t.Errorf("read %d to %d = %v, want %v", c.from, c.to, got, c.want)
		}
		var gap *eventlog.GapError
		if errors.As(err, &gap); (gap == nil) != (c.gap == 0) || gap != nil && gap.Want != c.gap {
			t.Errorf("read %d to %d: %v", c.from, c.to, err)
		}
	}
}

func testOwnership(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	data := []byte("original")
	must(t, s.Append(ctx, data, 0))
	copy(data, "XXXXXXXX")
	for range 2 {
		must(t, s.Read(ctx, 1, 1, func(m eventlog.Message) error {
			if string(m.Data) != "original" {
				t.Errorf("data = %q", m.Data)
			}
			copy(m.Data, "YYYYYYYY")
			return nil
		}))
	}
}

func testCallbackError(t *testing.T, s eventlog.Stream) {
	fill(t, s, 1, 3)
	stop := errors.New("stop")
	calls := 0
	err := s.Read(testContext(t), 1, 3, func(eventlog.Message) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("err %v after %d calls", err, calls)
	}
}

func testSizes(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	for i, n := range []int{0, 1, 512, 64 << 10, 512 << 10, 1<<20 + 4096} {
		data := bytes.Repeat([]byte{byte(i), 0, '\r', '\n', 0xff}, n/5+1)[:n]
		must(t, s.Append(ctx, data, uint64(i)))
		m, err := s.Get(ctx, uint64(i)+1)
		must(t, err)
		if !bytes.Equal(m.Data, data) {
			t.Errorf("message of %d bytes came back with %d", n, len(m.Data))
		}
	}
	n := 0
	must(t, s.Read(ctx, 0, 0, func(eventlog.Message) error { n++; return nil }))
	if n != 6 {
		t.Errorf("read %d messages", n)
	}
}

// testConcurrentWriters: of several writers with the same expectation exactly
// one gets the sequence.
func testConcurrentWriters(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	const writers, rounds = 4, 10
	for last := range uint64(rounds) {
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for w := range writers {
			wg.Go(func() { errs[w] = s.Append(ctx, fmt.Appendf(nil, "w%d", w), last) })
		}
		wg.Wait()
		winner := -1
		for w, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("writers %d and %d both got sequence %d", winner, w, last+1)
			case err == nil:
				winner = w
			case !errors.Is(err, eventlog.ErrRefused):
				t.Fatal(err)
			}
		}
		if winner < 0 {
			t.Fatalf("nobody got sequence %d: %v", last+1, errs)
		}
		m, err := s.Get(ctx, last+1)
		must(t, err)
		if string(m.Data) != fmt.Sprintf("w%d", winner) {
			t.Fatalf("sequence %d holds %s, writer %d was acknowledged", last+1, m.Data, winner)
		}
	}
	expectInfo(t, s, 1, rounds, rounds)
}

func testReadWhileAppending(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	fill(t, s, 1, 50)
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		for last := uint64(50); last < 100 && failed == nil; last++ {
			failed = s.Append(ctx, fmt.Appendf(nil, "m%d", last+1), last)
		}
	})
	for range 5 {
		next := uint64(1)
		must(t, s.Read(ctx, 1, 0, func(m eventlog.Message) error {
			if m.Seq != next || string(m.Data) != fmt.Sprintf("m%d", next) {
				t.Errorf("got %d=%s, want %d", m.Seq, m.Data, next)
			}
			next++
			return nil
		}))
		if next <= 50 {
			t.Errorf("read ended at %d", next)
		}
	}
	wg.Wait()
	must(t, failed)
}

func testCancelled(t *testing.T, s eventlog.Stream) {
	fill(t, s, 1, 2)
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := s.Append(ctx, []byte("x"), 2); err == nil {
		t.Error("append went through")
	}
	if _, err := s.Info(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("info: %v", err)
	}
	if _, err := collect(ctx, s, 1, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
}

func testClosed(t *testing.T, s eventlog.Stream) {
	ctx := testContext(t)
	fill(t, s, 1, 1)
	must(t, s.Close())
	_, infoErr := s.Info(ctx)
	_, getErr := s.Get(ctx, 1)
	for name, err := range map[string]error{
		"append": s.Append(ctx, []byte("x"), 1),
		"info":   infoErr,
		"get":    getErr,
		"read":   s.Read(ctx, 0, 0, func(eventlog.Message) error { return nil }),
	} {
		if !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
}
