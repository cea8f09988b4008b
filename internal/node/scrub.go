package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/memory"
)

// Defaults of the slow scrub. A pass over a log of 10 GiB takes about 45
// minutes and a few per cent of a disk.
const (
	DefaultScrubEvery = 24 * time.Hour
	DefaultScrubRate  = 4 << 20
	scrubAfterStart   = time.Minute
	scrubStep         = 64 // messages read at a time, at most 32 MiB
)

// logScrub reads the whole log of a shard against chain and state, slowly, again and
// again: the cheap check sees only the last messages. What it finds stops
// writes.
type logScrub struct {
	of    *served
	every time.Duration // between two passes
	rate  int64         // bytes a second
	first time.Duration // from the start to the first pass

	// busy is held while a step reads, and while log or state are replaced or
	// read as a whole by somebody else.
	busy   sync.Mutex
	mu     sync.Mutex
	status memory.ScrubStatus
}

func newLogScrub(s *served) *logScrub {
	return &logScrub{of: s, every: s.cfg.ScrubEvery, rate: s.cfg.ScrubRate, first: min(scrubAfterStart, s.cfg.ScrubEvery)}
}

// hold keeps the scrub from reading until the returned function is called.
func (s *logScrub) hold() (release func()) {
	s.busy.Lock()
	return s.busy.Unlock
}

// Status is how far the present pass is and how the last one ended.
func (s *logScrub) Status() memory.ScrubStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *logScrub) set(f func(*memory.ScrubStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

// wasRead notes that somebody else has read the whole log: it counts as a pass.
func (s *logScrub) wasRead(found memory.VerifyShard) {
	s.set(func(st *memory.ScrubStatus) {
		if !found.OK {
			st.Problem = problems(found)
			return
		}
		st.Problem, st.FinishedAt = "", s.of.cfg.Now().UTC()
	})
}

// wasRepaired notes that what the last pass found wrong is no more: the log is another one.
func (s *logScrub) wasRepaired() {
	s.set(func(st *memory.ScrubStatus) { st.Problem = "" })
}

// run makes passes until ctx ends.
func (s *logScrub) run(ctx context.Context) {
	for wait := s.first; ; wait = s.every {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		if s.of.replica.Diverged() != nil || !s.of.tendsLog() {
			continue // known, and the log waits for its repair; or another node reads it
		}
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			s.of.log.Warn("the scrub of the log could not go on", "err", err)
		}
	}
}

// pass reads the log once. It ends early at the first divergence.
func (s *logScrub) pass(ctx context.Context) error {
	began := time.Now()
	stream := s.of.stream.Ref()
	sc, err := eventlog.BeginScrub(ctx, s.of.stream, eventlog.Tail{Shard: s.of.id})
	if err != nil {
		return err
	}
	total := sc.Report().To
	s.set(func(st *memory.ScrubStatus) {
		*st = memory.ScrubStatus{Running: true, Total: total, FinishedAt: st.FinishedAt}
	})
	defer s.set(func(st *memory.ScrubStatus) { st.Running = false })
	for more := true; more; {
		before := sc.Report().Bytes
		var found *eventlog.DivergedError
		err := s.of.stopOver(func() (_ *eventlog.DivergedError, err error) {
			more, found, err = s.step(ctx, sc, stream)
			return found, err
		})
		if err != nil || found != nil {
			return err
		}
		r := sc.Report()
		s.set(func(st *memory.ScrubStatus) { st.Done = r.Tail.Seq })
		if err := sleep(ctx, time.Duration(r.Bytes-before)*time.Second/time.Duration(s.rate)); err != nil {
			return err
		}
	}
	s.set(func(st *memory.ScrubStatus) { st.FinishedAt = s.of.cfg.Now().UTC() })
	s.of.log.Info("the whole log was read and is sound", "frames", sc.Report().Frames, "took", time.Since(began).Round(time.Second))
	return nil
}

var errLogReplaced = errors.New("the log was made anew meanwhile")

// step reads some messages and returns what is wrong with the log up to there.
func (s *logScrub) step(ctx context.Context, sc *eventlog.Scrubber, stream events.StreamRef) (more bool, d *eventlog.DivergedError, err error) {
	defer s.hold()()
	if s.of.stream.Ref() != stream {
		return false, nil, errLogReplaced
	}
	v := s.of.state.View()
	defer v.Close()
	if more, err = sc.Step(ctx, s.of.stream, ingest.FrameHashes(v), scrubStep); err != nil {
		return false, nil, err
	}
	r := sc.Report()
	if d = r.Diverged(); d != nil {
		s.set(func(st *memory.ScrubStatus) { st.Problem = d.Error() })
	}
	return more, d, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
