package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// led is a group that hands over where it is told to.
type led struct {
	leads func() bool
	to    []string
}

func (g *led) Leads() bool { return g.leads() }
func (g *led) TransferTo(_ context.Context, id string) error {
	g.to = append(g.to, id)
	return nil
}

// A leader that cannot reach the log gives the leadership away where that helps, and only
// there: an election of the log's servers looks the same for a second.
func TestLeaderWithoutItsLogHandsOver(t *testing.T) {
	unreached := errors.New("no answer")
	for name, c := range map[string]struct {
		leads, reaches, others []bool // one for each look
		handed                 []int  // the looks that hand over
	}{
		"all is well":               {[]bool{true, true, true}, []bool{true, true, true}, []bool{true, true, true}, nil},
		"an election":               {[]bool{true, true, true, true}, []bool{false, false, false, true}, []bool{false, false, false, false}, nil},
		"one answer lost":           {[]bool{true, true, true, true}, []bool{false, true, false, true}, []bool{true, true, true, true}, nil},
		"cut off from the log":      {[]bool{true, true, true, true}, []bool{false, false, false, false}, []bool{true, true, true, true}, []int{1, 3}},
		"others reach it later":     {[]bool{true, true, true, true}, []bool{false, false, false, false}, []bool{false, false, false, true}, []int{3}},
		"it does not lead":          {[]bool{false, false, false}, []bool{false, false, false}, []bool{true, true, true}, nil},
		"it led only for a moment":  {[]bool{true, false, true, false}, []bool{false, false, false, false}, []bool{true, true, true, true}, nil},
		"it leads since a look ago": {[]bool{false, true, true}, []bool{false, false, false}, []bool{true, true, true}, []int{2}},
	} {
		var handed []int
		at := 0
		shard := &led{leads: func() bool { return c.leads[at] }}
		w := leadWatch{log: slog.New(slog.DiscardHandler), groups: []ledGroup{shard}, unfit: func() error { return nil },
			reach: func(context.Context) (string, error) {
				if c.reaches[at] {
					return "", nil
				}
				return "", unreached
			},
			heir: func(context.Context) string {
				if c.others[at] {
					return "n2"
				}
				return ""
			}}
		for at = range c.leads {
			before := len(shard.to)
			if w.look(t.Context()); len(shard.to) > before {
				handed = append(handed, at)
			}
		}
		if !slices.Equal(handed, c.handed) {
			t.Errorf("%s: handed over at looks %v, want %v", name, handed, c.handed)
		}
	}
}

// A node that is not fit to lead gives away whatever it leads, as soon as another one is
// fit.
func TestUnfitNodeLeadsNothing(t *testing.T) {
	var unfit error
	heir := ""
	leads := map[string]bool{"shard": true, "keys": true}
	shard, keys := &led{leads: func() bool { return leads["shard"] }}, &led{leads: func() bool { return leads["keys"] }}
	w := leadWatch{log: slog.New(slog.DiscardHandler), groups: []ledGroup{shard, keys}, unfit: func() error { return unfit },
		reach: func(context.Context) (string, error) { return "", nil }, heir: func(context.Context) string { return heir }}
	look := func(shardTo, keysTo int) {
		t.Helper()
		w.look(t.Context())
		if len(shard.to) != shardTo || len(keys.to) != keysTo {
			t.Errorf("%+v %+v, want %d and %d transfers", shard, keys, shardTo, keysTo)
		}
	}
	look(0, 0)
	unfit = errors.New("full")
	look(0, 0) // nobody else is fit
	heir = "n2"
	look(1, 1)
	leads["shard"] = false
	look(1, 2)
	leads["keys"] = false
	look(1, 2)
	unfit = nil
	look(1, 2)
}

// The log is led by the node that leads the shard, unless that has changed a moment ago.
func TestLogIsDrawnToTheNodeThatLeadsTheShard(t *testing.T) {
	leads, leader, drawn := true, "n2", 0
	fails := errors.New("its copy is not whole")
	w := leadWatch{self: "n1", log: slog.New(slog.DiscardHandler), groups: []ledGroup{&led{leads: func() bool { return leads }}}, unfit: func() error { return nil },
		reach: func(context.Context) (string, error) { return leader, nil },
		draw:  func(context.Context) error { drawn++; return fails }}
	look := func(times, want int) {
		t.Helper()
		for range times {
			w.look(t.Context())
		}
		if drawn != want {
			t.Errorf("drawn %d times, want %d", drawn, want)
		}
	}
	look(drawAfter-1, 0)
	leader = "n1"
	look(1, 0)
	leader = "n2"
	look(drawAfter-1, 0)
	leads = false
	look(2*drawAfter, 0)
	leads = true
	look(drawAfter-1, 0)
	look(1, 1)
	look(drawAfter, 2) // it could not be drawn the first time
}
