package ingest

import (
	"context"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// TestLevels: a level is raised once, by an event that a replay follows, and what this
// program does not know is not raised.
func TestLevels(t *testing.T) {
	w := startWorld(t)
	ctx := context.Background()
	if got := Level(w.writer); got != events.BaseLevel {
		t.Fatalf("a new log begins at level %d", got)
	}
	if got, err := RaiseLevel(ctx, w.writer, events.FeatureLevel); err != nil || got != events.FeatureLevel {
		t.Fatalf("level %d, %v", got, err)
	}
	written := w.writer.Counters().Events.Load()
	for _, again := range []uint16{events.FeatureLevel, events.BaseLevel, 0} {
		if got, err := RaiseLevel(ctx, w.writer, again); err != nil || got != events.FeatureLevel {
			t.Errorf("raised to %d again: level %d, %v", again, got, err)
		}
	}
	_, err := RaiseLevel(ctx, w.writer, events.FeatureLevel+1)
	wantCode(t, err, memory.CodeInvalid)
	if got := w.writer.Counters().Events.Load(); got != written {
		t.Errorf("%d events were written for nothing", got-written)
	}
	w.capture("team-a", memory.Capture{Text: "goes on"})
	w.refold()
}

// TestLevelsAboveAreNotWritten: what needs a level that was not raised is refused, and
// nothing of it reaches the log, also where it comes with what may be written.
func TestLevelsAboveAreNotWritten(t *testing.T) {
	header := func(home uint16) *draft {
		return newDraft(events.Header{Type: events.TypeCaptured, Home: home})
	}
	raise := newDraft(events.Header{Type: events.TypeLevelRaised})
	raise.payload = events.EncodeLevel(events.FeatureLevel)
	homeLevel := uint16(events.BaseLevel)
	for name, c := range map[string]struct {
		drafts  []*draft
		allowed uint16
		refused bool
	}{
		"plain":             {[]*draft{header(0)}, homeLevel - 1, false},
		"at the level":      {[]*draft{header(0), header(1)}, homeLevel, false},
		"above it":          {[]*draft{header(0), header(1)}, homeLevel - 1, true},
		"a raise":           {[]*draft{raise, header(0)}, homeLevel - 1, false},
		"a raise and above": {[]*draft{raise, header(1)}, homeLevel - 1, true},
	} {
		f := &frame{drafts: c.drafts}
		for _, d := range c.drafts {
			e := events.Envelope{Header: d.header, Payload: d.payload}
			f.encoded = append(f.encoded, e.Encode())
		}
		err := above(f, c.allowed)
		if (err != nil) != c.refused || err != nil && memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnUnknownLevelIsNoVerdict: a payload that no program wrote changes nothing.
func TestAnUnknownLevelIsNoVerdict(t *testing.T) {
	w := startWorld(t)
	d := newDraft(events.Header{Type: events.TypeLevelRaised, Event: w.writer.ids.New()})
	d.payload = []byte("odd")
	if res, err := w.writer.submit(context.Background(), d); err == nil || res.Outcome == projections.OutcomeApplied {
		t.Errorf("%+v, %v", res, err)
	}
	if got := Level(w.writer); got != events.BaseLevel {
		t.Errorf("level %d", got)
	}
	w.refold()
}
