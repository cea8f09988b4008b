package ingest

import (
	"strings"
	"testing"
	"time"

	"mneme/internal/eventlog/eventlogtest"
	"mneme/memory"
)

// One write under a clock that was years ahead held up all writing until real
// time had caught up, restarts included. Such a clock is refused while the node
// runs, and at its start, until an operator accepts it.
func TestRunawayClockIsRefused(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	at, boot := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Duration(0)
	right := at
	w.now = func() time.Time { return at }
	w.boot = func() time.Duration { return boot }
	w.mustStart()
	w.namespace("team-a")
	w.capture("team-a", memory.Capture{Text: "before"})
	refused := func(when string) {
		t.Helper()
		before := w.last()
		_, err := w.try("team-a", memory.Capture{Text: "x"})
		if e := wantCode(t, err, memory.CodeUnavailable); e.Hint == "" {
			t.Errorf("%s: no hint", when)
		}
		if w.last() != before {
			t.Errorf("%s: something was written", when)
		}
	}
	accept := func() {
		t.Helper()
		if err := w.writer.AcceptClock(); err != nil {
			t.Error(err)
		}
	}
	at = right.Add(59 * time.Minute)
	w.capture("team-a", memory.Capture{Text: "a little ahead"})
	at = right.AddDate(10, 0, 0)
	refused("ten years ahead")
	boot = 2 * time.Hour
	at = right.Add(2 * time.Hour)
	w.capture("team-a", memory.Capture{Text: "set right again"})
	at = right.AddDate(10, 0, 0)
	w.stop()
	w.mustStart() // what it writes itself must not carry the wrong time
	if sealed := w.state.Cursor().SealedAt; sealed > right.AddDate(0, 0, 1).UnixNano() {
		t.Fatalf("the term began at %v", time.Unix(0, sealed).UTC())
	}
	refused("ten years past the last event, at the start")
	w.stop()
	at = right.Add(3 * time.Hour)
	w.mustStart()
	w.capture("team-a", memory.Capture{Text: "the right clock is not held up"})
	w.stop()
	at = right.AddDate(10, 0, 0)
	w.mustStart()
	refused("again")
	accept()
	w.capture("team-a", memory.Capture{Text: "accepted"})
	at = at.Add(2 * time.Hour)
	refused("two hours more than the time since boot")
	accept()
	w.capture("team-a", memory.Capture{Text: "accepted again"})
	w.refold()
}

// TestClockThatIsBehindWasAccepted: memctl clock accept said that writing goes on,
// and every write was refused. That it vouched for the clock made things worse: set
// right, the clock had then gone forward by more than the time since boot.
func TestClockThatIsBehindWasAccepted(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	right := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := right
	w.now = func() time.Time { return at }
	w.boot = func() time.Duration { return 0 }
	w.mustStart()
	w.namespace("team-a")
	w.capture("team-a", memory.Capture{Text: "before"})
	w.stop()
	at = right.Add(-2 * time.Hour)
	w.mustStart()
	if e := wantCode(t, w.writer.AcceptClock(), memory.CodeUnavailable); !strings.Contains(e.Hint, "when it shows 2026-03-01 11:59:00 UTC") || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	_, err := w.try("team-a", memory.Capture{Text: "x"})
	wantCode(t, err, memory.CodeUnavailable)
	at = right
	w.capture("team-a", memory.Capture{Text: "set right"})
}

// A suspended machine has a clock that went on and a time since boot that did, too.
func TestClockAfterASuspend(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	boot := time.Duration(0)
	c := NewClock(func() time.Time { return at }, func() time.Duration { return boot })
	c.read(0)
	at, boot = at.Add(500*24*time.Hour), 500*24*time.Hour
	if err := c.Refusal(0); err != nil {
		t.Error(err)
	}
	boot -= 2 * time.Hour
	if c.Refusal(0) == nil {
		t.Error("a jump within a suspend was taken")
	}
}

// A clock that went forward was not noticed: how far was taken from the monotonic readings
// that time.Now has beside the wall clock's. An event with a time of hours ahead then held
// up all writing once the clock was right again.
func TestJumpOfTheSystemClockWasMeasuredByTheMonotonicOne(t *testing.T) {
	c := NewClock(time.Now, func() time.Duration { return 0 })
	if now := c.wall(); now != now.Round(0) {
		t.Errorf("the wall clock has a reading of the monotonic one: %v", now)
	}
}

// A clock that ran ahead was refused in the term in which it ran, and trusted by the next
// one: after a hand-over, an election or a repair the times of the log ran ahead of all
// clocks.
func TestNextTermTrustedAClockThatRanAhead(t *testing.T) {
	w := newWorld(t, eventlogtest.NewFake())
	right := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := right
	w.now = func() time.Time { return at }
	w.clock = NewClock(w.now, func() time.Duration { return 0 })
	w.mustStart()
	w.namespace("team-a")
	w.capture("team-a", memory.Capture{Text: "before"})
	at = right.Add(3 * time.Hour)
	for range 2 {
		_, err := w.try("team-a", memory.Capture{Text: "x"})
		wantCode(t, err, memory.CodeUnavailable)
		w.stop()
		w.mustStart()
	}
	if sealed := w.state.Cursor().SealedAt; sealed > right.Add(time.Minute).UnixNano() {
		t.Errorf("a term began at %v", time.Unix(0, sealed).UTC())
	}
	at = right.Add(time.Second)
	w.capture("team-a", memory.Capture{Text: "set right"})
}

// What other nodes' clocks show decides over one that went forward by less than an hour, or
// stood wrong from the start.
func TestClockIsComparedWithThoseOfOtherNodes(t *testing.T) {
	is := func(ahead time.Duration) OtherClock { return OtherClock{Ahead: ahead} }
	believed := func(ahead time.Duration) OtherClock { return OtherClock{Ahead: ahead, Sound: true} }
	const jump = 10 * time.Minute
	for name, c := range map[string]struct {
		trusted time.Duration // by how much the clock went forward since it was believed; -1 = it never was
		nodes   int
		others  []OtherClock
		refused bool
	}{
		"all show the same":                         {-1, 3, []OtherClock{is(0), is(time.Second)}, false},
		"it starts ahead":                           {-1, 3, []OtherClock{is(jump), is(jump)}, true},
		"it starts ahead of one, one is silent":     {-1, 3, []OtherClock{is(jump)}, false},
		"it starts ahead of one of two":             {-1, 3, []OtherClock{is(jump), is(0)}, false},
		"it starts behind":                          {-1, 3, []OtherClock{is(-jump), is(-jump)}, false},
		"it starts a little ahead":                  {-1, 3, []OtherClock{is(20 * time.Second), is(20 * time.Second)}, false},
		"it starts ahead of two of four":            {-1, 5, []OtherClock{is(jump), is(jump), is(0), is(0)}, false},
		"it starts ahead of three of four":          {-1, 5, []OtherClock{is(jump), is(jump), is(jump), is(0)}, true},
		"it went forward":                           {jump, 3, []OtherClock{is(jump), is(jump)}, true},
		"it went forward, one is silent":            {jump, 3, []OtherClock{is(jump)}, true},
		"it went forward, nobody answers":           {jump, 3, nil, true},
		"it went forward, so did another one":       {jump, 3, []OtherClock{is(0), is(jump)}, false},
		"it went forward, so did one of four":       {jump, 5, []OtherClock{is(0), is(jump), is(jump)}, true},
		"it went forward a little":                  {20 * time.Second, 3, nil, false},
		"it went forward by hours, so did all":      {3 * time.Hour, 3, []OtherClock{is(0), is(0)}, true},
		"it went forward by hours to a sound one":   {3 * time.Hour, 3, []OtherClock{believed(0)}, false},
		"it went forward by hours from a sound one": {3 * time.Hour, 3, []OtherClock{believed(3 * time.Hour)}, true},
	} {
		right := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		at := right
		clock := NewClock(func() time.Time { return at }, func() time.Duration { return 0 })
		clock.Among()
		if clock.Refusal(0) == nil {
			t.Errorf("%s: believed before it was compared", name)
		}
		if c.trusted >= 0 {
			clock.Compare([]OtherClock{is(0), is(0), is(0), is(0)}[:c.nodes-1], c.nodes)
			if err := clock.Refusal(0); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			at = right.Add(c.trusted)
		}
		clock.Compare(c.others, c.nodes)
		err := clock.Refusal(0)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err := clock.accept(0); err != nil {
			t.Error(err)
		}
		clock.Compare(c.others, c.nodes)
		if err := clock.Refusal(0); err != nil {
			t.Errorf("%s: once it was accepted: %v", name, err)
		}
		if c.refused {
			at = right
			clock.Compare([]OtherClock{is(0), is(0), is(0), is(0)}[:c.nodes-1], c.nodes)
			if err := clock.Refusal(0); err != nil {
				t.Errorf("%s: set right: %v", name, err)
			}
		}
	}
}

// A node of several that nobody answers believes its clock after a while.
func TestComparisonOfClocksIsNotWaitedForForEver(t *testing.T) {
	boot := time.Duration(0)
	c := NewClock(time.Now, func() time.Duration { return boot })
	c.Among()
	c.Compare(nil, 3)
	if err := c.Refusal(0); err == nil || err.RetryAfter == 0 {
		t.Errorf("%+v", err)
	}
	if boot = compareClockFor; c.Refusal(0) != nil {
		t.Error("nobody answers, and the clock is refused for ever")
	}
}

// The first term of a cluster began while the clock was not compared yet, with a time that
// stood still at its beginning: behind that every clock seemed to have run away.
func TestLogThatBeganWithoutATimeTellsNothing(t *testing.T) {
	boot := time.Duration(0)
	c := NewClock(func() time.Time { return time.Unix(1_800_000_000, 0) }, func() time.Duration { return boot })
	c.Among()
	began := times{clock: c}
	last := began.stamp()
	if c.Refusal(last) == nil || c.Wrong(last) != nil {
		t.Errorf("not compared yet: refused with %v, wrong by %v", c.Refusal(last), c.Wrong(last))
	}
	boot = compareClockFor + time.Second
	if err := c.Refusal(last); err != nil {
		t.Errorf("behind an event of %v: %v", time.Unix(0, last).UTC(), err)
	}
}
