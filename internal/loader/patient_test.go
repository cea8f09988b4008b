package loader

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// busyNode is overloaded so often, and then takes everything.
type busyNode struct {
	busy, asked int
	err         error // of each answer then
}

func (b *busyNode) answer() error {
	if b.asked++; b.asked <= b.busy {
		return memory.Errorf(memory.CodeOverloaded, "busy")
	}
	return b.err
}

func (b *busyNode) Namespace(context.Context, string) (memory.Namespace, error) {
	return memory.Namespace{}, b.answer()
}
func (b *busyNode) CreateNamespace(context.Context, memory.CreateNamespace) (memory.Namespace, error) {
	return memory.Namespace{}, b.answer()
}
func (b *busyNode) CaptureBatch(context.Context, string, []memory.Capture, client.CaptureOptions) (memory.CaptureResponse, error) {
	return memory.CaptureResponse{}, b.answer()
}
func (b *busyNode) List(context.Context, string, client.ListOptions) (memory.RecordList, error) {
	return memory.RecordList{}, b.answer()
}
func (b *busyNode) Get(context.Context, string, string, client.GetOptions) (memory.Record, error) {
	return memory.Record{}, b.answer()
}
func (b *busyNode) Revise(context.Context, string, string, memory.Revision, client.WriteOptions) (memory.RevisionResponse, error) {
	return memory.RevisionResponse{}, b.answer()
}
func (b *busyNode) Forget(context.Context, string, string, client.WriteOptions) (memory.ForgetResponse, error) {
	return memory.ForgetResponse{}, b.answer()
}
func (b *busyNode) Audit(context.Context, string, client.AuditOptions) (memory.AuditPage, error) {
	return memory.AuditPage{}, b.answer()
}
func (b *busyNode) History(context.Context, string, string, client.ReadOptions) (memory.History, error) {
	return memory.History{}, b.answer()
}
func (b *busyNode) ChangeGraph(context.Context, string, memory.GraphChange) (memory.GraphChanged, error) {
	return memory.GraphChanged{}, b.answer()
}
func (b *busyNode) ReadGraph(context.Context, string, memory.GraphRequest, client.ReadOptions) (memory.Graph, error) {
	return memory.Graph{}, b.answer()
}

// TestEveryCallIsPatient: a call that is added to Node must not be forgotten.
func TestEveryCallIsPatient(t *testing.T) {
	ended := errors.New("ended")
	calls := reflect.TypeFor[Node]()
	for i := range calls.NumMethod() {
		m := calls.Method(i)
		call := func(busy int, slept error) (asked int, err error) {
			b := &busyNode{busy: busy}
			n := Patient(b, func(context.Context, time.Duration) error { return slept })
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			for a := 1; a < m.Type.NumIn(); a++ {
				args = append(args, reflect.Zero(m.Type.In(a)))
			}
			err, _ = reflect.ValueOf(n).MethodByName(m.Name).Call(args)[1].Interface().(error)
			return b.asked, err
		}
		tries := maxAttempts
		if m.Name == "CaptureBatch" { // its sender is patient, of what was not taken
			tries = 1
		}
		if asked, err := call(tries-1, nil); err != nil || asked != tries {
			t.Errorf("%s: asked %d times: %v", m.Name, asked, err)
		}
		if asked, err := call(tries, nil); memory.CodeOf(err) != memory.CodeOverloaded || asked != tries {
			t.Errorf("%s: asked %d times: %v", m.Name, asked, err)
		}
		if asked, err := call(1, ended); tries > 1 && (!errors.Is(err, ended) || asked != 1) {
			t.Errorf("%s goes on though it is to end: asked %d times: %v", m.Name, asked, err)
		}
	}
	if Patient(nil, nil) != nil {
		t.Error("no node is one")
	}
}

// busyOnce refuses the first revision and the first forget.
type busyOnce struct {
	*fakeNode
	revised, forgot bool
}

func (n *busyOnce) Revise(ctx context.Context, ns, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error) {
	if !n.revised {
		n.revised = true
		return memory.RevisionResponse{}, memory.Errorf(memory.CodeOverloaded, "busy")
	}
	return n.fakeNode.Revise(ctx, ns, id, rev, opts)
}

func (n *busyOnce) Forget(ctx context.Context, ns, id string, opts client.WriteOptions) (memory.ForgetResponse, error) {
	if !n.forgot {
		n.forgot = true
		return memory.ForgetResponse{}, memory.Errorf(memory.CodeOverloaded, "busy")
	}
	return n.fakeNode.Forget(ctx, ns, id, opts)
}

// One refusal of a busy node ended an import that revised, and a prune half-way.
func TestABusyNodeEndedRevisionsAndPrunes(t *testing.T) {
	n := &busyOnce{fakeNode: newFakeNode()}
	dir := folder(t, map[string]string{"a.md": "# One\nfirst\n\n# Two\nsecond\n"})
	n.loaded(t, nil, dir)
	put(t, filepath.Join(dir, "a.md"), "# One\nfirst, and more\n")
	sum, said, err := loadInto(t, n, prune, dir)
	if err != nil || sum.Totals().Updated != 1 || sum.Namespaces[0].Pruned != 1 || !n.revised || !n.forgot {
		t.Errorf("%+v, %v: %s", sum.Totals(), err, said)
	}
}

// TestAProxysNotFoundPassedForForgotten: a take-back counted what nobody forgot.
func TestAProxysNotFoundPassedForForgotten(t *testing.T) {
	for _, code := range []memory.Code{memory.CodeNotFound, memory.CodeGone, memory.CodeConflict, memory.CodeForbidden, memory.CodeInvalid, memory.CodeTooLarge} {
		b := &busyNode{err: memory.Errorf(code, "http://node:8787 answered 404 Not Found").WithHint("is that a memnode?").WithCause(client.ErrForeign)}
		bar := Bar{Report: func(memory.Progress) { t.Errorf("%s: it is told as forgotten", code) }, Finish: func() {}}
		n := Patient(b, func(context.Context, time.Duration) error { return nil })
		err := Forget(t.Context(), n, "team-a", "a", []memory.Record{{RecordID: "x"}}, bar)
		if memory.CodeOf(err) != memory.CodeUnavailable || !errors.Is(err, client.ErrForeign) || memory.AsError(err).Hint != "is that a memnode?" || b.asked != 1 {
			t.Errorf("%s: asked %d times: %v", code, b.asked, err)
		}
	}
	for _, code := range []memory.Code{memory.CodeUnauthenticated, memory.CodeTimeout, memory.CodeOverloaded} { // what is to be done is the same
		b := &busyNode{err: memory.Errorf(code, "http://node:8787 answered").WithCause(client.ErrForeign)}
		n := Patient(b, func(context.Context, time.Duration) error { return nil })
		if _, err := n.Get(t.Context(), "team-a", "x", client.GetOptions{}); memory.CodeOf(err) != code || (b.asked > 1) != (code == memory.CodeOverloaded) {
			t.Errorf("%s: asked %d times: %v", code, b.asked, err)
		}
	}
	b := &busyNode{err: memory.Errorf(memory.CodeNotFound, "there is no record x")}
	if err := Forget(t.Context(), Patient(b, nil), "team-a", "a", []memory.Record{{RecordID: "x"}}, Bar{func(memory.Progress) {}, func() {}}); err != nil {
		t.Errorf("the node's own word: %v", err)
	}
}
