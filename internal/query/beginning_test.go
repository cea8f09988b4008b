package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/memory"
)

// TestBeginningOfAnID: ids of one time begin alike, so that a beginning names one memory
// among few, and several among many.
func TestBeginningOfAnID(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("other", nil)
	ctx := context.Background()
	capture := func(ns, agent, text string, scope memory.Scope) string {
		return w.Capture(ns, memory.Capture{Agent: agent, Text: text, Scope: scope})[0]
	}
	get := func(as, name string) (string, error) {
		r, err := w.svc.Open(ctx, "team", as, views.Freshness{})
		w.OK(err)
		defer func() { w.OK(r.Close()) }()
		rec, err := r.Get(ctx, name, 0)
		return rec.RecordID, err
	}
	later := func() string { w.Now = w.Now.Add(24 * time.Hour); return "" }

	later()
	first := capture("team", "ann", "the first", "")
	later()
	secret := capture("team", "ann", "ann's own", memory.ScopeAgent)
	capture("other", "ann", "elsewhere", "")
	second := capture("team", "ann", "beside ann's own", "")
	later()
	gone := capture("team", "ann", "forgotten", "")
	w.Forget("team", gone, "ann", events.ScopeTeam)
	later()
	revised := capture("team", "ann", "one", "")
	later()
	w.Revise("team", revised, 1, memory.Capture{Agent: "ann", Text: "two"})

	for _, name := range []string{first[:6], strings.ToLower(first[:9]), first[:25], strings.ToLower(first)} {
		if id, err := get("", name); err != nil || id != first {
			t.Errorf("%s: %s %v", name, id, err)
		}
	}
	if id, err := get("", revised[:8]); err != nil || id != revised {
		t.Errorf("revised: %s %v", id, err)
	}
	// What the reader may not see is as good as not there.
	if second[:6] != secret[:6] || second[:25] == secret[:25] {
		t.Fatalf("%s and %s", second, secret)
	}
	if id, err := get("", second[:6]); err != nil || id != second {
		t.Errorf("beside another's: %s %v", id, err)
	}
	for _, name := range []string{secret, gone[:10], gone[:25], "7ZZZZZ", "000000", first[:5], first[:7] + "l", "mem://team/" + first[:10]} {
		_, err := get("", name)
		wantCode(t, err, memory.CodeNotFound)
	}
	_, err := get("", secret[:25])
	wantCode(t, err, memory.CodeNotFound)
	// Its owner sees both, and is told which they are.
	if id, err := get("ann", secret[:25]); err != nil || id != secret {
		t.Errorf("one's own: %s %v", id, err)
	}
	_, err = get("ann", second[:6])
	wantCode(t, err, memory.CodeInvalid)
	if says := err.Error(); !strings.Contains(says, "2 memories") || !strings.Contains(says, secret) || !strings.Contains(says, second) {
		t.Errorf("of two: %s", says)
	}
	// A uri counts before the beginning of an id.
	named := w.Capture("team", memory.Capture{Agent: "ann", Text: "named", URI: first[:8]})[0]
	if id, err := get("", first[:8]); err != nil || id != named {
		t.Errorf("a uri: %s %v", id, err)
	}
	// History and timeline take one too.
	r := w.reader("team", "")
	if h, err := r.History(ctx, revised[:8]); err != nil || h.RecordID != revised || len(h.Versions) != 2 {
		t.Errorf("history: %+v %v", h, err)
	}
	if tl, err := r.Timeline(ctx, memory.TimelineRequest{ID: first[:9]}); err != nil || tl.Anchor.RecordID != first || len(tl.After) == 0 {
		t.Errorf("timeline: %+v %v", tl, err)
	}
}

func TestBeginningOfManyIDs(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	var ids []string
	for i := range 3 * maxCandidates {
		ids = append(ids, w.One("team", "ann", fmt.Sprint("text ", i)))
	}
	r := w.reader("team", "")
	_, err := r.Get(context.Background(), ids[0][:6], 0)
	wantCode(t, err, memory.CodeInvalid)
	if says := err.Error(); !strings.Contains(says, "more than 8 memories") || strings.Count(says, ids[0][:8]) != maxCandidates {
		t.Error(says)
	}
	for _, id := range ids {
		if rec, err := r.Get(context.Background(), id[:20], 0); err != nil || rec.RecordID != id {
			t.Errorf("%s: %s %v", id[:20], rec.RecordID, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, _, err = r.find(ended, ids[0][:6])
	if err == nil {
		t.Error("a reader that has gone away is answered")
	}
}

// TestIDsOfAllTimes: a beginning may stand for a time that no clock shows.
func TestIDsOfAllTimes(t *testing.T) {
	for _, beginning := range []string{"000000", "01JC2Y", "7ZZZZZ", "7ZZZZZZZZZ", "01JC2Y3K5V8Q0T4W6X7Z9A1B2C"} {
		low, high, err := idRange(beginning)
		if err != nil || low.String() > high.String() || !strings.HasPrefix(low.String(), beginning) || !strings.HasPrefix(high.String(), beginning) {
			t.Errorf("%s: %s to %s, %v", beginning, low, high, err)
		}
		if from, to := sealedAbout(low, -sealingDelay), sealedAbout(high, sealingDelay); from >= to {
			t.Errorf("%s: sealed from %d to %d", beginning, from, to)
		}
	}
}
