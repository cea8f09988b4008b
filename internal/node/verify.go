package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/storage"
	"mneme/memory"
)

// VerifyLog reads the whole logs against their chains and the states, and the files of this
// node's own copy. A divergence that it finds stops writes, as the slow scrub would.
func (u *upkeep) VerifyLog(ctx context.Context, progress func(done, total uint64)) (memory.VerifyReport, error) {
	var report memory.VerifyReport
	err := u.exclusive(ctx, func() error {
		for _, s := range u.n.served {
			one, err := s.verify(ctx, progress)
			report.Shards = append(report.Shards, one)
			if err != nil {
				return err
			}
		}
		var err error
		report.Copy, err = u.copy.verify(ctx)
		return err
	})
	return report, err
}

// verify is VerifyLog of one shard, while nothing else replaces its log or its state.
func (s *served) verify(ctx context.Context, progress func(done, total uint64)) (out memory.VerifyShard, err error) {
	if s.peers != nil {
		streams{s.shard}.takeUp() // a node that follows has done nothing with the log since another one replaced it
	}
	v := s.state.View()
	defer v.Close()
	err = s.stopOver(func() (d *eventlog.DivergedError, err error) {
		out, d, err = s.verifyLog(ctx, v, progress)
		return d, err
	})
	if err == nil {
		s.scrub.wasRead(out)
	}
	return out, err
}

// logCheckEvery is how often log and state are compared.
const logCheckEvery = time.Minute

// watchLog compares log and state now and then and stops writes when they
// disagree.
func (s *served) watchLog(ctx context.Context) {
	tick := time.NewTicker(logCheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.tendsLog() {
			s.checkLog(ctx)
		}
	}
}

// tendsLog reports whether this node compares the log with its state: of several the
// one that leads does, whose state has all of it.
func (s *shard) tendsLog() bool { return s.peers == nil || s.replica.Leads() }

func (s *served) checkLog(ctx context.Context) {
	err := s.stopOver(func() (d *eventlog.DivergedError, err error) {
		if err = s.replica.CheckLog(ctx); errors.As(err, &d) {
			err = nil
		}
		return d, err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("log could not be checked", "err", err)
	}
}

// verifyLog compares the log with a view of the state, message by message. It
// returns the divergence that it found, if any.
func (s *shard) verifyLog(ctx context.Context, v *projections.View, progress func(done, total uint64)) (memory.VerifyShard, *eventlog.DivergedError, error) {
	out, stream := memory.VerifyShard{ID: int(s.id)}, s.stream
	var d *eventlog.DivergedError
	switch err := eventlog.Settled(ctx, stream, func() error { return ingest.CheckLog(ctx, stream, v) }); {
	case errors.As(err, &d):
		out.Problems = append(out.Problems, fmt.Sprintf("%s: %s", d.Kind, d.Detail))
	case err != nil:
		return out, nil, fmt.Errorf("verify log: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return out, nil, fmt.Errorf("verify log: %w", err)
	}
	out.First, out.Last = info.First, info.Last
	cursor := v.Cursor()
	scrub, err := eventlog.Scrub(ctx, stream, eventlog.Tail{Shard: s.id}, ingest.FrameHashes(v), progress)
	if err != nil {
		return out, nil, fmt.Errorf("verify log: %w", err)
	}
	if d == nil && scrub.To < cursor.Seq {
		return out, nil, toldLess("verify log", scrub.To, cursor.Seq)
	}
	out.Frames, out.Events = scrub.Frames, scrub.Events
	for _, p := range scrub.Problems {
		out.Problems = append(out.Problems, fmt.Sprintf("sequence %d: %s: %s", p.Seq, p.Kind, p.Detail))
	}
	if found := scrub.Diverged(); found != nil {
		d = found // it names the first sequence of the whole log
	}
	if d != nil {
		out.Hint = d.Hint
	} else if scrub.Tail.Seq == cursor.Seq && scrub.Tail.Chain != cursor.Chain {
		out.Problems = append(out.Problems, "the chain over the log does not end where the state's does")
		out.Hint = "memctl rebuild builds the state again from the log"
	}
	out.OK = out.Hint == ""
	return out, d, nil
}

// toldLess is that the log, which was found to hold all that the state holds, tells less for
// a moment (eventlog.Info.Passing), so that what was read is not all of it.
func toldLess(what string, last, want uint64) error {
	return fmt.Errorf("%s: %w that knows all of it: it tells of %d messages, the state has applied %d", what, eventlog.ErrNoLeader, last, want)
}

// problems names the first problems of a report in one line.
func problems(report memory.VerifyShard) string {
	const named = 3
	list := report.Problems
	if more := len(list) - named; more > 0 {
		list = append(slices.Clone(list[:named]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}

// damagedLog is the error of work that needs a sound log. It names the first
// thing that is wrong with it, and the remedy.
func damagedLog(what string, report memory.VerifyShard) *memory.Error {
	first := "log and state disagree"
	if len(report.Problems) > 0 {
		first = report.Problems[0]
	}
	return memory.Errorf(memory.CodeLogDiverged, "%s: the log is damaged: %s", what, first).WithHint("%s", report.Hint)
}

// stopOver stops writes over what a reading of the log finds. What it found in a
// stream that a repair has replaced meanwhile says nothing about the log.
func (s *served) stopOver(read func() (*eventlog.DivergedError, error)) error {
	on := s.stream.Ref()
	d, err := read()
	if d == nil {
		return err
	}
	s.finding.Lock()
	defer s.finding.Unlock()
	if on != s.stream.Ref() || s.replica.Diverged() != nil {
		return err
	}
	s.log.Error("log and state disagree, writes are stopped", "kind", d.Kind, "sequence", d.Seq, "detail", d.Detail, "hint", d.Hint)
	s.replica.SetDiverged(d)
	s.n.upkeep.copy.ask() // of several nodes another one may have a copy that is whole
	if err := storage.ReplaceFile(s.cfg.FS, s.divergedMark(), []byte(d.Error()+"\n"), 0o600); err != nil {
		s.log.Warn("the damage is not noted for the next start", "err", err)
	}
	return err
}

// divergedMark is the file that says that the log was found damaged where the
// cheap check at start does not look. Its text is for people.
func (s *shard) divergedMark() string { return filepath.Join(s.dir.shard(s.id), divergedMark) }

const divergedMark = "diverged"

// knownDivergence reads the whole log if it was found damaged before the last
// stop, and returns what is still wrong.
func (s *shard) knownDivergence(ctx context.Context) (*eventlog.DivergedError, error) {
	if _, err := s.cfg.FS.Stat(s.divergedMark()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s.log.Info("the log was found damaged before; reading all of it")
	v := s.state.View()
	defer v.Close()
	report, d, err := s.verifyLog(ctx, v, nil)
	if err != nil || !report.OK {
		return d, err
	}
	return nil, s.forgetDivergence()
}

// forgetDivergence ends what divergedMark began. A mark that comes back after a
// crash costs one reading of the log.
func (s *shard) forgetDivergence() error {
	if err := s.cfg.FS.Remove(s.divergedMark()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
