package node

import (
	"fmt"
	"strings"
	"time"

	"mneme/internal/backup"
	"mneme/internal/events"
	"mneme/memory"
)

// logUntil is where a restore ends before the backup does; the zero value is its end. A
// frame was written at once and is never cut: its writer acknowledged all of it together.
type logUntil struct {
	positions map[uint16]events.Position // the last event of each shard; nil = none given
	time      time.Time                  // the last moment; zero = none given
}

// untilPosition reads positions as status and backup print them: one for each shard.
func untilPosition(s string) (logUntil, error) {
	out := logUntil{positions: map[uint16]events.Position{}}
	for one := range strings.SplitSeq(s, ",") {
		p, err := events.ParsePosition(strings.TrimSpace(one))
		if err != nil {
			return out, memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("give positions as memctl prints them, of several shards one for each, separated by commas")
		}
		if _, twice := out.positions[p.Shard]; twice {
			return out, memory.Errorf(memory.CodeInvalid, "there are two positions of shard %d", p.Shard)
		}
		out.positions[p.Shard] = p
	}
	return out, nil
}

// cutter finds the last frame of each shard that a restore takes, as it sees the frames.
type cutter struct {
	until logUntil
	at    map[uint16]*cutAt
}

type cutAt struct {
	last   uint64 // the last frame to take, if ended
	ended  bool
	before events.Position // the last event seen before the end
	seen   bool            // any frame
}

func (c cutter) see(shard uint16, seq uint64, f *events.Frame, valid bool) error {
	if c.until.positions == nil && c.until.time.IsZero() {
		return nil
	}
	at := c.at[shard]
	if at == nil {
		at = &cutAt{}
		c.at[shard] = at
	}
	if at.ended {
		return nil
	}
	end := events.Position{Shard: shard, Epoch: f.Epoch, Seq: seq}
	if valid && len(f.Events) > 0 {
		end.Index = uint32(len(f.Events) - 1)
	}
	if want, given := c.until.positions[shard]; given && want.Seq == seq {
		if valid && want.Epoch != f.Epoch {
			return memory.Errorf(memory.CodeLostPosition, "%s is not in this backup: message %d is of another epoch, at %s", want, seq, end).
				WithHint("the log was restored or repaired since; name a position that this backup has, or a backup of before with --backup")
		}
		if want.Index != end.Index {
			return memory.Errorf(memory.CodeInvalid, "%s lies inside what was written at once and is not cut", want).
				WithHint("%s", inside(at, end))
		}
		at.last, at.ended = seq, true
		return nil
	}
	if !c.until.time.IsZero() && valid && sealedAfter(f, c.until.time) {
		at.last, at.ended = seq-1, true
		return nil
	}
	at.before, at.seen = end, true
	return nil
}

// inside names the positions around a frame that cannot be cut.
func inside(at *cutAt, end events.Position) string {
	if !at.seen {
		return fmt.Sprintf("%s is the end of it", end)
	}
	return fmt.Sprintf("%s is the end of it, %s the one before", end, at.before)
}

func sealedAfter(f *events.Frame, t time.Time) bool {
	for _, b := range f.Events {
		if e, err := events.DecodeEnvelope(b); err == nil && e.SealedAt > t.UnixNano() {
			return true
		}
	}
	return false
}

// last is the last message of a shard to restore, of a backup that was read.
func (c cutter) last(s backup.Section) (uint64, error) {
	at := c.at[s.After.Shard]
	if at != nil && at.ended {
		if at.last == 0 {
			return 0, memory.Errorf(memory.CodeInvalid, "the log of shard %d begins after %s", s.After.Shard, c.until.time.Format(time.RFC3339)).
				WithHint("name a later time; memctl backup list shows which there are")
		}
		return at.last, nil
	}
	if c.until.positions != nil {
		want, given := c.until.positions[s.After.Shard]
		if !given {
			return 0, memory.Errorf(memory.CodeInvalid, "no position of shard %d is given, of %d shards", s.After.Shard, s.Shards).
				WithHint("give one for each, separated by commas, or a time")
		}
		return 0, memory.Errorf(memory.CodeNotFound, "%s is not in this backup, which ends at message %d", want, s.End.Seq).
			WithHint("name an earlier position, or a later backup")
	}
	return s.End.Seq, nil
}
