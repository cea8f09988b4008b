package ingest

import (
	"fmt"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
)

// shorter has looks at the log show no more than its first frame, as long as lies are left.
func shorter(g *rig, lies *int) {
	g.leader, g.passing = "n2", 6*time.Second
	g.read = func(log [][]byte) [][]byte {
		if *lies == 0 {
			return log
		}
		*lies--
		return log[:1]
	}
}

// A leader of the log that was just elected, or is none any more, tells less than there is,
// and names itself. The writer took that for a log that lost its end, and writes stayed
// stopped until somebody repaired what was whole.
func TestLeaderThatKnowsLessStoppedWrites(t *testing.T) {
	s := opening(t, 1).site
	g, lies := &rig{site: s}, 5
	g.begin(2)
	shorter(g, &lies)
	g.run()
	if g.opened != 1 || g.stopped != nil || lies != 0 {
		t.Errorf("opened %d times, stopped: %v, %d lies left", g.opened, g.stopped, lies)
	}
	// The same while a frame is under way, whose acknowledgement is lost.
	lies = 5
	g.append = func(f sendFrame) error {
		g.append = nil
		if err := g.honest(f); err != nil {
			t.Fatal(err)
		}
		return eventlog.ErrUnknown
	}
	d := g.send("k", "one")
	g.run()
	g.outcome(d, projections.OutcomeCreated)
	if g.stopped != nil || lies != 0 {
		t.Errorf("stopped: %v, %d lies left", g.stopped, lies)
	}
}

// What one leader goes on to tell is so. Answers of several count for each of them, and
// time in which nobody was asked hardly counts.
func TestLogThatStaysShorterStopsWrites(t *testing.T) {
	for _, tc := range []struct {
		name   string
		leader func(look int) string
		lies   int
		stops  bool
	}{
		{"one leader", func(int) string { return "n2" }, 1000, true},
		{"leaders that change", func(look int) string { return fmt.Sprint("n", look) }, 100, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := opening(t, 1).site
			g, lies, looks := &rig{site: s}, tc.lies, 0
			g.begin(2)
			shorter(g, &lies)
			read := g.read
			g.read = func(log [][]byte) [][]byte {
				looks++
				g.leader = tc.leader(looks)
				return read(log)
			}
			g.run()
			if tc.stops && (g.stopped == nil || g.stopped.Kind != eventlog.KindSuffixLost || g.now < 6*time.Second) {
				t.Errorf("after %v and %d looks: %v", g.now, looks, g.stopped)
			}
			if !tc.stops && (g.stopped != nil || g.opened != 1) {
				t.Errorf("opened %d times, stopped: %v", g.opened, g.stopped)
			}
		})
	}
	s := opening(t, 1).site
	g, lies := &rig{site: s}, 2
	g.begin(2)
	shorter(g, &lies)
	for range 2 { // answers an hour apart, of a machine that slept
		q := g.reads[0]
		g.reads = g.reads[1:]
		g.step(g.look(q))
		g.now += time.Hour
		g.step(work{})
	}
	g.run()
	if g.opened != 1 || g.stopped != nil {
		t.Errorf("opened %d times, stopped: %v", g.opened, g.stopped)
	}
}
