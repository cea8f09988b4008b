package hooks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mneme/internal/project"
	"mneme/memory"
)

// choices are the namespaces of places, by folder.
type choices map[string]func() (string, error)

func is(ns string) func() (string, error)    { return func() (string, error) { return ns, nil } }
func fails(err error) func() (string, error) { return func() (string, error) { return "", err } }

// at is a runner in a folder whose namespace is not known.
func (w *world) at(dir string, of choices) *Runner {
	r := w.runner("a")
	r.Namespace, r.Place = "", &project.Seen{Dir: dir}
	r.Choose = func(_ context.Context, place project.Seen) (string, error) { return of[place.Dir]() }
	return r
}

// says is a whole hook, and its block.
func (r *Runner) says(t *testing.T, session, prompt string) (block string) {
	t.Helper()
	e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(toJSON(map[string]string{"session_id": session, "prompt": prompt})))
	if err != nil {
		t.Fatal(err)
	}
	r.Keep(t.Context(), &e)
	block = r.Recall(t.Context(), &e)
	r.Send(t.Context())
	return block
}

var errUndecided = Undecided{memory.Errorf(memory.CodeConflict, "two fit").WithHint("decide")}

// TestAHookWithoutANamespaceKeptNothing while the node could not be asked. It goes to the namespace that its
// place has when it is sent.
func TestAHookWithoutANamespaceKeptNothing(t *testing.T) {
	w := newWorld(t)
	w.node.missing = "none"
	of := choices{"/shop": fails(memory.Errorf(memory.CodeUnavailable, "cannot reach a node")), "/moon": is("team-b")}
	w.at("/shop", of).says(t, "one", "Remember that deploys happen on Tuesdays.")
	if n := w.disk().Waiting(); n != 1 || !strings.Contains(w.notes(), "captures wait: cannot reach a node") || len(w.node.asked) > 0 {
		t.Fatalf("%d wait, asked %q: %s", n, w.node.asked, w.notes())
	}
	of["/shop"] = func() (string, error) {
		time.Sleep(slow)
		return "", memory.Errorf(memory.CodeUnavailable, "cannot reach a node")
	}
	if got := w.at("/moon", of).Drain(t.Context(), DrainOptions{}); !got.Away || got.Waiting != 1 || !w.runner("a").LeftAlone() {
		t.Errorf("the node is away: %+v", got)
	}
	of["/shop"] = is("team-a")
	if got := w.at("/moon", of).Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 1}) {
		t.Errorf("%+v: %s", got, w.notes())
	}
	w.stored("Remember that deploys happen on Tuesdays.")
}

// TestThePlaceDecidesOnce: a capture whose answer was lost goes to the namespace that it went to.
func TestThePlaceDecidesOnce(t *testing.T) {
	w := newWorld(t)
	w.node.missing, w.node.lose = "team-b", 2
	of := choices{"/shop": is("team-a")}
	w.at("/shop", of).says(t, "one", "Remember that deploys happen on Tuesdays.")
	of["/shop"] = is("team-b")
	w.node.set(func() { w.node.lose = 0 })
	if got := w.at("/shop", of).Drain(t.Context(), DrainOptions{}); got != (Drained{Sent: 1}) || len(w.node.records) != 1 {
		t.Errorf("%+v, %q: %s", got, w.node.texts(), w.notes())
	}
	for _, item := range w.node.records {
		if item.Version != 1 {
			t.Errorf("it counts as said twice: %+v", item)
		}
	}
}

// TestWhatIsNotDecidedWaits: for a week, which is said with what decides it, once for all of a place, and holds
// up nothing else. No refusal of the node to say which namespaces it has deletes anything at once.
func TestWhatIsNotDecidedWaits(t *testing.T) {
	for name, c := range map[string]struct {
		why    error
		lasts  bool // for longer than a week
		reason string
	}{
		"two fit":       {errUndecided, false, "two fit; captures without a namespace wait (decide)"},
		"a bad file":    {Undecided{memory.Errorf(memory.CodeUnavailable, "it cannot be read")}, false, "it cannot be read; captures without"},
		"not allowed":   {memory.Errorf(memory.CodeForbidden, "not you"), false, "not you; captures without"},
		"invalid":       {memory.Errorf(memory.CodeInvalid, "what?"), false, "what?; captures without"},
		"no token":      {memory.Errorf(memory.CodeUnauthenticated, "who?"), true, "who?; captures without"},
		"a proxy's 400": {proxied(memory.CodeInvalid), true, "http://node:8787 answered 400 Bad Request; captures without"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asked := 0
			of := choices{"/shop": func() (string, error) { asked++; return "", c.why }}
			w.at("/shop", of).says(t, "one", "Remember that deploys happen on Tuesdays.")
			w.at("/shop", of).says(t, "one", "Remember that releases happen on Fridays.")
			if err := spoolOne(w.disk(), 0); err != nil {
				t.Fatal(err)
			}
			asked = 0
			got := w.at("/shop", of).Drain(t.Context(), DrainOptions{})
			if got.Waiting != 2 || got.Refused != 0 || !errors.Is(got.Why, c.why) || asked != 1 {
				t.Errorf("%+v, asked %d times", got, asked)
			}
			w.at("/shop", of).Drain(t.Context(), DrainOptions{})
			w.stored("text 0")
			if !strings.Contains(w.notes(), c.reason) || strings.Contains(w.notes(), "Tuesdays") {
				t.Error(w.notes())
			}
			w.now = w.now.Add(8 * 24 * time.Hour)
			if got := w.at("/shop", of).Drain(t.Context(), DrainOptions{}); c.lasts != (got.Waiting == 2) || c.lasts == (got.Refused == 2) {
				t.Errorf("after a week: %+v: %s", got, w.notes())
			}
			if said := strings.Contains(w.notes(), "waited for a week and is given up"); said == c.lasts {
				t.Error(w.notes())
			}
		})
	}
}

// TestWhatSaysNoPlaceIsNoCapture.
func TestWhatSaysNoPlaceIsNoCapture(t *testing.T) {
	w := newWorld(t)
	e := entry(0)
	e.Namespace = ""
	if err := spoolAll(w.disk(), e); err != nil {
		t.Fatal(err)
	}
	if got := w.drain("a"); got != (Drained{Aside: 1}) {
		t.Errorf("%+v: %s", got, w.notes())
	}
}

// TestTwoPlacesAreNotOne: the same words within 30 s.
func TestTwoPlacesAreNotOne(t *testing.T) {
	w := newWorld(t)
	of := choices{"/shop": fails(errUndecided), "/moon": fails(errUndecided)}
	for _, dir := range []string{"/shop", "/moon", "/shop"} {
		w.at(dir, of).says(t, "one", "Remember that deploys happen on Tuesdays.")
	}
	if n := w.disk().Waiting(); n != 2 {
		t.Errorf("%d wait: %s", n, w.notes())
	}
	if where("place", nil) == where("", &project.Seen{}) || where("", &project.Seen{Dir: "a"}) == where("", &project.Seen{Local: "a"}) {
		t.Error("other places are called the same")
	}
}

// TestWhatIsNotDecidedIsNotSpooledNorKept: without a spool it is lost, which is said with the command that decides.
func TestWhatIsNotDecidedIsNotSpooledNorKept(t *testing.T) {
	w := newWorld(t)
	r := w.at("/shop", choices{"/shop": fails(errUndecided)})
	r.Disk = Unusable(errPower)
	r.says(t, "one", "Remember that deploys happen on Tuesdays.")
	if said := w.notes(); !strings.Contains(said, "not kept: 1 capture, neither spooled (the power is off) nor taken by the node: two fit (decide)") || strings.Contains(said, "wait") {
		t.Error(said)
	}
}
