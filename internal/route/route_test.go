package route_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/peer/rpc"
	"mneme/internal/route"
	"mneme/memory"
)

func items(ids ...string) []memory.Capture {
	out := make([]memory.Capture, len(ids))
	for i, id := range ids {
		out[i] = memory.Capture{ID: id, Agent: "x", Text: "text of " + id}
	}
	return out
}

func statuses(resp memory.CaptureResponse) string {
	var out []string
	for _, r := range resp.Results {
		s := string(r.Status)
		if r.Error != nil {
			s += ":" + string(r.Error.Code)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// ids are those of the captures in the log, in order, with the node that wrote them.
func (w *world) ids() string {
	var out []string
	for _, e := range w.entries() {
		out = append(out, e.node+"/"+e.args[1].(memory.Capture).ID)
	}
	return strings.Join(out, " ")
}

// nth is a hook that does something at the n-th capture only.
func nth(n int, f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if n--; n == 0 {
			return f(ctx)
		}
		return nil
	}
}

func TestABatchGoesOnAtTheNextLeaderInOrder(t *testing.T) {
	w, a, b, c := open(t, 20*time.Second)
	w.lead(b)
	gone := false
	b.before = func(ctx context.Context) error { // the third and what follows
		if len(w.entries()) < 2 {
			return nil
		}
		if !gone {
			gone = true
			return b.depose(c, memory.CodeOutcomeUnknown)(ctx)
		}
		return memory.Errorf(memory.CodeUnavailable, "b was deposed")
	}
	resp, err := a.Capture(t.Context(), "ns", items("1", "2", "3", "4", "5"), api.CaptureOptions{Source: []string{"s1", "s2", "s3", "s4", "s5"}}, "")
	if err != nil || statuses(resp) != "created created created created created" || resp.Position != "p0.0.5.0" {
		t.Errorf("%v: %s at %s", err, statuses(resp), resp.Position)
	}
	if got := w.ids(); got != "b/1 b/2 c/3 c/4 c/5" {
		t.Errorf("written: %s", got)
	}
	for i, e := range w.entries() {
		if want := "s" + e.args[1].(memory.Capture).ID; e.args[3] != want {
			t.Errorf("item %d has source %q, want %q", i, e.args[3], want)
		}
	}
}

// What was sent in front of something that is written must not come behind it.
func TestNothingIsSentAgainThatWouldComeTooLate(t *testing.T) {
	w, a, b, c := open(t, 20*time.Second)
	w.lead(b)
	b.before = nth(1, b.depose(c, memory.CodeUnavailable))
	resp, err := a.Capture(t.Context(), "ns", items("1", "2"), api.CaptureOptions{}, "")
	if err != nil || statuses(resp) != "rejected:unavailable created" || w.ids() != "b/2" {
		t.Errorf("%v: %s, written: %s", err, statuses(resp), w.ids())
	}
}

func TestItemsWithoutAnIDAreNotSentAgain(t *testing.T) {
	w, a, b, c := open(t, 20*time.Second)
	w.lead(b)
	b.after = nth(2, b.die(c))
	resp, err := a.Capture(t.Context(), "ns", items("1", "", "3", ""), api.CaptureOptions{}, "")
	if err != nil || statuses(resp) != "duplicate rejected:outcome_unknown created rejected:outcome_unknown" || w.ids() != "b/1 b/ c/3" {
		t.Errorf("%v: %s, written: %s", err, statuses(resp), w.ids())
	}
	if e := resp.Results[1].Error; !strings.Contains(e.Detail, "b at 127.0.0.1:") || e.Hint == "" {
		t.Errorf("item 1 says %+v", e)
	}
}

// After an attempt of which nobody knows the end, a refusal for now says nothing about it.
func TestARefusalDoesNotHideWhatMayHaveHappened(t *testing.T) {
	overloaded := func(context.Context) error { return memory.Errorf(memory.CodeOverloaded, "too much") }
	w, a, b, c := open(t, 20*time.Second)
	w.lead(b)
	b.after, c.before = b.die(c), overloaded
	resp, err := a.Capture(t.Context(), "ns", items("1"), api.CaptureOptions{}, "")
	if err != nil || statuses(resp) != "rejected:outcome_unknown" {
		t.Errorf("a capture: %v: %s", err, statuses(resp))
	}
	w, a, b, c = open(t, 20*time.Second)
	w.lead(b)
	b.after, c.before = b.die(c), overloaded
	if _, err = a.Revise(t.Context(), "ns", "x", "id", memory.Revision{}, 0, "key"); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
		t.Errorf("a revision: %v", err)
	}
}

func TestAnErrorOfTheLeaderKeepsWhatItSays(t *testing.T) {
	w, a, b, _ := open(t, 20*time.Second)
	w.lead(b)
	b.before = func(context.Context) error {
		e := memory.Errorf(memory.CodeUnavailable, "the embedder is away").WithHint("look there")
		e.RetryAfter = 7 * time.Second
		return e
	}
	_, err := a.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "n"})
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeUnavailable || e.Message != "the embedder is away" || e.Hint != "look there" || e.RetryAfter != 7*time.Second {
		t.Errorf("got %+v", err)
	}
	b.before = func(context.Context) error { return context.DeadlineExceeded }
	if _, err = a.DeleteNamespace(t.Context(), "n"); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
		t.Errorf("a write that was cut short at the leader: %v", err)
	}
}

// A node that leads and cannot write, for a reason that waiting does not change, says so
// at once. A follower's trouble is its own.
func TestTheTroubleOfTheLeaderIsTheAnswer(t *testing.T) {
	w, a, b, _ := open(t, 20*time.Second)
	w.lead(b)
	b.open, b.why = false, memory.Errorf(memory.CodeLogDiverged, "log and state disagree")
	a.why = memory.Errorf(memory.CodeNoSpace, "a is full")
	if _, err := a.Forget(t.Context(), "ns", "x", "id", 0); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("got %v", err)
	}
}

// A leader that refuses for a while and stays the leader is not asked again and again.
func TestARefusalOfTheNodeThatLeadsIsTheAnswer(t *testing.T) {
	w, a, b, _ := open(t, 20*time.Second)
	w.lead(b)
	b.before = func(context.Context) error {
		return memory.Errorf(memory.CodeUnavailable, "the log does not answer")
	}
	for _, node := range []*member{a, b} {
		b.asked = nil
		if _, err := node.Forget(t.Context(), "ns", "x", "id", 0); memory.CodeOf(err) != memory.CodeUnavailable || err.Error() != "the log does not answer" || len(b.asked) != 1 {
			t.Errorf("at %s: %v after %d calls", node.name, err, len(b.asked))
		}
	}
	resp, err := a.Capture(t.Context(), "ns", items("1"), api.CaptureOptions{}, "")
	if err != nil || statuses(resp) != "rejected:unavailable" {
		t.Errorf("a capture: %v %s", err, statuses(resp))
	}
}

func TestNobodyLeads(t *testing.T) {
	w, a, b, _ := open(t, 200*time.Millisecond)
	_, err := a.Capture(t.Context(), "ns", items(""), api.CaptureOptions{}, "")
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeUnavailable || e.Hint == "" || e.RetryAfter == 0 {
		t.Errorf("got %+v", err)
	}
	w.lead(b)
	_ = b.port.Close()
	_, err = a.Forget(t.Context(), "ns", "x", "id", 0)
	if memory.CodeOf(err) != memory.CodeUnavailable || !errors.Is(err, rpc.ErrNotReached) || !strings.Contains(err.Error(), "b at 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = a.Forget(gone, "ns", "x", "id", 0); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a call that was given up before anybody saw it: %v", err)
	}
}

// A node that is paused holds its connections: those who wait find out that another one
// leads.
func TestAPausedLeaderIsNotWaitedFor(t *testing.T) {
	w, a, b, c := open(t, 20*time.Second)
	w.lead(b)
	b.before = func(ctx context.Context) error {
		w.lead(c)
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := a.Capture(ctx, "ns", items("1"), api.CaptureOptions{}, "")
	if err != nil || statuses(resp) != "created" || w.ids() != "c/1" {
		t.Errorf("%v: %s, written: %s", err, statuses(resp), w.ids())
	}
}

func TestTheCallersDeadlineTravels(t *testing.T) {
	w, a, b, _ := open(t, 20*time.Second)
	w.lead(b)
	const within = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	b.before = func(ctx context.Context) error {
		if at, ok := ctx.Deadline(); !ok || time.Until(at) > within || time.Until(at) < within/2 {
			t.Errorf("the leader has until %v, %v", at, ok)
		}
		return nil
	}
	if _, err := a.Forget(ctx, "ns", "x", "id", 0); err != nil {
		t.Error(err)
	}
	seen := make(chan struct{})
	b.before = func(ctx context.Context) error {
		cancel()
		<-ctx.Done() // so the leader knows that nobody waits
		close(seen)
		return ctx.Err()
	}
	if _, err := a.Capture(ctx, "ns", items("1"), api.CaptureOptions{}, ""); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
		t.Errorf("a caller that has gone: %v", err)
	}
	<-seen
	b.before = nil
	if resp, err := a.Capture(t.Context(), "ns", items("1"), api.CaptureOptions{}, ""); err != nil || statuses(resp) != "created" {
		t.Errorf("the same id again: %v %s", err, statuses(resp))
	}
}

// A call that came from another node ends here, whatever this node knows of the leader.
func TestAForwardedCallIsNotForwardedAgain(t *testing.T) {
	w, a, b, c := open(t, 300*time.Millisecond)
	w.lead(c)
	a.leader = b
	_, err := a.Forget(t.Context(), "ns", "x", "id", 0)
	if memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(err.Error(), "b at") || !strings.Contains(err.Error(), "c at") || len(c.asked) > 0 {
		t.Errorf("got %v; the leader was asked %v", err, c.asked)
	}
}

func TestALeaderOfAnotherVersionSaysSo(t *testing.T) {
	w, a, b, _ := open(t, 20*time.Second)
	w.lead(b)
	b.kill()
	s, err := rpc.Serve(b.port, route.ServiceOf(0), map[string]rpc.Method{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.server = s
	_, err = a.Forget(t.Context(), "ns", "x", "id", 0)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeUnavailable || !strings.Contains(e.Hint, "versions") {
		t.Errorf("got %+v", err)
	}
}

func TestLinearizableReadsWaitForTheLeadersPosition(t *testing.T) {
	w, a, b, c := open(t, 20*time.Second)
	w.lead(b)
	if err := a.Linear(t.Context()); err != nil || len(a.reached) != 1 || a.reached[0] != "p0.0.7.0" {
		t.Errorf("%v: %v", err, a.reached)
	}
	// One that leads no more, and has not noticed, cannot confirm it.
	b.position = func(context.Context) (string, error) {
		w.lead(c)
		return "", errors.New("not the leader")
	}
	c.position = func(context.Context) (string, error) { return "p0.0.9.0", nil }
	if err := a.Linear(t.Context()); err != nil || len(a.reached) != 2 || a.reached[1] != "p0.0.9.0" {
		t.Errorf("%v: %v", err, a.reached)
	}
	// One that dies is followed by the next.
	w.lead(b)
	b.position = func(ctx context.Context) (string, error) { return "", b.die(c)(ctx) }
	if err := a.Linear(t.Context()); err != nil || len(a.reached) != 3 {
		t.Errorf("%v: %v", err, a.reached)
	}
	if err := c.Linear(t.Context()); err != nil || len(c.reached) != 1 {
		t.Errorf("on the leader: %v: %v", err, c.reached)
	}
}

func TestALinearizableReadIsBounded(t *testing.T) {
	w, a, b, _ := open(t, 200*time.Millisecond)
	check := func(what string) {
		t.Helper()
		err := a.Linear(t.Context())
		if e := memory.AsError(err); e == nil || e.Code != memory.CodeUnavailable || e.Hint == "" || len(a.reached) > 0 {
			t.Errorf("%s: %+v, %v", what, err, a.reached)
		}
	}
	check("nobody leads")
	w.lead(b)
	b.position = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	check("the leader cannot confirm it")
	_ = b.port.Close()
	check("the leader is away")
	b.kill()
}

// Reads that come while the leader is asked share the next question, and never the one
// that was asked before they came.
func TestLinearizableReadsShareAQuestion(t *testing.T) {
	w, a, b, _ := open(t, 20*time.Second)
	w.lead(b)
	asked, answer := make(chan struct{}), make(chan string)
	b.position = func(context.Context) (string, error) {
		asked <- struct{}{}
		return <-answer, nil
	}
	const many = 20
	first, rest := make(chan error, 1), make(chan error, many)
	go func() { first <- a.Linear(t.Context()) }()
	<-asked
	for range many {
		go func() { rest <- a.Linear(t.Context()) }()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Linear(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	answer <- "p0.0.7.0"
	if err := <-first; err != nil {
		t.Error(err)
	}
	<-asked // each of the others came before this or takes part in the one after it
	answer <- "p0.0.8.0"
	served := 0
	for served < many {
		select {
		case err := <-rest:
			if err != nil {
				t.Error(err)
			}
			served++
		case <-asked:
			answer <- "p0.0.9.0"
		}
	}
	firsts := 0
	for _, at := range a.reached {
		if at == "p0.0.7.0" {
			firsts++
		}
	}
	if firsts != 1 || len(a.reached) != many+1 {
		t.Errorf("%d of %d reads took the answer to a question from before they came: %v", firsts-1, many, a.reached)
	}
}

// BenchmarkForwarded is what a call to the node that leads costs both nodes together.
func BenchmarkForwarded(b *testing.B) {
	w, a, lead, _ := open(b, 20*time.Second)
	w.lead(lead)
	batch := items(make([]string, 100)...)
	for i := range batch {
		batch[i].Text = strings.Repeat("some words of a memory ", 10)
	}
	b.Run("position", func(b *testing.B) {
		for b.Loop() {
			if err := a.Linear(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("positions at once", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := a.Linear(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("100 captures", func(b *testing.B) {
		for b.Loop() {
			if _, err := a.Capture(b.Context(), "ns", batch, api.CaptureOptions{}, ""); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestHeldCallsKeptOthersAway: as many captures that waited for vectors as there are connections
// to the node that leads kept everybody's writes and fresh reads waiting.
func TestHeldCallsKeptOthersAway(t *testing.T) {
	w, a, b, _ := open(t, 5*time.Second)
	w.lead(b)
	var here atomic.Int32
	all, gate := make(chan struct{}), make(chan struct{})
	b.before = func(ctx context.Context) error {
		if n := here.Add(1); n > rpc.MaxConnections {
			return nil // one of the others
		} else if n == rpc.MaxConnections {
			close(all)
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return nil
	}
	var held sync.WaitGroup
	for i := range rpc.MaxConnections {
		held.Go(func() {
			if _, err := a.Capture(t.Context(), "n", []memory.Capture{{ID: fmt.Sprint("held-", i), Text: "x"}}, api.CaptureOptions{}, memory.WaitSearchable); err != nil {
				t.Error(err)
			}
		})
	}
	<-all
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := a.Capture(ctx, "n", []memory.Capture{{ID: "short", Text: "x"}}, api.CaptureOptions{}, memory.WaitApplied); err != nil {
		t.Errorf("a write: %v", err)
	}
	if err := a.Linear(ctx); err != nil {
		t.Errorf("a fresh read: %v", err)
	}
	close(gate)
	held.Wait()
}
