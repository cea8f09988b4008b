package views

import (
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/memory"
)

func TestEpochs(t *testing.T) {
	p := Positions{now: events.Position{Epoch: 1 << 30, Seq: 12}, epochs: projections.Epochs{{Epoch: 2, Seq: 4}, {Epoch: 1 << 30, Seq: 9}}}
	for seq, epoch := range map[uint64]string{3: "p0.0.3.0", 4: "p0.2.4.0", 8: "p0.2.8.0", 9: "p0.1073741824.9.0"} {
		if got := p.Of(projections.Ref{Seq: seq}); got != epoch {
			t.Errorf("sequence %d is at %s", seq, got)
		}
	}
	for _, tt := range []struct {
		epoch uint32
		seq   uint64
		code  memory.Code
	}{
		{0, 0, ""}, {0, 3, ""}, {0, 4, memory.CodeLostPosition},
		{1, 3, memory.CodeLostPosition}, {1, 4, memory.CodeLostPosition}, // passed over: it holds nothing
		{2, 3, memory.CodeLostPosition}, {2, 8, ""}, {2, 9, memory.CodeLostPosition}, {2, 99, memory.CodeLostPosition},
		{3, 8, memory.CodeLostPosition}, {3, 9, memory.CodeLostPosition}, // the epoch of another restore
		{1<<30 + 1, 10, memory.CodeLostPosition}, {1<<30 + 1, 12, memory.CodeLostPosition},
		{1 << 30, 12, ""}, {1 << 30, 20, ""}, {1<<30 + 1, 13, memory.CodeStalePosition},
	} {
		err := p.Check(events.Position{Epoch: tt.epoch, Seq: tt.seq})
		if got := memory.CodeOf(err); err == nil && tt.code != "" || err != nil && got != tt.code {
			t.Errorf("sequence %d of epoch %d: %v", tt.seq, tt.epoch, err)
		}
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
