package raftfsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestApplyAndRestart(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 200)
	want := s.machine.get()
	checkRows(t, want, 200)
	term := s.group.Term()
	s.close(t)

	s = openShard(t, dir).lead(t)
	if got := s.machine.get(); !reflect.DeepEqual(got, want) {
		t.Fatalf("state after restart: %+v, want %+v", got, want)
	}
	if s.machine.applies != 0 {
		t.Fatalf("replay reached the machine %d times", s.machine.applies)
	}
	if s.group.Term() <= term {
		t.Fatalf("term %d does not follow %d", s.group.Term(), term)
	}
	if rep := s.group.Stats().Repair; rep != (Repair{}) {
		t.Fatalf("a clean restart repaired something: %+v", rep)
	}
	s.putMany(t, 200, 210)
	checkRows(t, s.machine.get(), 210)
}

// The machine's writes reach the disk only with Flush, so a kill loses them; the
// Raft log brings them back, each once and in order.
func TestReplayAfterKillIsExact(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 50)
	if err := s.machine.Flush(); err != nil {
		t.Fatal(err)
	}
	s.putMany(t, 50, 120)
	want := s.machine.get()
	crash := t.TempDir()
	copyTree(t, dir, crash)

	c := openShard(t, crash).lead(t)
	if got := c.machine.get(); !reflect.DeepEqual(got.Rows, want.Rows) || got.Chain != want.Chain || got.Index != want.Index {
		t.Fatalf("after a kill: index %d chain %x, want %d %x", got.Index, got.Chain, want.Index, want.Chain)
	}
	for i := 1; i < len(c.machine.seen); i++ {
		if c.machine.seen[i] <= c.machine.seen[i-1] {
			t.Fatalf("entries out of order: %v", c.machine.seen)
		}
	}
	if len(c.machine.seen) != 70 {
		t.Fatalf("%d entries replayed, want 70", len(c.machine.seen))
	}
}

func TestProposeOrderAndResults(t *testing.T) {
	s := openShard(t, t.TempDir()).lead(t)
	ctx := testCtx(t)
	var futures []*Future
	for i := range 500 {
		futures = append(futures, s.group.Propose(ctx, fmt.Appendf(nil, "k%03d=v%d", i, i)))
	}
	last := uint64(0)
	for i, f := range futures {
		res, index, err := f.Wait(ctx)
		if err != nil || res != i+1 || index <= last {
			t.Fatalf("command %d: result %v index %d (after %d) err %v", i, res, index, last, err)
		}
		last = index
	}
	if s.machine.applies >= 500 {
		t.Fatalf("no batching: %d calls", s.machine.applies)
	}
	if _, _, err := s.group.Propose(ctx, make([]byte, defaultMaxCommandBytes+1)).Wait(ctx); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("oversized: %v", err)
	}
	if _, _, err := s.group.Propose(ctx, nil).Wait(ctx); err != nil { // an empty command is a command
		t.Fatal(err)
	}
	if got := s.machine.get(); len(got.Rows) != 501 {
		t.Fatalf("%d rows", len(got.Rows))
	}
}

func TestLeadsQuickly(t *testing.T) {
	s := openShard(t, t.TempDir())
	start := time.Now()
	s.lead(t)
	if d := time.Since(start); d > 900*time.Millisecond { // the ordinary timeout is 1 to 2 s
		t.Errorf("leader after %v: the election waited for its timeout", d)
	} else {
		t.Logf("leader after %v", d)
	}
	if id, addr := s.group.Leader(); id != "n1" || addr != "n1" {
		t.Fatalf("leader %q at %q", id, addr)
	}
	if l := <-s.group.Leadership(); l != (Leadership{Kind: TermBegan, Term: s.group.Term(), LeaderID: "n1", LeaderAddr: "n1"}) {
		t.Fatalf("leadership %+v", l)
	}
}

func TestHaltOnErrorAndPanic(t *testing.T) {
	for name, arm := range map[string]func(*fileMachine, uint64){
		"error": func(m *fileMachine, at uint64) { m.failAt = at },
		"panic": func(m *fileMachine, at uint64) { m.panicAt = at },
		"short": func(m *fileMachine, _ uint64) { m.short = true },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openShard(t, dir).lead(t)
			ctx := testCtx(t)
			last := s.put(t, "k000=v0")
			s.machine.mu.Lock()
			arm(s.machine, last+1)
			s.machine.mu.Unlock()
			_, _, err := s.group.Propose(ctx, []byte("bad=1")).Wait(ctx)
			var halt *HaltError
			if !errors.Is(err, ErrHalted) || !errors.As(err, &halt) || halt.Index != last+1 {
				t.Fatalf("got %v, want a halt at %d", err, last+1)
			}
			if name == "error" && !errors.Is(err, errBoom) {
				t.Fatalf("cause is lost: %v", err)
			}
			<-s.group.HaltedCh()
			if !errors.Is(s.group.Halted(), ErrHalted) {
				t.Fatal("Halted is nil")
			}
			for what, err := range map[string]error{
				"propose":      waitErr(ctx, s.group.Propose(ctx, []byte("x=1"))),
				"snapshot":     s.group.Snapshot(),
				"barrier":      s.group.Barrier(ctx),
				"wait leader":  s.group.WaitLeader(ctx),
				"wait applied": s.group.WaitApplied(ctx, last+100),
				"linearizable": second(s.group.LinearizableIndex(ctx)),
			} {
				if !errors.Is(err, ErrHalted) {
					t.Errorf("%s after halt: %v", what, err)
				}
			}
			if !s.group.Stats().Halted {
				t.Error("stats do not say halted")
			}
			s.close(t)
			if name == "short" {
				return
			}
			// A mended machine goes on where it stopped; the command was kept.
			s = openShard(t, dir).lead(t)
			if got := s.machine.get().Rows["bad"]; got != "1" {
				t.Fatalf("command lost: %q", got)
			}
		})
	}
}

func waitErr(ctx context.Context, f *Future) error {
	_, _, err := f.Wait(ctx)
	return err
}

func second(_ uint64, err error) error { return err }

func TestFuturesAfterClose(t *testing.T) {
	s := openShard(t, t.TempDir()).lead(t)
	ctx := testCtx(t)
	hold := make(chan struct{})
	s.machine.mu.Lock()
	s.machine.hold = hold
	s.machine.mu.Unlock()
	var futures []*Future
	for i := range 300 {
		futures = append(futures, s.group.Propose(ctx, fmt.Appendf(nil, "k%03d=v%d", i, i)))
	}
	done := make(chan error, 1)
	go func() { done <- s.group.Close() }()
	<-s.group.closing
	if err := waitErr(ctx, s.group.Propose(ctx, []byte("late=1"))); !errors.Is(err, ErrClosed) {
		t.Fatalf("propose after close: %v", err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := futures[299].Wait(short); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait with a dead context: %v", err)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, f := range futures { // everything queued before Close was drained
		if _, _, err := f.Wait(ctx); err != nil {
			t.Fatalf("future %d: %v", i, err)
		}
	}
	checkRows(t, s.machine.get(), 300)
	if err := s.group.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"snapshot": s.group.Snapshot(), "barrier": s.group.Barrier(ctx),
		"linearizable": second(s.group.LinearizableIndex(ctx)), "leader": s.group.WaitLeader(ctx),
		"transfer": s.group.TransferLeadership(ctx), "applied": s.group.WaitApplied(ctx, 1<<40),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}
}

func TestLinearizableReadsSeeAcknowledgedWrites(t *testing.T) {
	s := openShard(t, t.TempDir()).lead(t)
	ctx := testCtx(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				key := fmt.Sprintf("w%d-%d", w, i)
				if _, _, err := s.group.Propose(ctx, []byte(key+"=1")).Wait(ctx); err != nil {
					t.Error(err)
					return
				}
				index, err := s.group.LinearizableIndex(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.group.WaitApplied(ctx, index); err != nil {
					t.Error(err)
					return
				}
				if s.machine.get().Rows[key] != "1" {
					t.Errorf("read at %d does not see %s", index, key)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.group.TransferLeadership(ctx); !errors.Is(err, ErrNoPeer) {
		t.Fatalf("transfer without a peer: %v", err)
	}
}

// A reader that comes while a round is out must not be answered by that round.
func TestVerifierSharesOnlyLaterRounds(t *testing.T) {
	ctx := testCtx(t)
	entered, release := make(chan int, 8), make(chan error)
	rounds := 0
	v := newVerifier(func() error {
		rounds++
		entered <- rounds
		return <-release
	})
	run, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { v.run(run) })
	first := make(chan error, 1)
	wg.Go(func() { first <- v.join(ctx) })
	<-entered
	late := make(chan error, 3)
	joined := func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.next != nil }
	for range 3 {
		wg.Go(func() { late <- v.join(ctx) })
	}
	for !joined() {
	}
	release <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	<-entered
	select {
	case err := <-late:
		t.Fatalf("a late reader was answered by the first round: %v", err)
	default:
	}
	release <- errBoom
	got := 0
	for got < 3 {
		select {
		case err := <-late:
			got++
			if err != nil && !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		case <-entered: // a reader that came after the second round began
			release <- nil
		}
	}
	cancel()
	wg.Wait()
}

func TestOptions(t *testing.T) {
	m := newFileMachine(t, t.TempDir())
	for _, o := range []Options{
		{ID: "a", Machine: m}, {Dir: "x", Machine: m}, {Dir: "x", ID: "a"},
		{Dir: "x", ID: "a", Machine: m, MaxCommandBytes: -1}, {Dir: "x", ID: "a", Machine: m, SnapshotBytes: -1},
	} {
		if _, err := Open(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	dir := t.TempDir()
	openShard(t, dir)
	if _, err := tryOpenShard(t, dir); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
}

// A group that was never bootstrapped waits for a leader and does not elect itself.
func TestWithoutBootstrapNobodyLeads(t *testing.T) {
	plain := func(o *Options) { o.Bootstrap, o.NoSync = false, false }
	dir := t.TempDir()
	for range 2 {
		s := openShard(t, dir, plain)
		ctx, cancel := context.WithCancel(testCtx(t))
		cancel()
		if err := s.group.WaitLeader(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		ctx = testCtx(t)
		if err := waitErr(ctx, s.group.Propose(ctx, []byte("a=1"))); !errors.Is(err, ErrNotLeader) {
			t.Fatalf("propose: %v", err)
		}
		if _, err := s.group.LinearizableIndex(ctx); !errors.Is(err, ErrNotLeader) {
			t.Fatalf("linearizable: %v", err)
		}
		s.close(t)
	}
	if _, err := tryOpenShard(t, t.TempDir(), func(o *Options) { o.Bootstrap = false }); !errors.Is(err, ErrNoSync) {
		t.Fatalf("NoSync without being alone: %v", err)
	}
}

func TestRaftLogsGoToSlog(t *testing.T) {
	var buf bytes.Buffer
	var mu sync.Mutex
	h := slog.NewTextHandler(lockedWriter{&mu, &buf}, &slog.HandlerOptions{Level: slog.LevelDebug})
	s := openShard(t, t.TempDir(), func(o *Options) { o.Logger = slog.New(h) }).lead(t)
	s.close(t)
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"logger=raft", "raft_id=n1", "election won", "level=INFO", "level=DEBUG", "servers=\"[{Suffrage:Voter"} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
