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
	c := newClock(func() time.Time { return at }, func() time.Duration { return boot })
	c.stamp()
	at, boot = at.Add(500*24*time.Hour), 500*24*time.Hour
	if err := c.refusal(); err != nil {
		t.Error(err)
	}
	boot -= 2 * time.Hour
	if c.refusal() == nil {
		t.Error("a jump within a suspend was taken")
	}
}

// A clock that went forward was not noticed: how far was taken from the monotonic readings
// that time.Now has beside the wall clock's. An event with a time of hours ahead then held
// up all writing once the clock was right again.
func TestJumpOfTheSystemClockWasMeasuredByTheMonotonicOne(t *testing.T) {
	c := newClock(time.Now, func() time.Duration { return 0 })
	if now := c.wall(); now != now.Round(0) {
		t.Errorf("the wall clock has a reading of the monotonic one: %v", now)
	}
}
