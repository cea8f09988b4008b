package views

import (
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/vector"
)

func TestEpochs(t *testing.T) {
	p := Positions{starts: []uint64{1, 4, 4, 9}}
	if got := p.epoch(4); got != 2 {
		t.Errorf("sequence 4 lies in epoch %d", got)
	}
	if err := p.Check(events.Position{}); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no state")
	}
	w := newWorld(t)
	if _, err := New(Options{State: w.State, Keys: w.Keys, Settings: w.Settings, Vector: vector.Options{Engine: "odd"}}); err == nil {
		t.Error("odd engine")
	}
}
