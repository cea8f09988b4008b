package query

import (
	"context"
	"errors"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/memory"
)

func (w *world) open(f views.Freshness) error {
	w.T.Helper()
	r, err := w.svc.Open(context.Background(), "team", "", f)
	if err == nil {
		w.OK(r.Close())
	}
	return err
}

func TestPositions(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil) // 1
	w.One("team", "ann", "a")
	w.One("team", "ann", "b")       // 3
	w.Began(events.TypeEpochBegan)  // 4, epoch 1
	id := w.One("team", "ann", "c") // 5
	r := w.reader("team", "")
	if r.Position() != "p0.1.5.0" || r.view.Capability.Namespace() != "team" || r.view.Capability.Agent() != "" {
		t.Errorf("position %s, capability %+v", r.Position(), r.view.Capability)
	}
	rec, err := r.Get(context.Background(), id, 0)
	w.OK(err)
	if rec.Position != "p0.1.5.0" {
		t.Errorf("record at %s", rec.Position)
	}
	page, err := r.Audit(context.Background(), memory.AuditRequest{})
	w.OK(err)
	if page.Rows[2].Position != "p0.0.3.0" || page.Rows[3].Position != "p0.1.4.0" || page.Rows[3].Type != "epoch.began" {
		t.Errorf("%+v", page.Rows)
	}
	for at, code := range map[string]memory.Code{
		"p0.0.1.0": "", "p0.0.3.7": "", "p0.1.5.0": "", "p0.1.4.0": "",
		"p0.0.4.0": memory.CodeLostPosition, "p0.0.5.0": memory.CodeLostPosition, "p0.0.900.0": memory.CodeLostPosition,
		"p0.1.6.0": memory.CodeStalePosition, "p0.2.6.0": memory.CodeStalePosition, "p0.2.1.0": memory.CodeLostPosition,
		"p1.1.5.0": memory.CodeInvalid, "5": memory.CodeInvalid, "p0.1.05.0": memory.CodeInvalid,
	} {
		if got := memory.CodeOf(w.open(views.Freshness{AtLeast: at, Wait: time.Millisecond})); got != code {
			t.Errorf("%s: %q, want %q", at, got, code)
		}
	}
}

func TestAtLeastWaits(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	done := make(chan error, 1)
	go func() {
		r, err := w.svc.Open(context.Background(), "team", "", views.Freshness{AtLeast: "p0.0.3.0", Wait: time.Minute})
		if err == nil {
			if r.Position() != "p0.0.3.0" {
				err = errors.New("served at " + r.Position())
			}
			err = errors.Join(err, r.Close())
		}
		done <- err
	}()
	w.One("team", "ann", "a")
	w.One("team", "ann", "b")
	w.OK(<-done)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.svc.Open(ctx, "team", "", views.Freshness{AtLeast: "p0.0.9.0"})
	wantCode(t, err, memory.CodeTimeout)
	ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = w.svc.Open(ctx, "team", "", views.Freshness{AtLeast: "p0.0.9.0"})
	wantCode(t, err, memory.CodeStalePosition)
	go func() { done <- w.open(views.Freshness{AtLeast: "p0.0.9.0", Wait: time.Minute}) }()
	w.OK(w.views.Close())
	wantCode(t, <-done, memory.CodeUnavailable)
	wantCode(t, w.views.Load(context.Background()), memory.CodeUnavailable)
}

func TestLinearizable(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	strict := views.Freshness{Consistency: memory.ConsistencyLinearizable}
	wantCode(t, w.open(strict), memory.CodeUnavailable)
	var answer error
	asked := 0
	w.restart(func(o *options) { o.views.Linear = func(context.Context) error { asked++; return answer } })
	w.OK(w.open(strict))
	w.OK(w.open(views.Freshness{Consistency: memory.ConsistencyLocal}))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	answer = errors.New("no leader")
	wantCode(t, w.open(strict), memory.CodeUnavailable)
	answer = memory.Errorf(memory.CodeTimeout, "late")
	wantCode(t, w.open(strict), memory.CodeTimeout)
	wantCode(t, w.open(views.Freshness{Consistency: "odd"}), memory.CodeInvalid)
}

func TestOpenRefuses(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	ctx := context.Background()
	for _, c := range []struct {
		ns, as string
		code   memory.Code
	}{{"none", "", memory.CodeNotFound}, {"", "", memory.CodeInvalid}, {"Team", "", memory.CodeInvalid}, {"team", "Ann", memory.CodeInvalid}} {
		_, err := w.svc.Open(ctx, c.ns, c.as, views.Freshness{})
		wantCode(t, err, c.code)
	}
	w.OK(w.Keys.DestroyNamespace(w.Space["team"])) // its deletion is under way
	wantCode(t, w.open(views.Freshness{}), memory.CodeNotFound)
}
