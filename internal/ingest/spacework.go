package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

const (
	// Building a space rests as long as it worked, and this many times as long
	// while writers queue. Records in the current space are waited for.
	restShare     = 1
	restShareBusy = 4
	restMin       = time.Millisecond
	restMax       = 2 * time.Second
	// lookAgain is how long nothing is done when nobody says that there is something.
	lookAgain = time.Minute

	// After an error it is tried again after 1 s, 2 s, up to a minute.
	retrySoon = time.Second
	retryLate = time.Minute
)

// spaceWork is what there is to do in one space, for the namespaces whose current
// or whose next space it is.
type spaceWork struct {
	target
	backfill *Backfill
	writer   *Writer
	wake     chan struct{}      // capacity 1: there may be something to do
	jobs     map[events.ID]*job // by namespace; guarded by Backfill.mu
	turns    uint64             // steps that were ever taken
}

// job is one namespace in one space.
type job struct {
	ns   events.ID
	name string
	set  *settings.Effective // as of the present step
	at   map[uint32]uint32   // next DocID to look at in a space that is being built, by partition
	// unembeddable are versions that have no vector in the space. They are found by
	// text, and must not stand in front of others.
	unembeddable map[projections.PendingDoc]bool
	rescan       bool          // everything was looked at once more
	last         time.Time     // end of the step before
	retry        time.Duration // pause after the last error
	// Guarded by Backfill.mu. But for plan, run alone writes them.
	plan   uint64 // that last named the job
	turn   uint64 // of the last step; 0 = none was taken
	status BuildStatus
}

// space is the one that the job's namespace has vectors made in.
func (j *job) space() embed.Space { return j.status.Space }

func (s *spaceWork) run(ctx context.Context) {
	for ctx.Err() == nil {
		rest := time.NewTimer(s.round(ctx))
		select {
		case <-rest.C:
		case <-s.wake:
		case <-ctx.Done():
		}
		rest.Stop()
	}
}

// round takes a step for each namespace and returns how long to rest.
func (s *spaceWork) round(ctx context.Context) time.Duration {
	began, more := time.Now(), false
	jobs, _ := s.due()
	for _, j := range jobs {
		again, err := s.step(ctx, j)
		if ctx.Err() != nil {
			return 0
		}
		more = more || again && err == nil
		if s.note(j, err) {
			break
		}
	}
	_, wait := s.due()
	if more {
		wait = min(wait, s.rest(time.Since(began)))
	}
	return wait
}

// due lists the jobs that can be taken up now, the one that has waited longest
// first, and tells how long it is until another one can.
func (s *spaceWork) due() (jobs []*job, wait time.Duration) {
	s.backfill.mu.Lock()
	defer s.backfill.mu.Unlock()
	wait = lookAgain
	now := s.writer.opt.Now()
	for _, j := range s.jobs {
		if left := j.status.RetryAt.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), bytes.Compare(a.ns[:], b.ns[:]))
	})
	return jobs, wait
}

// rest is how long the building of spaces steps back after it worked.
func (s *spaceWork) rest(took time.Duration) time.Duration {
	if !s.building {
		return 0
	}
	share := time.Duration(restShare)
	if waiting, _ := s.writer.QueueDepth(); waiting > 0 {
		share = restShareBusy
	}
	return min(max(share*took, restMin), restMax)
}

// step fills in one batch. At the end of the records of a space that is being
// built it has the spaces compared and switches. more says that a step should
// follow.
func (s *spaceWork) step(ctx context.Context, j *job) (more bool, err error) {
	wanted, err := s.begin(j)
	if err != nil || !wanted {
		return false, err
	}
	n, end, err := s.fill(ctx, j)
	if err != nil || !end || !s.building {
		return !end, err
	}
	left, err := s.left(j)
	if err != nil {
		return false, err
	}
	if n == 0 && left > 0 && !j.rescan {
		// Events that were not applied after all: look at everything again.
		j.rescan = true
		clear(j.at)
		return true, nil
	}
	return true, s.finish(ctx, j)
}

// begin reads the job's namespace as it is now. It reports false if that has its
// vectors made in another space by now.
func (s *spaceWork) begin(j *job) (wanted bool, err error) {
	if j.set, err = s.writer.settingsOf(j.ns); err != nil {
		return false, err
	}
	space := j.set.Space
	if s.building {
		space = j.set.Next
	}
	if settings.KeyOf(space) != s.key {
		return false, nil
	}
	s.backfill.mu.Lock()
	defer s.backfill.mu.Unlock()
	s.turns++
	j.turn = s.turns
	j.status.Space, j.status.Phase, j.status.RetryAt = space, memory.PhaseFilling, time.Time{}
	return true, nil
}

// note keeps what a step came to. After an error the namespace is left alone for a
// while; after one of the embedder, which is then reported, so are all others.
func (s *spaceWork) note(j *job, err error) (down bool) {
	s.backfill.mu.Lock()
	defer s.backfill.mu.Unlock()
	j.status.Skipped = uint64(len(j.unembeddable))
	if err == nil {
		j.retry = 0
		return false
	}
	now := s.writer.opt.Now()
	j.failed(now, err)
	s.writer.opt.Logger.Warn("records wait for vectors", "namespace", j.name, "space", j.space().String(), "err", err, "retry", j.retry)
	if e := (*embed.Error)(nil); errors.As(err, &e) {
		down = true
		for _, o := range s.jobs {
			if o != j {
				o.failed(now, err)
			}
		}
	}
	return down
}

// failed notes an error. The caller holds Backfill.mu.
func (j *job) failed(now time.Time, err error) {
	j.retry = min(max(2*j.retry, retrySoon), retryLate)
	st := &j.status
	st.Phase, st.Err, st.ErrAt, st.RetryAt = memory.PhaseWaiting, err.Error(), now, now.Add(j.retry)
}
