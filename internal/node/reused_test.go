package node

import (
	"context"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/memory"
)

// A name that was deleted and made again showed what the deleted namespace held, for as
// long as its shard took no writes.
func TestReusedNameStartsEmpty(t *testing.T) {
	n := open(t, sharded(t.TempDir(), 2))
	makes(t, n, "amber") // on shard 1
	makes(t, n, "birch") // on shard 0
	if s, known := n.home("amber"); !known || s.id != 1 {
		t.Fatal("it is not on shard 1")
	}
	w, err := n.served[1].replica.Writer()
	if err != nil {
		t.Fatal(err)
	}
	resume, err := w.Pause(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	old := idOf(t, n, "amber")
	short := func(f func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f(ctx); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
			t.Errorf("a shard that takes no writes: %v", err)
		}
	}
	short(func(ctx context.Context) error { _, err := n.changes.DeleteNamespace(ctx, "amber"); return err })
	if _, err := n.reads.List(t.Context(), memory.Access{Namespace: "amber"}, memory.ListRequest{}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("what was deleted: %v", err)
	}
	short(func(ctx context.Context) error {
		_, err := n.changes.CreateNamespace(ctx, memory.CreateNamespace{Name: "amber"})
		return err
	})
	at := n.served[1].stands()
	for _, a := range []memory.Access{{}, {Consistency: memory.ConsistencyLinearizable}, {AtLeast: at}} {
		a.Namespace = "amber"
		if r, err := n.reads.List(t.Context(), a, memory.ListRequest{}); memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("%+v: %+v, %v", a, r, err)
		}
	}
	if r, err := n.reads.Search(t.Context(), memory.Access{Namespace: "amber"}, memory.SearchRequest{Query: "memory"}); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("search: %+v, %v", r, err)
	}
	list, err := n.reads.Namespaces(t.Context(), memory.NamespacesRequest{})
	for _, ns := range list.Namespaces {
		if ns.ID == old.String() || ns.Name == "amber" && ns.Records != 0 {
			t.Errorf("listed: %+v", ns)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// The leader of a shard whose directory lagged said that there is no such namespace of one
// that lives there.
func TestLeaderWhoseDirectoryLagsDeniesNothing(t *testing.T) {
	t.Parallel()
	tr := newTrioOf(t, 2)
	lead := tr.leaderOf(0)
	tr.moves(1, lead)
	lag, other := (lead+1)%3, (lead+2)%3
	behind := &tr.nodes[lag].served[0].lag
	behind.mu.Lock()
	behind.patience = time.Hour // else it gives away what it leads
	behind.mu.Unlock()
	if err := tr.nodes[lag].served[0].replica.Group().(interface{ Close() error }).Close(); err != nil {
		t.Fatal(err)
	}
	makes(t, tr.nodes[lead], "amber")
	captured(t, tr.nodes[other], "amber", "more")
	tr.moves(1, lag)
	_, err := tr.nodes[lag].changes.Capture(t.Context(), "amber", []memory.Capture{{Agent: "tester", ID: "x", Text: "after"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a namespace that lives: %v", err)
	}
}
