package views

import (
	"testing"
	"time"
)

func TestBuildersStepBackForWriters(t *testing.T) {
	at := time.Unix(1000, 0)
	p := &pace{now: func() time.Time { return at }}
	run := func(perWindow, windows int) {
		for range windows {
			p.applied(perWindow)
			at = at.Add(paceWindow)
		}
	}
	if d := p.rest(); d != 0 {
		t.Fatalf("idle: %v", d)
	}
	run(50, 3) // 100/s
	if d := p.rest(); d != 0 {
		t.Fatalf("quiet writes: %v", d)
	}
	run(200, 3)
	if d := p.rest(); d != restBusy {
		t.Fatalf("busy writes: %v", d)
	}
	run(2000, 3)
	if d := p.rest(); d != restFlood {
		t.Fatalf("a flood: %v", d)
	}
	at = at.Add(10 * time.Second)
	if d := p.rest(); d != 0 {
		t.Fatalf("after the flood: %v", d)
	}
	p.load(true)
	if d := p.rest(); d != restFlood {
		t.Fatalf("loading: %v", d)
	}
	p.load(false)
	at = at.Add(-time.Hour) // the clock jumps back
	if d := p.rest(); d != 0 {
		t.Fatalf("after a jump: %v", d)
	}
}
