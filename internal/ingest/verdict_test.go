package ingest

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/memory"
)

// drive answers the rig while f waits for what it asked for.
func (g *rig) drive(f func()) {
	g.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for {
		g.run()
		select {
		case <-done:
			return
		case <-g.w.queue.wake:
		case <-tick.C:
		}
	}
}

// doubted is a request that the state alone answers, wholly or in part.
type doubted struct {
	name   string
	ask    func() error
	code   memory.Code // of the answer of who leads; "" = it is no refusal
	answer string      // part of it
}

// answeredByState are the requests to a writer that its state answers, by method. what else is exported
// writes what it was asked for, or answers nothing of the state.
func answeredByState(t *testing.T, g *rig) map[string][]doubted {
	one := func(c memory.Capture) error {
		c.Agent = "agent-1"
		resp, err := g.w.Capture(t.Context(), "team-a", []Item{{Capture: c}}, memory.WaitApplied)
		if err != nil || resp.Results[0].Error == nil {
			return err
		}
		return memory.Errorf(resp.Results[0].Error.Code, "%s", resp.Results[0].Error.Detail)
	}
	var records []string
	g.drive(func() {
		resp, err := g.w.Capture(t.Context(), "team-a", []Item{
			{Capture: memory.Capture{Agent: "agent-1", ID: "k", Text: "one", URI: "notes/one"}},
			{Capture: memory.Capture{Agent: "agent-1", Text: "two", URI: "notes/two", Subject: "ada"}},
			{Capture: memory.Capture{Agent: "agent-1", Text: "three", Subject: "eve"}},
		}, memory.WaitApplied)
		if err != nil {
			t.Error(err)
			return
		}
		for _, r := range resp.Results {
			records = append(records, r.RecordID)
		}
		if _, err := g.w.Erasing().Erase(t.Context(), "team-a", "eve"); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	absent := g.w.ids.New().String()
	text, uri := "another text", "notes/one"
	revise := func(ns, id string, rev memory.Revision, ifMatch int, client string) func() error {
		return func() error {
			_, err := g.w.Revise(t.Context(), ns, "agent-1", id, rev, ifMatch, client)
			return err
		}
	}
	forget := func(ns, id string, ifMatch int) func() error {
		return func() error { _, err := g.w.Forget(t.Context(), ns, "agent-1", id, ifMatch); return err }
	}
	none := "there is no"
	return map[string][]doubted{
		"Capture": {
			{"a namespace that is not there", func() error {
				_, err := g.w.Capture(t.Context(), "team-b", []Item{{Capture: memory.Capture{Agent: "a", Text: "x"}}}, memory.WaitApplied)
				return err
			}, memory.CodeNotFound, none},
			{"a uri that is taken", func() error { return one(memory.Capture{Text: "x", URI: uri}) }, memory.CodeConflict, "names a living memory"},
			{"an id that was used for it", func() error { return one(memory.Capture{Text: "one", ID: "k", URI: uri}) }, "", ""},
			{"an id that was used for another", func() error { return one(memory.Capture{Text: "x", ID: "k"}) }, memory.CodeConflict, "was used"},
			{"derived from what is not there", func() error { return one(memory.Capture{Text: "x", DerivedFrom: []string{absent}}) }, memory.CodeInvalid, none},
			{"derived from what was erased", func() error { return one(memory.Capture{Text: "x", DerivedFrom: []string{records[2]}}) }, memory.CodeGone, "erased"},
		},
		"Revise": {
			{"a namespace that is not there", revise("team-b", records[0], memory.Revision{Text: &text}, 0, ""), memory.CodeNotFound, none},
			{"a record that is not there", revise("team-a", absent, memory.Revision{Text: &text}, 0, ""), memory.CodeNotFound, none},
			{"a record that was erased", revise("team-a", records[2], memory.Revision{Text: &text}, 0, ""), memory.CodeGone, "erased"},
			{"another version", revise("team-a", records[0], memory.Revision{Text: &text}, 7, ""), memory.CodeConflict, "version 1"},
			{"a uri that is taken", revise("team-a", records[1], memory.Revision{URI: &uri}, 0, ""), memory.CodeConflict, "another living memory"},
			{"an id that was used for another", revise("team-a", records[1], memory.Revision{Text: &text}, 0, "k"), memory.CodeConflict, "was used"},
			{"derived from what is not there", revise("team-a", records[0], memory.Revision{DerivedFrom: &[]string{absent}}, 0, ""), memory.CodeInvalid, none},
		},
		"Forget": {
			{"a namespace that is not there", forget("team-b", records[0], 0), memory.CodeNotFound, none},
			{"a record that is not there", forget("team-a", absent, 0), memory.CodeNotFound, none},
			{"another version", forget("team-a", records[0], 7), memory.CodeConflict, "version 1"},
		},
		"CreateNamespace": {{"a name that is taken", func() error {
			_, err := g.w.CreateNamespace(t.Context(), "team-a", nil, "")
			return err
		}, memory.CodeConflict, "exists already"}},
		"ChangeNamespace": {{"a name that nothing has", func() error {
			_, err := g.w.ChangeNamespace(t.Context(), "team-b", memory.PatchNamespace{})
			return err
		}, memory.CodeNotFound, none}},
		"DeleteNamespace": {{"a name that nothing has", func() error {
			_, _, err := g.w.DeleteNamespace(t.Context(), "team-b")
			return err
		}, memory.CodeNotFound, none}},
		"BuildSpace": {{"a name that nothing has", func() error {
			_, err := g.w.BuildSpace(t.Context(), "team-b", embed.Space{Provider: "builtin", Model: "m", Dimensions: 8})
			return err
		}, memory.CodeNotFound, none}},
		"CancelSpace": {
			{"a name that nothing has", func() error { return g.w.CancelSpace(t.Context(), "team-b") }, memory.CodeNotFound, none},
			{"a space that is not built", func() error { return g.w.CancelSpace(t.Context(), "team-a") }, memory.CodeConflict, "is not changing"},
		},
		"Erase": {
			{"a name that nothing has", func() error { _, err := g.w.Erasing().Erase(t.Context(), "team-b", "ada"); return err }, memory.CodeNotFound, none},
			{"a subject that is not known", func() error { _, err := g.w.Erasing().Erase(t.Context(), "team-a", "bob"); return err }, memory.CodeNotFound, "knows no such"},
			{"a subject that was erased", func() error { _, err := g.w.Erasing().Erase(t.Context(), "team-a", "eve"); return err }, "", ""},
		},
	}
}

// noAnswers are the other exported methods of a writer: they tell no client anything of the state.
var noAnswers = []string{
	"Abandon", "AcceptClock", "Check", "Close", "Counters", "Diverged", "Ended", "Err", "Erasing", "Pause", "QueueDepth", "SetDiverged", "Settled", "Settling", "Term",
	"DestroyEnded", "EndNamespace", "TellKeys", "Settle",
}

// A leader that had stood still, and was deposed, answered by its state of the past what
// was so no more: that a version is another one, that a name or a uri is taken, that
// something is not there. Whatever the state alone answers is told once the leadership was
// confirmed, and only then.
func TestDeposedLeaderRefusedByAStateOfThePast(t *testing.T) {
	g := opening(t, 1)
	var asked, frames atomic.Int64
	answers := answeredByState(t, g)
	for _, of := range []any{g.w, g.w.Erasing(), g.w.Settling()} {
		for m := range reflect.TypeOf(of).Methods() {
			if _, listed := answers[m.Name]; listed == slices.Contains(noAnswers, m.Name) {
				t.Errorf("%s: either its answers that rest on the state are listed here, or it is one of noAnswers", m.Name)
			}
		}
	}
	over := errors.New("another one leads")
	for method, list := range answers {
		for _, d := range list {
			t.Run(method+"/"+d.name, func(t *testing.T) {
				var err error
				frames.Store(int64(len(g.log)))
				asked.Store(0)
				g.w.opt.Current = func(context.Context) error { asked.Add(1); return over }
				g.drive(func() { err = d.ask() })
				if memory.CodeOf(err) != memory.CodeUnavailable || !errors.Is(err, ErrUnconfirmed) || !errors.Is(err, over) {
					t.Errorf("who leads no more says %v (%s)", err, memory.CodeOf(err))
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("asked %d times whether it leads", n)
				}
				asked.Store(0)
				g.w.opt.Current = func(context.Context) error { asked.Add(1); return nil }
				g.drive(func() { err = d.ask() })
				if memory.CodeOf(err) != d.code || err != nil && !strings.Contains(err.Error(), d.answer) {
					t.Errorf("who leads says %v (%s)", err, memory.CodeOf(err))
				}
				if n := asked.Load(); n == 0 {
					t.Error("who leads was not asked whether it does")
				}
				if len(g.log) != int(frames.Load()) {
					t.Error("something was written")
				}
			})
		}
	}
	// What is written asks nothing.
	asked.Store(0)
	g.w.opt.Current = func(context.Context) error { asked.Add(1); return over }
	g.drive(func() {
		resp, err := g.w.Capture(t.Context(), "team-a", []Item{{Capture: memory.Capture{Agent: "agent-1", ID: "new", Text: "x", URI: "notes/new"}}}, memory.WaitApplied)
		if err != nil || resp.Results[0].Status != memory.StatusCreated {
			t.Errorf("%+v, %v", resp, err)
		}
	})
	if asked.Load() != 0 {
		t.Error("a capture that was written asked who leads")
	}
}

// A batch in which the state alone answers some items asks once who leads. What was written of
// it is told all the same, and of the rest that nothing was written.
func TestBatchAsksOnceWhoLeads(t *testing.T) {
	g := opening(t, 1)
	batch := func(ids ...string) (resp memory.CaptureResponse, err error) {
		var items []Item
		for _, id := range ids {
			items = append(items, Item{Capture: memory.Capture{Agent: "agent-1", ID: id, Text: "text of " + id}})
		}
		g.drive(func() { resp, err = g.w.Capture(t.Context(), "team-a", items, memory.WaitApplied) })
		return resp, err
	}
	if _, err := batch("a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	g.w.opt.Current = func(context.Context) error { asked.Add(1); return nil }
	if resp, err := batch("a", "b", "c", "d"); err != nil || asked.Load() != 1 ||
		resp.Results[0].Status != memory.StatusDuplicate || resp.Results[2].Status != memory.StatusDuplicate || resp.Results[3].Status != memory.StatusCreated {
		t.Errorf("asked %d times: %+v, %v", asked.Load(), resp, err)
	}
	g.w.opt.Current = func(context.Context) error { return errors.New("another one leads") }
	resp, err := batch("a", "e")
	if err != nil || resp.Results[0].Error == nil || resp.Results[0].Error.Code != memory.CodeUnavailable || resp.Results[1].Status != memory.StatusCreated {
		t.Errorf("%+v, %v", resp, err)
	}
}

// What the state tells once the leadership is confirmed is what counts.
func TestConfirmedAsksTheStateAgain(t *testing.T) {
	g := opening(t, 1)
	calls := 0
	g.w.opt.Current = func(context.Context) error { return nil }
	got, err := Confirmed(t.Context(), g.w, func(sure bool) (int, error) {
		if calls++; !sure {
			return 0, staleBase("r", 1)
		}
		return calls, nil
	})
	if got != 2 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	g.w.opt.Current = func(ctx context.Context) error { return ctx.Err() }
	_, err = Confirmed(over, g.w, func(bool) (int, error) { return 0, staleBase("r", 1) })
	if memory.CodeOf(err) != memory.CodeTimeout || !errors.Is(err, ErrUnconfirmed) || !errors.Is(err, context.Canceled) {
		t.Errorf("out of time: %v", err)
	}
}

// Whoever reads what became of a draft in another place than answers would tell what
// nobody has confirmed.
func TestOnlyAnswersTellsWhatBecameOfADraft(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	// By function: of a draft's fields and methods what they may use.
	allowed := map[string][]string{
		"answers": {"wait", "result", "byState"}, // the one place
		"finish":  {"result", "err"}, "decided": {"byState", "finish"}, "wait": {"err"},
		"sequence": {"decided"}, "applied": {"finish"}, "finishAll": {"finish"},
		"isUntoldLocked": {"err"}, // whether an event has to be told again
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				// Drafts are called d in this package.
				if of, ok := s.X.(*ast.Ident); !ok || of.Name != "d" && !strings.HasPrefix(of.Name, "draft") {
					return true
				}
				if slices.Contains([]string{"wait", "result", "err", "byState", "finish", "decided"}, s.Sel.Name) && !slices.Contains(allowed[f.Name.Name], s.Sel.Name) {
					t.Errorf("%s: %s uses %s of a draft: what became of it is told by answers, which confirms what the state alone decided", set.Position(s.Pos()), f.Name.Name, s.Sel.Name)
				}
				return true
			})
		}
	}
}
