package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
)

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
		w := logWatch{log: slog.New(slog.DiscardHandler), leads: func() bool { return c.leads[at] },
			reach: func(context.Context) error {
				if c.reaches[at] {
					return nil
				}
				return unreached
			},
			others:   func(context.Context) bool { return c.others[at] },
			handOver: func(context.Context) error { handed = append(handed, at); return nil }}
		for at = range c.leads {
			w.look(t.Context())
		}
		if !slices.Equal(handed, c.handed) {
			t.Errorf("%s: handed over at looks %v, want %v", name, handed, c.handed)
		}
	}
}
