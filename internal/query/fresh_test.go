package query

import (
	"context"
	"errors"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

func (w *world) authorize(f Freshness) error {
	w.t.Helper()
	r, err := w.svc.Authorize(context.Background(), "team", "", f)
	if err == nil {
		w.ok(r.Close())
	}
	return err
}

func TestPositions(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", nil) // 1
	w.one("team", "ann", "a")
	w.one("team", "ann", "b")       // 3
	w.began(events.TypeEpochBegan)  // 4, epoch 1
	id := w.one("team", "ann", "c") // 5
	r := w.reader("team", "")
	if r.Position() != "p0.1.5.0" || r.Capability().Namespace() != "team" || r.Capability().Agent() != "" {
		t.Errorf("position %s, capability %+v", r.Position(), r.Capability())
	}
	rec, err := r.Get(context.Background(), id, 0)
	w.ok(err)
	if rec.Position != "p0.1.5.0" {
		t.Errorf("record at %s", rec.Position)
	}
	page, err := r.Audit(context.Background(), AuditRequest{})
	w.ok(err)
	if page.Rows[2].Position != "p0.0.3.0" || page.Rows[3].Position != "p0.1.4.0" || page.Rows[3].Type != "epoch.began" {
		t.Errorf("%+v", page.Rows)
	}
	for at, code := range map[string]memory.Code{
		"p0.0.1.0": "", "p0.0.3.7": "", "p0.1.5.0": "", "p0.1.4.0": "",
		"p0.0.4.0": memory.CodeLostPosition, "p0.0.5.0": memory.CodeLostPosition,
		"p0.1.6.0": memory.CodeStalePosition, "p0.2.1.0": memory.CodeStalePosition,
		"p1.1.5.0": memory.CodeInvalid, "5": memory.CodeInvalid, "p0.1.05.0": memory.CodeInvalid,
	} {
		if got := memory.CodeOf(w.authorize(Freshness{AtLeast: at, Wait: time.Millisecond})); got != code {
			t.Errorf("%s: %q, want %q", at, got, code)
		}
	}
	if got := (epochs{1, 4, 4, 9}).of(4); got != 2 {
		t.Errorf("sequence 4 lies in epoch %d", got)
	}
	if err := (epochs{1}).check(events.Position{}, events.Position{}); err != nil {
		t.Error(err)
	}
}

func TestAtLeastWaits(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", nil)
	done := make(chan error, 1)
	go func() {
		r, err := w.svc.Authorize(context.Background(), "team", "", Freshness{AtLeast: "p0.0.3.0", Wait: time.Minute})
		if err == nil {
			if r.Position() != "p0.0.3.0" {
				err = errors.New("served at " + r.Position())
			}
			err = errors.Join(err, r.Close())
		}
		done <- err
	}()
	w.one("team", "ann", "a")
	w.one("team", "ann", "b")
	w.ok(<-done)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.svc.Authorize(ctx, "team", "", Freshness{AtLeast: "p0.0.9.0"})
	wantCode(t, err, memory.CodeTimeout)
	ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = w.svc.Authorize(ctx, "team", "", Freshness{AtLeast: "p0.0.9.0"})
	wantCode(t, err, memory.CodeStalePosition)
	go func() { done <- w.authorize(Freshness{AtLeast: "p0.0.9.0", Wait: time.Minute}) }()
	w.ok(w.svc.Close())
	wantCode(t, <-done, memory.CodeUnavailable)
	wantCode(t, w.svc.Load(context.Background()), memory.CodeUnavailable)
}

func TestLinearizable(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", nil)
	strict := Freshness{Consistency: memory.ConsistencyLinearizable}
	wantCode(t, w.authorize(strict), memory.CodeUnavailable)
	var answer error
	asked := 0
	w.svc.opt.Linear = func(context.Context) error { asked++; return answer }
	w.ok(w.authorize(strict))
	w.ok(w.authorize(Freshness{Consistency: memory.ConsistencyLocal}))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	answer = errors.New("no leader")
	wantCode(t, w.authorize(strict), memory.CodeUnavailable)
	answer = memory.Errorf(memory.CodeTimeout, "late")
	wantCode(t, w.authorize(strict), memory.CodeTimeout)
	wantCode(t, w.authorize(Freshness{Consistency: "odd"}), memory.CodeInvalid)
}

func TestAuthorizeRefuses(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", nil)
	ctx := context.Background()
	for _, c := range []struct {
		ns, as string
		code   memory.Code
	}{{"none", "", memory.CodeNotFound}, {"", "", memory.CodeInvalid}, {"Team", "", memory.CodeInvalid}, {"team", "Ann", memory.CodeInvalid}} {
		_, err := w.svc.Authorize(ctx, c.ns, c.as, Freshness{})
		wantCode(t, err, c.code)
	}
	w.ok(w.keys.DestroyNamespace(w.space["team"])) // its deletion is under way
	wantCode(t, w.authorize(Freshness{}), memory.CodeNotFound)
}

func TestZeroCapabilityOpensNothing(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", nil)
	v := w.state.View()
	defer v.Close()
	var c Capability
	if parts := c.partitions(v); len(parts) != 0 {
		t.Errorf("%v", parts)
	}
	for _, scope := range []events.Scope{events.ScopeNone, events.ScopeTeam, events.ScopeAgent} {
		if c.sees(scope, "") {
			t.Errorf("sees scope %d", scope)
		}
	}
	if c.mayAudit(zeroID, &projections.AuditRow{Type: events.TypeLeaderBegan}) {
		t.Error("sees system rows")
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no state")
	}
	w := newWorld(t)
	if _, err := New(Options{State: w.state, Keys: w.keys, Book: w.book, Engine: "odd"}); err == nil {
		t.Error("odd engine")
	}
}
