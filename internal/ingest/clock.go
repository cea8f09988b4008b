package ingest

import (
	"sync"
	"time"

	"mneme/memory"
)

// How far the wall clock may be off before writes are refused. The log's times
// never go back, so one event of a clock that is years ahead would hold up all
// writing until real time has caught up.
const (
	maxClockLag   = 60 * time.Second     // behind the last event
	maxClockDrift = time.Hour            // against the time since boot, while running
	maxClockJump  = 400 * 24 * time.Hour // past the last event, at the start
)

// clock gives out the times of events, in order, and says why the wall clock is
// not to be trusted. It is safe for concurrent use.
type clock struct {
	wall func() time.Time
	boot func() time.Duration // time since some moment, suspends included

	mu   sync.Mutex
	last int64 // last time given out, or of the log
	// trusted: an event was stamped since the start, or an operator vouched for
	// the clock, when it showed wall0 and the time since boot was boot0.
	trusted bool
	wall0   time.Time
	boot0   time.Duration
}

func newClock(wall func() time.Time, boot func() time.Duration) *clock {
	// Two readings of the monotonic clock would be compared by that, which no jump of the
	// wall clock moves.
	return &clock{wall: func() time.Time { return wall().Round(0) }, boot: boot}
}

// follow makes times go on behind the log's last event.
func (c *clock) follow(last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, last)
}

// stamp gives out the next time. While the clock is refused time stands still:
// a writer's own control events must not carry a wrong time into the log.
func (c *clock) stamp() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	sound := c.refusalLocked() == nil
	c.last++
	if sound {
		if !c.trusted {
			c.trustLocked()
		}
		c.last = max(c.last, c.wall().UnixNano())
	}
	return c.last
}

// accept has an operator vouch for the clock as it stands now. A clock that stands
// behind the last event is refused all the same: the log's times never go back.
func (c *clock) accept() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.behindLocked(c.wall()); err != nil {
		return err.WithHint("accepting it does not help, for the log's times never go back: set the clock right if it is slow, else wait; writes go on when it shows %s", time.Unix(0, c.last).Add(-maxClockLag).UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	c.trustLocked()
	return nil
}

// behindLocked refuses a clock that stands behind the last event.
func (c *clock) behindLocked(now time.Time) *memory.Error {
	lag := time.Duration(c.last - now.UnixNano())
	if c.last == 0 || lag <= maxClockLag {
		return nil
	}
	err := memory.Errorf(memory.CodeUnavailable, "the clock stands %s behind the last event", lag.Round(time.Second)).
		WithHint("set the clock right; writes go on when it has caught up")
	err.RetryAfter = lag
	return err
}

func (c *clock) trustLocked() { c.wall0, c.boot0, c.trusted = c.wall(), c.boot(), true }

// refusal says why the clock is not to be used; nil if it is.
func (c *clock) refusal() *memory.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusalLocked()
}

func (c *clock) refusalLocked() *memory.Error {
	now := c.wall()
	if err := c.behindLocked(now); err != nil {
		return err
	}
	if !c.trusted {
		if jump := time.Duration(now.UnixNano() - c.last); c.last > 0 && jump > maxClockJump {
			return runaway("the clock stands %d days past the last event", int(jump.Hours()/24))
		}
		return nil
	}
	if drift := now.Sub(c.wall0) - (c.boot() - c.boot0); drift > maxClockDrift {
		return runaway("the clock went forward by %s more than the time since boot", drift.Round(time.Second))
	}
	return nil
}

func runaway(format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeUnavailable, format, args...).
		WithHint("set the clock right; if it is right, memctl clock accept lets writing go on")
}

// processStart carries a reading of the monotonic clock.
var processStart = time.Now()
