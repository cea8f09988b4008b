package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"mneme/internal/events"
)

// Expect is what the state knows about the log.
type Expect struct {
	Identity string // of the stream; empty if not yet known
	Next     string // … or of the one that is to take its place; either will do
	First    uint64 // sequence of the log's first message; 0 means 1
	Seq      uint64 // last sequence applied; 0 before the first
	Chain    events.Chain
	// Hashes gives SHA-256 of the frame that the state applied at seq. With it
	// the last Depth messages are compared (0 means 16); without it only the
	// last one, through the chain.
	Hashes func(seq uint64) (events.Hash, bool)
	Depth  int
}

// Check compares log and state cheaply: identity, first and last sequence,
// count, lost messages, and the hashes of the last messages the state applied.
// It returns nil when the log stands at or past the state, a *DivergedError
// when they contradict each other, another error when the log cannot be read.
func Check(ctx context.Context, s Stream, e Expect) error {
	info, err := s.Info(ctx)
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	if err := checkInfo(info, e); err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	if e.Seq == 0 {
		return nil
	}
	return checkHashes(ctx, s, max(info.First, 1), e)
}

// Settled returns what check finds out about a log once it is not what may pass
// (Info.Passing): until then check is called again and again. Errors: check's, Info's, ctx's.
func Settled(ctx context.Context, s Stream, check func() error) error {
	var told contradiction
	for {
		err := check()
		if d := (*DivergedError)(nil); !errors.As(err, &d) || d.asked {
			return err
		}
		info, infoErr := s.Info(ctx)
		if infoErr != nil {
			return fmt.Errorf("check log: %w", infoErr)
		}
		if told.by(info.Leader, time.Now()) >= info.Passing {
			return err
		}
		if err := pause(ctx, settlePause); err != nil {
			return fmt.Errorf("check log: %w", err)
		}
	}
}

// SettledInfo is Info once its leader has told of the log for so long that what it tells
// does not pass any more (Info.Passing). Errors: Info's, ctx's.
func SettledInfo(ctx context.Context, s Stream) (Info, error) {
	var told contradiction
	for {
		info, err := s.Info(ctx)
		if err != nil || told.by(info.Leader, time.Now()) >= info.Passing {
			return info, err
		}
		if err := pause(ctx, settlePause); err != nil {
			return Info{}, err
		}
	}
}

// contradiction is that the leader of a log has told what may pass (Info.Passing), each
// time that it was asked since.
type contradiction struct {
	leader string
	asked  time.Time // last
	told   time.Duration
}

// by notes who leads after an answer told it again, and returns for how long this leader has
// told it. A pause counts as a second at most: all processes of a machine may have stood
// still meanwhile.
func (c *contradiction) by(leader string, now time.Time) time.Duration {
	if c.asked.IsZero() || c.leader != leader {
		*c = contradiction{leader: leader, asked: now}
	}
	c.told += min(now.Sub(c.asked), time.Second)
	c.asked = now
	return c.told
}

const settlePause = 100 * time.Millisecond

func checkInfo(info Info, e Expect) error {
	first := max(e.First, 1)
	switch {
	case e.Identity != "" && info.Identity == "":
		return diverged(KindIdentity, 0, "the stream %s, which the state knows, is not there", e.Identity)
	case e.Identity != "" && info.Identity != e.Identity && info.Identity != e.Next:
		return diverged(KindIdentity, 0, "the stream was created again: its identity is %s, the state knows %s", info.Identity, e.Identity)
	case info.Last < e.Seq:
		return diverged(KindSuffixLost, info.Last+1, "the log ends at %d, the state stands at %d", info.Last, e.Seq)
	case len(info.Lost) > 0:
		return diverged(KindLost, slices.Min(info.Lost), "the server reports %d lost messages, the first is %d", len(info.Lost), slices.Min(info.Lost))
	case info.LostSize > 0:
		return diverged(KindLost, 0, "the server reports %d lost bytes", info.LostSize)
	case info.First != first && (info.Messages > 0 || e.Seq > 0):
		return diverged(KindGap, first, "the log begins at %d, not at %d", info.First, first)
	case info.Messages > 0 && info.Messages != info.Last-info.First+1:
		return diverged(KindGap, 0, "the log has %d messages from %d to %d", info.Messages, info.First, info.Last)
	}
	return nil
}

func checkHashes(ctx context.Context, s Stream, first uint64, e Expect) error {
	from, depth := e.Seq, uint64(max(e.Depth, 0))
	if depth == 0 {
		depth = 16
	}
	if e.Hashes != nil && e.Seq >= depth {
		from = e.Seq - depth + 1
	} else if e.Hashes != nil {
		from = 1
	}
	err := s.Read(ctx, max(from, first), e.Seq, func(m Message) error {
		if e.Hashes != nil {
			if want, ok := e.Hashes(m.Seq); ok && want != events.Hash(sha256.Sum256(m.Data)) {
				return diverged(KindHash, m.Seq, "message %d is not the one that the state applied", m.Seq)
			}
		}
		if m.Seq == e.Seq {
			return checkChain(m, e)
		}
		return nil
	})
	var gap *GapError
	if errors.As(err, &gap) {
		d := diverged(KindGap, gap.Want, "%v", gap)
		d.asked = true
		err = d
	}
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	return nil
}

// checkChain uses that a frame names the chain before it. A frame that does not
// lead to the state's chain was either replaced or void when it was applied;
// only the hashes can tell, so it counts only without them.
func checkChain(m Message, e Expect) error {
	f, err := events.DecodeFrame(m.Data)
	if err != nil || e.Hashes != nil {
		return nil
	}
	if events.NextChain(f.Previous, m.Seq, m.Data) != e.Chain {
		return diverged(KindChain, m.Seq, "message %d does not lead to the chain of the state", m.Seq)
	}
	return nil
}
