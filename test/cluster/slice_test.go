package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mneme/internal/derive"
	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/replica"
	"mneme/internal/settings"
	"mneme/memory"
)

// The node that leads everything is gone, twice, under writes: what was acknowledged
// is there once, in order, on every replica, and is what the log folds to.
func TestLeaderGoneLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	_, w, err := s.writer(ctx)
	must(t, err)
	_, err = w.CreateNamespace(ctx, "team", nil, builtinSpace(t))
	must(t, err)
	const rounds, each = 2, 40
	acked := map[string]memory.CaptureResult{}
	n := 0
	more := func(count int) {
		for range count {
			id := fmt.Sprintf("c%03d", n)
			res, _, err := s.capture(ctx, id, fmt.Sprintf("memory %d", n))
			must(t, err)
			acked[id] = res
			n++
		}
	}
	for range rounds {
		more(each)
		lead, _, err := s.writer(ctx)
		must(t, err)
		began := time.Now()
		lead.stop()
		res, attempts, err := s.capture(ctx, fmt.Sprintf("c%03d", n), fmt.Sprintf("memory %d", n))
		must(t, err)
		acked[fmt.Sprintf("c%03d", n)] = res
		n++
		t.Logf("without %s, which led: written after %v, at attempt %d", lead.name, time.Since(began).Round(time.Millisecond), attempts)
		more(each)
		must(t, lead.start(false))
	}
	// Each id again is the record that was acknowledged.
	for id, want := range acked {
		var i int
		_, err := fmt.Sscanf(id, "c%d", &i)
		must(t, err)
		got, _, err := s.capture(ctx, id, fmt.Sprintf("memory %d", i))
		if err != nil || got.Status != memory.StatusDuplicate || got.RecordID != want.RecordID || got.Position != want.Position {
			t.Errorf("%s again: %+v %v, was %+v", id, got, err, want)
		}
	}
	s.same(ctx)
}

// same waits until every replica stands where the leader does, and compares each with
// what the log folds to.
func (s *site) same(ctx context.Context) {
	s.t.Helper()
	lead, _, err := s.writer(ctx)
	must(s.t, err)
	index, err := lead.rep.Group().LinearizableIndex(ctx)
	must(s.t, err)
	want, at := s.fold(ctx, lead.stream)
	for _, b := range s.boxes {
		must(s.t, b.rep.Group().WaitApplied(ctx, index))
		v := b.rep.State().View()
		if got, cur := v.Hash().String(), v.Cursor(); got != want || cur.Seq != at.Seq || cur.Chain != at.Chain {
			s.t.Errorf("%s is %s at %d, the log folds to %s at %d", b.name, got, cur.Seq, want, at.Seq)
		}
		must(s.t, v.Close())
	}
}

// fold derives the whole log into an empty state.
func (s *site) fold(ctx context.Context, log eventlog.Stream) (string, projections.Cursor) {
	s.t.Helper()
	st, err := projections.Open(projections.Options{Dir: filepath.Join(s.t.TempDir(), "state")})
	must(s.t, err)
	v := st.View()
	d, err := derive.New(s.keys, v)
	must(s.t, errors.Join(err, v.Close()))
	_, err = ingest.Replay(ctx, log, st, d, 0, func(r *projections.Range) error {
		res, err := st.ApplyLocal(r)
		return errors.Join(err, replica.Continued(r, res))
	})
	v = st.View()
	hash, at := v.Hash().String(), v.Cursor()
	must(s.t, errors.Join(err, v.Close(), st.Close()))
	return hash, at
}

func builtinSpace(t testing.TB) string {
	t.Helper()
	e, err := embed.Open(t.Context(), embed.Config{}, embed.Options{})
	must(t, err)
	defer e.Close()
	return settings.EncodeSpace(e.Space())
}
