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
	// firstTime is before any event's time, 2001-09-09: a log whose last event is older was begun
	// while its writer's clock was not believed yet, when time stands still, and tells nothing.
	firstTime = 1_000_000_000 * int64(time.Second)
	// maxClockApart is how far the clocks of a cluster's nodes may be apart, and how far one
	// may go forward against the time since boot before others have shown the same. It is
	// well below maxClockLag: where one node wrote, the next one writes on.
	maxClockApart = 30 * time.Second
	// compareClockFor is how long a node of several waits for the first comparison before it
	// believes its clock without.
	compareClockFor = 5 * time.Second
)

// Clock is the wall clock of a process, for the writers of all its shards and terms, with
// what is known of how far it can be trusted. It is safe for concurrent use.
type Clock struct {
	wall func() time.Time
	boot func() time.Duration // time since some moment, suspends included

	mu sync.Mutex
	// trusted: an event was stamped since the start, other nodes' clocks showed the same, or
	// an operator vouched for the clock, when it showed wall0 and the time since boot was boot0.
	trusted bool
	wall0   time.Time
	boot0   time.Duration

	among    bool          // the node is one of several
	compare  time.Duration // of the time since boot: until then the first comparison is waited for
	ahead    time.Duration // of most other nodes' clocks; 0 = it is not, as far as is known
	accepted bool          // by an operator, though most other nodes' clocks may show something else
}

// NewClock makes the clock of a process of wall and a clock that no setting of the wall
// clock moves; nil are the system's.
func NewClock(wall func() time.Time, sinceBoot func() time.Duration) *Clock {
	if wall == nil {
		wall = time.Now
	}
	if sinceBoot == nil {
		sinceBoot = timeSinceBoot
	}
	// Two readings of the monotonic clock would be compared by that, which no jump of the
	// wall clock moves.
	return &Clock{wall: func() time.Time { return wall().Round(0) }, boot: sinceBoot}
}

// Among says that the node is one of several, whose clocks are going to be compared.
func (c *Clock) Among() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.among, c.compare = true, c.boot()+compareClockFor
}

// ClockReading is what a node's clock shows, and whether the node has reason to believe it.
type ClockReading struct {
	At    time.Time `json:"at"`
	Sound bool      `json:"sound,omitempty"`
}

// Reading reads the clock.
func (c *Clock) Reading() ClockReading {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.wall()
	return ClockReading{At: now, Sound: c.trusted && c.refusalLocked(now, 0) == nil}
}

// Doubtful reports whether the clock is refused and a comparison may change that.
func (c *Clock) Doubtful() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusalLocked(c.wall(), 0) != nil
}

// OtherClock is by how much this node's clock was ahead of another node's, and whether that
// one was believed.
type OtherClock struct {
	Ahead time.Duration
	Sound bool
}

// Compare takes what the clocks of other nodes showed, of those that answered, in a cluster
// of so many nodes with this one. A clock that shows the time of one that is believed is
// believed; so is one that most nodes' show, if it did not go forward by more than an hour.
// One that is ahead of most of the others is refused until that is so, or an operator
// accepts it.
func (c *Clock) Compare(others []OtherClock, nodes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	agree, behind, sound, least := 1, 0, false, time.Duration(0)
	for _, o := range others {
		switch {
		case o.Ahead > maxClockApart:
			if behind++; least == 0 || o.Ahead < least {
				least = o.Ahead
			}
		case o.Ahead >= -maxClockApart:
			agree++
			sound = sound || o.Sound
		}
	}
	if 2*(len(others)+1) > nodes {
		c.compare = 0
	}
	switch now := c.wall(); {
	case sound, 2*agree > nodes && c.driftLocked(now) <= maxClockDrift:
		c.trustLocked()
		c.ahead, c.accepted = 0, false
	case 2*behind > nodes-1 && !c.accepted:
		c.ahead = least
	}
}

// Refusal says why the clock is not to be used behind an event of the time last; nil if it
// is.
func (c *Clock) Refusal(last int64) *memory.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusalLocked(c.wall(), last)
}

// Wrong is Refusal once there was time for the first comparison: until then there is no reason
// to think that another node's clock is better.
func (c *Clock) Wrong(last int64) *memory.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.among && !c.trusted && c.boot() < c.compare {
		return nil
	}
	return c.refusalLocked(c.wall(), last)
}

// read gives the time, which is believed from then on if it can be.
func (c *Clock) read(last int64) (now int64, sound bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.wall()
	if c.refusalLocked(at, last) != nil {
		return 0, false
	}
	if !c.trusted {
		c.trustLocked()
	}
	return at.UnixNano(), true
}

// accept has an operator vouch for the clock as it stands now. A clock that stands
// behind the last event is refused all the same: the log's times never go back.
func (c *Clock) accept(last int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := behind(c.wall(), last); err != nil {
		return err.WithHint("accepting it does not help, for the log's times never go back: set the clock right if it is slow, else wait; writes go on when it shows %s", time.Unix(0, last).Add(-maxClockLag).UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	c.trustLocked()
	c.ahead, c.accepted, c.compare = 0, true, 0
	return nil
}

// behind refuses a clock that stands behind the last event.
func behind(now time.Time, last int64) *memory.Error {
	lag := time.Duration(last - now.UnixNano())
	if last == 0 || lag <= maxClockLag {
		return nil
	}
	err := memory.Errorf(memory.CodeUnavailable, "the clock stands %s behind the last event", lag.Round(time.Second)).
		WithHint("set the clock right; writes go on when it has caught up")
	err.RetryAfter = lag
	return err
}

func (c *Clock) trustLocked() { c.wall0, c.boot0, c.trusted = c.wall(), c.boot(), true }

// driftLocked is by how much the clock went forward more than the time since boot, since it
// was believed; 0 if it never was.
func (c *Clock) driftLocked(now time.Time) time.Duration {
	if !c.trusted {
		return 0
	}
	return now.Sub(c.wall0) - (c.boot() - c.boot0)
}

func (c *Clock) refusalLocked(now time.Time, last int64) *memory.Error {
	if err := behind(now, last); err != nil {
		return err
	}
	if c.ahead > 0 {
		return runaway("the clock of this node stands %s ahead of those of most other nodes", c.ahead.Round(time.Second))
	}
	if !c.trusted {
		if jump := time.Duration(now.UnixNano() - last); last > firstTime && jump > maxClockJump {
			return runaway("the clock stands %d days past the last event", int(jump.Hours()/24))
		}
		if c.among && c.boot() < c.compare {
			err := memory.Errorf(memory.CodeUnavailable, "the clock of this node was not compared with those of the other nodes yet").WithHint("try again in a moment")
			err.RetryAfter = time.Second
			return err
		}
		return nil
	}
	switch drift := c.driftLocked(now); {
	case drift > maxClockDrift:
		return runaway("the clock went forward by %s more than the time since boot", drift.Round(time.Second))
	case c.among && drift > maxClockApart:
		return runaway("the clock of this node went forward by %s more than the time since boot, and most other nodes' clocks did not", drift.Round(time.Second))
	}
	return nil
}

func runaway(format string, args ...any) *memory.Error {
	return memory.Errorf(memory.CodeUnavailable, format, args...).
		WithHint("set the clock right; if it is right, memctl clock accept lets writing go on")
}

// processStart carries a reading of the monotonic clock.
var processStart = time.Now()

// times gives out the times of a writer's events, in order. It is safe for concurrent use.
type times struct {
	clock *Clock

	mu   sync.Mutex
	last int64 // last time given out, or of the log
}

// follow makes times go on behind the log's last event.
func (t *times) follow(last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, last)
}

// stamp gives out the next time. While the clock is refused time stands still:
// a writer's own control events must not carry a wrong time into the log.
func (t *times) stamp() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, sound := t.clock.read(t.last)
	t.last++
	if sound {
		t.last = max(t.last, now)
	}
	return t.last
}

func (t *times) refusal() *memory.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.Refusal(t.last)
}

func (t *times) accept() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.accept(t.last)
}
